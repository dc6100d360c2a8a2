//! From the XML tree to the graph: what there is, what requires what.

use std::collections::BTreeMap;
use std::sync::Arc;

use feel::Names;
use roxmltree::Node;

use crate::compile::Compiler;
use crate::imports::{Import, Imports};
use crate::model::{Decision, DecisionService, Element, Graph, ImportedElement, InputData, Knowledge, KnowledgeModel};
use crate::report::Problems;
use crate::types::{TypeReference, Types};
use crate::xml::{child, children, is_dmn, is_in_dmn, present, version_tag};
use crate::{free_names, requirements};

/// The elements of a file by what they are, in document order, and how they are found.
struct Elements<'a, 'input> {
    namespace: &'a str,
    decisions: Vec<Node<'a, 'input>>,
    inputs: Vec<Node<'a, 'input>>,
    models: Vec<Node<'a, 'input>>,
    services: Vec<Node<'a, 'input>>,
    by_id: BTreeMap<&'a str, Element>,
    imports: Imports<'a>,
}

/// What an element requires.
#[derive(Default)]
struct Required {
    decisions: Vec<u32>,
    /// What is called: business knowledge models and decision services, by name.
    knowledge: Vec<(Arc<str>, Knowledge)>,
    imported: Vec<ImportedElement>,
}

/// The graph of a file whose root element is `definitions`. It is sound only if no problem was added.
pub(crate) fn read(root: Node, imported: &[Arc<Graph>], problems: &mut Problems) -> Graph {
    let name = required(root, "name", problems);
    let id = identifier(root);
    check_ids(root, problems);
    let imports = Imports::read(root, imported);
    let known: Vec<&str> = known_names(root).chain(imports.names()).collect();
    let names = Names::new(known.iter().copied());
    let types = Arc::new(Types::read(root, &names, &imports, problems));
    let elements = Elements::collect(root, imports, problems);
    let mut compiler = Compiler::new(&types, known, names.clone().with_types(Types::named(&types)), problems);
    let inputs = elements.inputs.iter().map(|node| input(*node, &types)).collect();
    let decisions = elements.decisions.iter().map(|node| decision(*node, &elements, &mut compiler)).collect::<Vec<_>>();
    let models = elements.models.iter().map(|node| model(*node, &elements, &mut compiler)).collect();
    let mut graph = Graph {
        id,
        name,
        namespace: Arc::from(elements.namespace),
        elements: elements.by_id.iter().map(|(id, element)| (Arc::from(*id), *element)).collect(),
        decisions,
        models,
        services: Vec::new(),
        inputs,
        types: Arc::default(),
        names,
    };
    graph.services = elements.services.iter().map(|node| service(*node, &elements, &graph, &types, problems)).collect();
    graph.types = types.clone();
    if problems.is_empty() {
        requirements::check_cycles(&graph, &elements.decisions, &elements.models, &elements.services, problems);
    }
    graph
}

/// An attribute that must be there. A problem was added if it is not.
fn required(node: Node, attribute: &str, problems: &mut Problems) -> Arc<str> {
    match present(node, attribute) {
        Some(value) => Arc::from(value),
        None => {
            let name = node.tag_name().name();
            problems.add(node, format!("A '{name}' must have the attribute '{attribute}'. Give it one."));
            Arc::from("")
        }
    }
}

/// The id; the standard lets it be left out, and then the name takes its place.
fn identifier(node: Node) -> Arc<str> {
    present(node, "id").map_or_else(|| attribute(node, "name"), Arc::from)
}

fn check_ids(root: Node, problems: &mut Problems) {
    let mut seen = std::collections::BTreeSet::new();
    for node in root.descendants().filter(|node| is_in_dmn(*node)) {
        if let Some(id) = present(node, "id")
            && !seen.insert(id)
        {
            problems.add(
                node,
                format!("The id '{id}' is used more than once in this file. Give every element an id of its own."),
            );
        }
    }
}

/// The names that are recognised in all expressions. Parameters may be called like a path (`person.name`), which is
/// something else outside of their function.
fn known_names<'a>(root: Node<'a, '_>) -> impl Iterator<Item = &'a str> {
    let is_known =
        |node: &Node<'a, '_>| is_in_dmn(*node) && !(is_dmn(*node, "formalParameter") || is_dmn(*node, "parameter"));
    let names = root.descendants().filter(is_known).filter_map(|node| {
        let name = present(node, "name")?;
        let is_named = matches!(
            node.tag_name().name(),
            "variable"
                | "decision"
                | "inputData"
                | "businessKnowledgeModel"
                | "decisionService"
                | "itemComponent"
                | "column"
                | "output"
        );
        is_named.then_some(name)
    });
    let iterators = root.descendants().filter_map(|node| present(node, "iteratorVariable"));
    let parameters = root
        .descendants()
        .filter(|node| is_dmn(*node, "formalParameter"))
        .filter_map(|node| present(node, "name"))
        .filter(|name| !name.contains('.'));
    names.chain(iterators).chain(parameters)
}

