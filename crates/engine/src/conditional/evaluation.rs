//! CONDITIONAL_EVALUATION EVALUATE: a client has the conditions of start events evaluated; each that holds starts an instance.

use bpmn::model::Trigger;
use protocol::{
    ConditionalEvaluationIntent, ConditionalEvaluationValue, ConditionalStartedProcessInstance,
    ConditionalSubscriptionValue, Key, Payload, Rejection, RejectionType, Text,
};

use crate::event;
use crate::execution::{Execution, Outcome};
use crate::process_instance;
use crate::variable::own::OwnEntries;
use crate::variable::{document, expression};

pub(crate) fn evaluate(execution: &mut Execution<'_>, value: &ConditionalEvaluationValue) -> Outcome {
    check_definition(execution, value)?;
    let variables: OwnEntries<Text> =
        document::split(&value.variables, execution.limits.name_bytes_max)?.into_iter().collect();
    let mut started = Vec::new();
    for subscription in subscriptions(execution, value) {
        if !execution.is_over_budget() {
            if holds(execution, &subscription, &variables) {
                started.push(subscription);
            }
            continue;
        }
        return Err(Rejection::new(
            RejectionType::ExceededBatchRecordSize,
            format!(
                "Expected to evaluate the conditions of start events for tenant '{}', but they take more than one command may \
                 do. Name the process definition whose start events are meant, or use simpler conditions.",
                value.tenant_id
            ),
        )
        .into());
    }
    let mut value = value.clone();
    for subscription in started {
        let definition = subscription.process_definition_key;
        if let Some(process_instance_key) = start(execution, &subscription, &value.variables) {
            value
                .started_process_instances
                .push(ConditionalStartedProcessInstance { process_definition_key: definition, process_instance_key });
        }
    }
    let key = execution.state.next_key();
    let evaluated = Payload::ConditionalEvaluation(ConditionalEvaluationIntent::Evaluated, Box::new(value));
    execution.emit(key, evaluated.clone());
    execution.reply(key, evaluated);
    Ok(())
}

fn check_definition(execution: &Execution<'_>, value: &ConditionalEvaluationValue) -> Result<(), Rejection> {
    let definition = value.process_definition_key;
    let row = execution.state.tables.processes.get(&definition.raw());
    if definition.is_none() || row.is_some_and(|row| row.metadata.tenant_id == value.tenant_id) {
        return Ok(());
    }
    Err(Rejection::not_found(format!(
        "Expected to evaluate conditional for process definition key '{definition}', but no such process was found."
    )))
}

/// The start events that are looked at, oldest subscription first.
fn subscriptions(execution: &Execution<'_>, value: &ConditionalEvaluationValue) -> Vec<ConditionalSubscriptionValue> {
    let tables = &execution.state.tables;
    let definition = value.process_definition_key;
    if definition.is_some() {
        let rows = tables.conditional_subscriptions.prefix(&definition.raw());
        return rows.map(|(_, row)| row.value.clone()).collect();
    }
    let found = tables.conditional_start_events.prefix(value.tenant_id.shared());
    found
        .filter_map(|((_, key), definition)| {
            execution.used.count_reads(1);
            tables.conditional_subscriptions.get(&(*definition, key)).map(|row| row.value.clone())
        })
        .collect()
}

/// Whether a condition holds for the variables alone. It is looked at only if it reads one of them.
fn holds(execution: &Execution<'_>, subscription: &ConditionalSubscriptionValue, variables: &OwnEntries<Text>) -> bool {
    let names = &subscription.variable_names;
    if !names.is_empty() && names.iter().all(|name| variables.get(&**name).is_none()) {
        return false;
    }
    let Some(process) = execution.state.process(subscription.process_definition_key) else { return false };
    let event = process.find_event(&subscription.catch_event_id);
    let event = event.and_then(|event| process.element(event).catch_event());
    let Some(Trigger::Condition(definition)) = event.map(|event| &event.trigger) else { return false };
    expression::boolean_with(execution, Key::NONE, variables, &definition.condition).unwrap_or(false)
}

fn start(execution: &mut Execution<'_>, subscription: &ConditionalSubscriptionValue, variables: &Text) -> Option<Key> {
    let definition = subscription.process_definition_key;
    let process = execution.state.process(definition)?;
    let row = execution.state.tables.processes.get(&definition.raw())?;
    let start_event = process.find_event(&subscription.catch_event_id)?;
    let instance = execution.state.next_key();
    let root = process_instance::root_value(&row.metadata, instance);
    event::trigger_process(execution, &process, root, start_event, variables.clone());
    Some(instance)
}
