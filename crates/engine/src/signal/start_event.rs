//! Signal start events: each signal starts an instance of the newest version.

use bpmn::model::{ExecutableProcess, StaticOrExpression, Trigger};
use protocol::{Key, ProcessMetadata, SignalSubscriptionIntent, SignalSubscriptionValue, Text};

use super::subscription;
use crate::event;
use crate::execution::Execution;
use crate::process_instance;

/// Opens the subscriptions of a version that became the newest.
pub(crate) fn open(execution: &mut Execution<'_>, metadata: &ProcessMetadata, process: &ExecutableProcess) {
    for start in &process.triggered_start_events {
        let start = process.element(*start);
        let Some(Trigger::Signal(definition)) = start.catch_event().map(|event| &event.trigger) else { continue };
        // Without an instance there are no variables, so deployments with other names were refused.
        let StaticOrExpression::Static(signal_name) = &definition.name else { continue };
        let value = SignalSubscriptionValue {
            process_definition_key: metadata.process_definition_key,
            bpmn_process_id: metadata.bpmn_process_id.clone(),
            catch_event_id: (&start.id).into(),
            catch_event_instance_key: Key::NONE,
            signal_name: signal_name.into(),
            tenant_id: metadata.tenant_id.clone(),
        };
        let key = execution.state.next_key();
        subscription::emit(execution, key, SignalSubscriptionIntent::Created, value);
    }
}

/// Closes the subscriptions of a version that is no longer the newest.
pub(crate) fn close(execution: &mut Execution<'_>, definition: Key) {
    subscription::close(execution, definition, |_| true);
}

/// A signal starts an instance.
pub(super) fn start(execution: &mut Execution<'_>, value: &SignalSubscriptionValue, variables: &Text) {
    let definition = value.process_definition_key;
    let Some(process) = execution.state.process(definition) else { return };
    let Some(row) = execution.state.tables.processes.get(&definition.raw()) else { return };
    let Some(start_event) = process.find_event(&value.catch_event_id) else { return };
    let instance = execution.state.next_key();
    let root = process_instance::root_value(&row.metadata, instance);
    event::trigger_process(execution, &process, root, start_event, variables.clone());
}