impl<'a, 'input> Elements<'a, 'input> {
    fn collect(root: Node<'a, 'input>, imports: Imports<'a>, problems: &mut Problems) -> Self {
        let mut elements = Elements {
            namespace: root.attribute("namespace").unwrap_or_default(),
            decisions: Vec::new(),
            inputs: Vec::new(),
            models: Vec::new(),
            services: Vec::new(),
            by_id: BTreeMap::new(),
            imports,
        };
        for node in root.children().filter(|node| is_in_dmn(*node)) {
            let index = |nodes: &Vec<_>| u32::try_from(nodes.len()).expect("the limit of XML nodes is below u32::MAX");
            let (nodes, element) = match node.tag_name().name() {
                "decision" => (&mut elements.decisions, Element::Decision as fn(u32) -> Element),
                "inputData" => (&mut elements.inputs, Element::Input as fn(u32) -> Element),
                "businessKnowledgeModel" => {
                    (&mut elements.models, (|index| Element::Knowledge(Knowledge::Model(index))) as fn(u32) -> Element)
                }
                "decisionService" => {
                    let element = |index| Element::Knowledge(Knowledge::Service(index));
                    (&mut elements.services, element as fn(u32) -> Element)
                }
                _ => continue,
            };
            let element = element(index(nodes));
            nodes.push(node);
            required(node, "name", problems);
            let id = present(node, "id").or_else(|| present(node, "name")).unwrap_or_default();
            if elements.by_id.insert(id, element).is_some() && !node.has_attribute("id") {
                problems.add(
                    node,
                    format!("The name '{id}' stands for the missing id, but is used already. Give it an id."),
                );
            }
        }
        elements
    }

    /// What a child such as `requiredDecision` refers to, with the import through which it does.
    fn target(&self, node: Node, expected: &str, problems: &mut Problems) -> Option<(Element, Option<&Import<'a>>)> {
        let owner = node.ancestors().find_map(|node| present(node, "name")).unwrap_or_default();
        let Some(reference) = present(node, "href") else {
            problems.add(node, format!("'{owner}' requires something without saying what. Set the attribute 'href'."));
            return None;
        };
        let (file, id) = reference.split_once('#').unwrap_or(("", reference));
        let import = if file.is_empty() || file == self.namespace {
            None
        } else {
            match self.imports.of_namespace(file) {
                Ok(import) => Some(import),
                Err(why) => {
                    problems.add(
                        node,
                        format!("'{owner}' requires the {expected} '{id}' of the model '{file}', but {why}."),
                    );
                    return None;
                }
            }
        };
        let found = match import {
            Some(import) => import.graph.elements.get(id).copied(),
            None => self.by_id.get(id).copied(),
        };
        if found.is_none() {
            let place = if import.is_some() { "model" } else { "file" };
            problems.add(
                node,
                format!(
                    "'{owner}' requires the {expected} '{id}', but there is none with this id in the {place}. Correct \
                     the reference."
                ),
            );
        }
        found.map(|found| (found, import))
    }

    fn wrong(node: Node, expected: &str, problems: &mut Problems) {
        let reference = node.attribute("href").unwrap_or_default();
        problems.add(node, format!("'{reference}' is no {expected}, but one is required here. Correct the reference."));
    }

    /// What a part of a decision service refers to: an element of this file.
    fn own(&self, node: Node, expected: &str, problems: &mut Problems) -> Option<Element> {
        let (element, import) = self.target(node, expected, problems)?;
        if import.is_some() {
            let reference = node.attribute("href").unwrap_or_default();
            problems.add(
                node,
                format!(
                    "'{reference}' is of an imported model, but a decision service is made of elements of its own file. \
                     Add a decision that requires it."
                ),
            );
            return None;
        }
        Some(element)
    }

    fn decision_at(&self, node: Node, problems: &mut Problems) -> Option<u32> {
        match self.own(node, "decision", problems)? {
            Element::Decision(index) => return Some(index),
            _ => Self::wrong(node, "decision", problems),
        }
        None
    }

    fn input_at(&self, node: Node, problems: &mut Problems) -> Option<u32> {
        match self.own(node, "input data", problems)? {
            Element::Input(index) => return Some(index),
            _ => Self::wrong(node, "input data", problems),
        }
        None
    }

