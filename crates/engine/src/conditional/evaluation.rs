//! CONDITIONAL_EVALUATION EVALUATE: a client has the conditions of start events evaluated; each that holds starts an instance.

use bpmn::model::Trigger;
use protocol::{
    ConditionalEvaluationIntent, ConditionalEvaluationValue, ConditionalStartedProcessInstance,
    ConditionalSubscriptionValue, Key, Payload, Rejection, RejectionType, Text,
};

use super::change::{ENTRY_STEPS, LOOK_STEPS};
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
    for (definition, key) in subscriptions(execution, value)? {
        check_budget(execution, value)?;
        execution.used.count_reads(LOOK_STEPS);
        let Some(row) = execution.state.tables.conditional_subscriptions.get(&(definition, key)) else { continue };
        if holds(execution, &row.value, &variables) {
            started.push(row.value.clone());
        }
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

/// The start events that are looked at, oldest subscription first: (definition, subscription).
fn subscriptions(execution: &Execution<'_>, value: &ConditionalEvaluationValue) -> Result<Vec<(i64, i64)>, Rejection> {
    let tables = &execution.state.tables;
    let definition = value.process_definition_key;
    if definition.is_some() {
        return Ok(tables.conditional_subscriptions.prefix_keys(&definition.raw()).collect());
    }
    let mut found = Vec::new();
    for ((_, key), definition) in tables.conditional_start_events.prefix(value.tenant_id.shared()) {
        execution.used.count_reads(ENTRY_STEPS);
        check_budget(execution, value)?;
        found.push((*definition, key));
    }
    Ok(found)
}

fn check_budget(execution: &Execution<'_>, value: &ConditionalEvaluationValue) -> Result<(), Rejection> {
    if !execution.is_over_budget() {
        return Ok(());
    }
    Err(Rejection::new(
        RejectionType::ExceededBatchRecordSize,
        format!(
            "Expected to evaluate the conditions of start events for tenant '{}', but they take more than one command may \
             do. Name the process definition whose start events are meant, or use simpler conditions.",
            value.tenant_id
        ),
    ))
}

/// Whether a condition holds for the variables alone. It is looked at only if it reads one of them.
fn holds(execution: &Execution<'_>, subscription: &ConditionalSubscriptionValue, variables: &OwnEntries<Text>) -> bool {
    let names = &subscription.variable_names;
    execution.used.count_reads((names.len() as u64).saturating_mul(ENTRY_STEPS));
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
