//! What may be undone when its process instance continues with another definition: what the plan maps the compensation
//! boundary event of, with everything around it. The rest is not undone any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use bpmn::model::{Behavior, ElementIndex, ExecutableProcess, PROCESS};
use protocol::{CompensationSubscriptionIntent, CompensationSubscriptionValue, Key, Rejection, Text};

use super::{emit, row};
use crate::execution::Execution;

/// Where a process instance goes.
pub(crate) struct Destination<'a> {
    pub source: &'a ExecutableProcess,
    pub target: &'a ExecutableProcess,
    pub target_key: Key,
    pub mapping: &'a BTreeMap<Arc<str>, Text>,
}

/// Migrates the subscriptions of a process instance. Returns how many there were; nothing is done if they are more than
/// `count_max`.
pub(crate) fn migrate(
    execution: &mut Execution<'_>,
    process_instance: Key,
    to: &Destination<'_>,
    count_max: usize,
) -> Result<usize, Rejection> {
    let subscriptions = execution.state.tables.compensation_subscriptions.iter(&process_instance.raw());
    let subscriptions: Vec<i64> = subscriptions.map(|(subscription, _)| subscription).take(count_max + 1).collect();
    if subscriptions.len() > count_max {
        return Ok(subscriptions.len());
    }
    let mut activities = BTreeMap::new();
    for subscription in &subscriptions {
        if let Some(row) = row(&execution.state, process_instance, *subscription) {
            map_activity(to, &row.value.compensable_activity_id, &mut activities)?;
        }
    }
    for subscription in &subscriptions {
        let Some(row) = row(&execution.state, process_instance, *subscription) else { continue };
        match activities.get(&*row.value.compensable_activity_id) {
            Some(activity) => {
                let value = migrated(to, &row.value, *activity);
                emit(execution, *subscription, CompensationSubscriptionIntent::Migrated, value);
            }
            None => emit(execution, *subscription, CompensationSubscriptionIntent::Deleted, row.value.clone()),
        }
    }
    Ok(subscriptions.len())
}

fn migrated(
    to: &Destination<'_>,
    value: &CompensationSubscriptionValue,
    activity: ElementIndex,
) -> CompensationSubscriptionValue {
    let handler = to.target.compensation_of(activity).map(|(_, handler)| (&to.target.element(handler).id).into());
    CompensationSubscriptionValue {
        process_definition_key: to.target_key,
        compensable_activity_id: (&to.target.element(activity).id).into(),
        compensation_handler_id: handler.unwrap_or_default(),
        ..value.clone()
    }
}

/// Maps an activity if the plan maps its compensation boundary event, and what is around it.
fn map_activity(
    to: &Destination<'_>,
    activity_id: &str,
    activities: &mut BTreeMap<Arc<str>, ElementIndex>,
) -> Result<(), Rejection> {
    let Some(activity) = to.source.element_by_id.get(activity_id).copied() else { return Ok(()) };
    let Some((event, _)) = to.source.compensation_of(activity) else { return Ok(()) };
    // What is inside of a sub-process takes it along.
    if let Behavior::Container { .. } = to.source.element(activity).behavior {
        return Ok(());
    }
    let event_id = &to.source.element(event).id;
    let Some(target_event_id) = to.mapping.get(event_id) else { return Ok(()) };
    let target_event = to.target.element_by_id.get(&**target_event_id).map(|event| to.target.element(*event));
    let attached_to = match target_event.map(|event| &event.behavior) {
        Some(Behavior::CompensationBoundaryEvent { attached_to, .. }) => *attached_to,
        _ => {
            return Err(Rejection::invalid_argument(format!(
                "Expected to migrate process instance with id '{}' but compensation boundary event '{event_id}' is mapped to a \
                 target boundary event '{target_event_id}' that has event type '{}' different than compensation boundary event \
                 type.",
                to.source.id,
                target_event.map_or("UNSPECIFIED", |event| event.event_type.name())
            )));
        }
    };
    let (mut source, mut target) = (activity, attached_to);
    while source != PROCESS && target != PROCESS {
        // A multi-instance body has the same id as its inner activity, and is found by it.
        let id = to.source.element(source).id.clone();
        activities.insert(id, *to.target.element_by_id.get(&to.target.element(target).id).unwrap_or(&target));
        source = to.source.element(source).flow_scope.unwrap_or(PROCESS);
        target = to.target.element(target).flow_scope.unwrap_or(PROCESS);
    }
    if source == PROCESS && target == PROCESS {
        return Ok(());
    }
    Err(Rejection::invalid_state(format!(
        "Expected to migrate process instance with id '{}' but the flow scope of compensation boundary event is changed. Flow \
         scope '{}' is not in the same level as '{}'. The flow scope of a compensation boundary event cannot be changed during \
         migration yet.",
        to.source.id,
        to.source.element(source).id,
        to.target.element(target).id
    )))
}