    /// What the information and knowledge requirements lead to. Input data of the file needs nothing: its values are
    /// variables of the scope.
    fn required(&self, node: Node, problems: &mut Problems) -> Required {
        const KINDS: [(&str, &str, &str); 3] = [
            ("informationRequirement", "requiredDecision", "decision"),
            ("informationRequirement", "requiredInput", "input data"),
            ("knowledgeRequirement", "requiredKnowledge", "business knowledge model"),
        ];
        let mut found = Required::default();
        for (requirement, reference, expected) in KINDS {
            for node in children(node, requirement).flat_map(|node| children(node, reference)) {
                let Some((element, import)) = self.target(node, expected, problems) else {
                    continue;
                };
                match (reference, element, import) {
                    ("requiredDecision", Element::Decision(index), None) => found.decisions.push(index),
                    ("requiredInput", Element::Input(_), None) => {}
                    ("requiredKnowledge", Element::Knowledge(of), None) => {
                        found.knowledge.push((self.name_of(of), of));
                    }
                    ("requiredDecision", Element::Decision(_), Some(import))
                    | ("requiredInput", Element::Input(_), Some(import))
                    | ("requiredKnowledge", Element::Knowledge(_), Some(import)) => {
                        let (import, graph) = (import.name.clone(), import.graph.clone());
                        found.imported.push(ImportedElement { import, graph, element });
                    }
                    _ => Self::wrong(node, expected, problems),
                }
            }
        }
        found
    }

    fn name_of(&self, knowledge: Knowledge) -> Arc<str> {
        let node = match knowledge {
            Knowledge::Model(index) => self.models[index as usize],
            Knowledge::Service(index) => self.services[index as usize],
        };
        Arc::from(node.attribute("name").unwrap_or_default())
    }
}

fn attribute(node: Node, name: &str) -> Arc<str> {
    Arc::from(node.attribute(name).unwrap_or_default())
}

/// The name and type in the child `variable`.
fn variable<'a>(node: Node<'a, '_>, types: &Types) -> (Option<&'a str>, TypeReference) {
    match child(node, "variable") {
        Some(variable) => (present(variable, "name"), types.of(variable)),
        None => (None, TypeReference::Any),
    }
}

fn input(node: Node, types: &Types) -> InputData {
    let (name, item) = variable(node, types);
    InputData { name: name.map_or_else(|| attribute(node, "name"), Arc::from), item }
}

fn decision(node: Node, elements: &Elements, compiler: &mut Compiler) -> Decision {
    let Required { decisions, knowledge, imported } = elements.required(node, compiler.problems);
    let (result_name, result_type) = variable(node, compiler.types);
    let (id, name) = (identifier(node), attribute(node, "name"));
    let result_names = match result_name {
        Some(name) => vec![Arc::from(name)],
        None => vec![name.clone(), id.clone()],
    };
    let logic = compiler.logic(node, &knowledge);
    Decision {
        id,
        name,
        result_names,
        result_type,
        version_tag: version_tag(node).map(Arc::from),
        logic,
        decisions,
        knowledge: knowledge.into_iter().map(|(_, knowledge)| knowledge).collect(),
        imported,
    }
}

fn model(node: Node, elements: &Elements, compiler: &mut Compiler) -> KnowledgeModel {
    let Required { knowledge, imported, .. } = elements.required(node, compiler.problems);
    let (_, result_type) = variable(node, compiler.types);
    let (logic, parameters, parameter_types) = match child(node, "encapsulatedLogic") {
        Some(function) => compiler.function(function, &knowledge),
        None => (None, Vec::new(), Vec::new()),
    };
    KnowledgeModel {
        id: identifier(node),
        name: attribute(node, "name"),
        result_type,
        free_names: logic.as_ref().map(|logic| free_names::of(logic, &parameters)).unwrap_or_default(),
        parameters: parameters.into(),
        parameter_types,
        logic,
        knowledge: knowledge.into_iter().map(|(_, knowledge)| knowledge).collect(),
        imported,
    }
}

fn service(node: Node, elements: &Elements, graph: &Graph, types: &Types, problems: &mut Problems) -> DecisionService {
    let outputs: Vec<u32> =
        children(node, "outputDecision").filter_map(|output| elements.decision_at(output, problems)).collect();
    if outputs.is_empty() {
        problems.add(node, "A decision service must have an output decision. Add the decision whose result it gives.");
    }
    let input_decisions: Vec<u32> =
        children(node, "inputDecision").filter_map(|input| elements.decision_at(input, problems)).collect();
    let inputs: Vec<u32> = children(node, "inputData").filter_map(|input| elements.input_at(input, problems)).collect();
    let of_decisions = input_decisions.iter().map(|index| {
        let decision = &graph.decisions[*index as usize];
        (decision.result_names[0].clone(), decision.result_type)
    });
    let of_inputs = inputs.iter().map(|index| {
        let input = &graph.inputs[*index as usize];
        (input.name.clone(), input.item)
    });
    let (parameters, parameter_types): (Vec<_>, Vec<_>) = of_inputs.chain(of_decisions).unzip();
    DecisionService {
        id: identifier(node),
        name: attribute(node, "name"),
        result_type: variable(node, types).1,
        outputs,
        input_decisions,
        parameters: parameters.into(),
        parameter_types,
    }
}
