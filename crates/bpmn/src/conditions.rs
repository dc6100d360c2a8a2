//! Conditions that events wait for.

use roxmltree::Node;
use std::sync::Arc;

use crate::expressions::required_expression;
use crate::extensions::Extensions;
use crate::model::{ConditionDefinition, VariableEvent};
use crate::report::Problems;
use crate::xml::{self, is_bpmn, present};

/// The condition of `definition`, a `conditionalEventDefinition` with these extension elements; `None` after a problem.
pub(crate) fn condition(
    definition: Node,
    extensions: &Extensions,
    problems: &mut Problems,
) -> Option<ConditionDefinition> {
    let variable_events = variable_events(extensions, problems);
    let Some(node) = definition.children().find(|node| is_bpmn(*node, "condition")) else {
        problems.add(
            definition,
            "Conditional event must contain an expression for evaluation. Add a 'condition' with a FEEL expression that starts \
             with '='.",
        );
        return None;
    };
    let text = xml::trimmed_text(node);
    let condition = required_expression(node, &text, problems)?;
    Some(ConditionDefinition { condition, text: Arc::from(text), variable_events: variable_events? })
}

/// What `zeebe:conditionalFilter` says. The variables themselves follow from the condition, as on the reference engine.
fn variable_events(extensions: &Extensions, problems: &mut Problems) -> Option<Vec<VariableEvent>> {
    let Some(filter) = extensions.conditional_filter else { return Some(Vec::new()) };
    let names = present(filter, "variableEvents").unwrap_or_default();
    let mut events = Vec::new();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let known = [VariableEvent::Create, VariableEvent::Update].into_iter().find(|event| event.name() == name);
        let Some(event) = known else {
            problems.add(
                filter,
                format!(
                    "Variable event '{name}' is not valid. Must be one of: create, update or a comma-separated list of both. \
                     Correct the attribute 'variableEvents'."
                ),
            );
            return None;
        };
        if !events.contains(&event) {
            events.push(event);
        }
    }
    Some(events)
}
