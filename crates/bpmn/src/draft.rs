//! A process while its file is read: its elements with their XML, and its flows.

use std::collections::HashMap;
use std::sync::Arc;

use roxmltree::Node;

use crate::model::{Behavior, Element, ElementIndex, ElementType, EventType};
use crate::roots::Roots;
use crate::vocabulary::{FlowElement, flow_element};
use crate::xml::{is_true, present};

/// What is known of a process while its file is read.
pub(crate) struct Draft<'r, 'a, 'input> {
    pub(crate) roots: &'r Roots<'a, 'input>,
    pub(crate) elements: Vec<Element>,
    /// The XML of `elements[i]`; an unsupported element has its place too, so that flows to it are no further problem.
    /// A multi-instance body and its inner activity have the same.
    pub(crate) nodes: Vec<Node<'a, 'input>>,
    /// Flow nodes by BPMN id; the first of several with one id.
    pub(crate) index_by_id: HashMap<&'a str, ElementIndex>,
    /// The `sequenceFlow` elements in document order.
    pub(crate) flow_nodes: Vec<Node<'a, 'input>>,
}

impl<'a, 'input> Draft<'_, 'a, 'input> {
    pub(crate) fn element(&self, index: ElementIndex) -> &Element {
        &self.elements[index.0 as usize]
    }

    pub(crate) fn element_mut(&mut self, index: ElementIndex) -> &mut Element {
        &mut self.elements[index.0 as usize]
    }

    pub(crate) fn node(&self, index: ElementIndex) -> Node<'a, 'input> {
        self.nodes[index.0 as usize]
    }

    pub(crate) fn elements_with_indexes(&self) -> impl Iterator<Item = (ElementIndex, &Element)> {
        (0_u32..).map(ElementIndex).zip(&self.elements)
    }

    /// Whether the element was refused by name, so that nothing else should be said of it.
    pub(crate) fn is_unsupported(&self, index: ElementIndex) -> bool {
        flow_element(self.node(index).tag_name().name()) == FlowElement::Unsupported
    }

    pub(crate) fn next_index(&self) -> ElementIndex {
        ElementIndex(u32::try_from(self.elements.len()).expect("the limit of XML nodes is below u32::MAX / 2"))
    }

    pub(crate) fn add(
        &mut self,
        node: Node<'a, 'input>,
        element_type: ElementType,
        flow_scope: Option<ElementIndex>,
        behavior: Behavior,
    ) -> ElementIndex {
        let index = self.next_index();
        let id = node.attribute("id").unwrap_or_default();
        // Sequence flows connect to flow nodes, never to the process.
        if flow_scope.is_some() {
            self.index_by_id.entry(id).or_insert(index);
        }
        self.nodes.push(node);
        self.elements.push(Element {
            id: Arc::from(id),
            name: present(node, "name").map(Arc::from),
            element_type,
            event_type: EventType::Unspecified,
            flow_scope,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            boundary_events: Vec::new(),
            event_sub_processes: Vec::new(),
            start_listeners: Vec::new(),
            end_listeners: Vec::new(),
            is_for_compensation: is_true(node, "isForCompensation"),
            behavior,
        });
        index
    }

    pub(crate) fn ids(&self, indexes: &[ElementIndex]) -> String {
        let ids: Vec<&str> = indexes.iter().map(|index| &*self.element(*index).id).collect();
        ids.join(", ")
    }
}
