//! Global listeners: those that the user tasks of all processes have besides the listeners of their models.
//!
//! All of them together are a configuration, with a key of its own; each change makes another one, here and on every other
//! partition. What becomes of a user task goes by the configuration in which it began: whoever changes the listeners meanwhile
//! changes nothing of it. A configuration is kept as long as something goes by it (`apply/global_listener.rs`).

use std::collections::BTreeSet;

use protocol::{
    Command, GlobalListenerBatchIntent, GlobalListenerBatchValue, GlobalListenerEventType, GlobalListenerIntent,
    GlobalListenerSource, GlobalListenerValue, JobListenerEventType, Key, Payload, Rejection, Request,
};

use crate::execution::{Execution, Outcome};
use crate::name::too_long;
use crate::state::State;
use crate::{distribution, routing};

/// GLOBAL_LISTENER CREATE, UPDATE and DELETE: partition 1 decides, the others make it true.
pub(crate) fn change(
    execution: &mut Execution<'_>,
    command: &Command,
    intent: GlobalListenerIntent,
    value: &GlobalListenerValue,
) -> Outcome {
    if command.source.is_some() {
        accept(execution, intent, value);
        return Ok(());
    }
    distribution::check_distributions(execution)?;
    let value = decide(execution, intent, value)?;
    accept(execution, intent, &value);
    // The client is answered when every partition has it: what it starts next, anywhere, goes by it.
    let config = value.config_key;
    let payload = Payload::GlobalListener(intent, Box::new(value));
    if routing::has_other_partitions(execution) {
        distribution::start(execution, config, payload);
    } else {
        answer(execution, payload, execution.request);
    }
    Ok(())
}

/// GLOBAL_LISTENER_BATCH CONFIGURE: those that the configuration of the cluster defines are these. They replace listeners with the
/// same ids, and what it defined before and does not any more goes.
pub(crate) fn configure(execution: &mut Execution<'_>, command: &Command, value: &GlobalListenerBatchValue) -> Outcome {
    if command.source.is_some() {
        accept_batch(execution, value);
        return Ok(());
    }
    distribution::check_distributions(execution)?;
    let value = decide_batch(execution, value)?;
    accept_batch(execution, &value);
    let config = value.global_listener_batch_key;
    let payload = Payload::GlobalListenerBatch(GlobalListenerBatchIntent::Configure, Box::new(value));
    if routing::has_other_partitions(execution) {
        distribution::start(execution, config, payload);
    } else {
        answer(execution, payload, execution.request);
    }
    Ok(())
}

/// What a command wants to do, in words.
fn action(intent: GlobalListenerIntent, value: &GlobalListenerValue) -> String {
    let verb = match intent {
        GlobalListenerIntent::Create => "create",
        GlobalListenerIntent::Update => "update",
        _ => "delete",
    };
    format!("{verb} global task listener with id '{}',", value.id)
}

/// The listener as it is to be, with its key and that of the configuration that begins with it.
fn decide(
    execution: &mut Execution<'_>,
    intent: GlobalListenerIntent,
    wanted: &GlobalListenerValue,
) -> Outcome<GlobalListenerValue> {
    let expected = format!("Expected to {}", action(intent, wanted));
    if intent != GlobalListenerIntent::Delete {
        check(execution, wanted).map_err(|but| Rejection::invalid_argument(format!("{expected} but {but}")))?;
    }
    let configured = execution.state.current_global_listeners();
    let listeners = configured.as_ref().map_or(&[][..], |row| &row.listeners);
    let existing = listeners.iter().find(|listener| listener.id == wanted.id);
    let key = match (intent, existing) {
        (GlobalListenerIntent::Create, Some(_)) => {
            let reason = format!("{expected} but one with this id exists already; update it, or choose another id");
            return Err(Rejection::already_exists(reason).into());
        }
        (GlobalListenerIntent::Create, None) => {
            let listeners_max = execution.limits.global_listeners_max;
            if listeners.len() >= listeners_max {
                let reason =
                    format!("{expected} but there are {listeners_max} already, and there can be no more; delete one");
                return Err(Rejection::invalid_state(reason).into());
            }
            execution.state.next_key()
        }
        (_, Some(existing)) => existing.global_listener_key,
        (_, None) => {
            let reason = format!("{expected} but no global task listener with this id was found");
            return Err(Rejection::not_found(reason).into());
        }
    };
    // Who deletes a listener says no more than its id, and the records say what went.
    let value = match existing.filter(|_| intent == GlobalListenerIntent::Delete) {
        Some(existing) => existing,
        None => wanted,
    };
    let config_key = execution.state.next_key();
    Ok(GlobalListenerValue { global_listener_key: key, config_key, ..value.clone() })
}

/// The listeners with their keys, and with that of the configuration that begins with them.
fn decide_batch(execution: &mut Execution<'_>, wanted: &GlobalListenerBatchValue) -> Outcome<GlobalListenerBatchValue> {
    let configured = execution.state.current_global_listeners();
    let listeners = configured.as_ref().map_or(&[][..], |row| &row.listeners);
    let mut ids = BTreeSet::new();
    for listener in &wanted.task_listeners {
        let expected = format!("Expected to configure global task listener with id '{}',", listener.id);
        check(execution, listener).map_err(|but| Rejection::invalid_argument(format!("{expected} but {but}")))?;
        if !ids.insert(&listener.id) {
            let reason = format!("{expected} but another one has the same id; choose another one");
            return Err(Rejection::invalid_argument(reason).into());
        }
    }
    let by_request =
        |listener: &&GlobalListenerValue| listener.source == GlobalListenerSource::Api && !ids.contains(&listener.id);
    let (count, listeners_max) =
        (ids.len() + listeners.iter().filter(by_request).count(), execution.limits.global_listeners_max);
    if count > listeners_max {
        return Err(Rejection::invalid_state(format!(
            "Expected to configure global task listeners, but there would be {count} with those that were created by requests, and \
             there can be {listeners_max}; delete some"
        ))
        .into());
    }
    let key_of = |listener: &GlobalListenerValue| {
        listeners.iter().find(|existing| existing.id == listener.id).map(|existing| existing.global_listener_key)
    };
    let global_listener_batch_key = execution.state.next_key();
    let mut task_listeners = Vec::with_capacity(wanted.task_listeners.len());
    for listener in &wanted.task_listeners {
        let global_listener_key = key_of(listener).unwrap_or_else(|| execution.state.next_key());
        let (source, config_key) = (GlobalListenerSource::Configuration, global_listener_batch_key);
        task_listeners.push(GlobalListenerValue { global_listener_key, source, config_key, ..listener.clone() });
    }
    Ok(GlobalListenerBatchValue { global_listener_batch_key, task_listeners })
}

/// What is wrong with a listener, if anything is.
fn check(execution: &Execution<'_>, value: &GlobalListenerValue) -> Result<(), String> {
    let name_bytes_max = execution.limits.name_bytes_max;
    for (name, text) in [("id", &value.id), ("job type", &value.job_type)] {
        if text.trim().is_empty() {
            return Err(format!("its {name} is missing"));
        }
        if let Some(reason) = too_long(text, name_bytes_max) {
            return Err(format!("its {name} must have {reason}"));
        }
    }
    if value.retries < 1 {
        return Err(format!("its jobs must have at least 1 retry, and not {}", value.retries));
    }
    if value.event_types.is_empty() {
        return Err("it listens to nothing; name its event types, or 'all'".to_owned());
    }
    if value.event_types.len() > GlobalListenerEventType::EVERY.len() {
        return Err("it names event types several times; name each once".to_owned());
    }
    Ok(())
}

/// Makes true what was decided, whatever was here before.
fn accept(execution: &mut Execution<'_>, intent: GlobalListenerIntent, value: &GlobalListenerValue) {
    if make_true(execution, intent, value) {
        tell_configured(execution, value.config_key);
    }
}

/// The same for all that the configuration of the cluster defines. What is so already stays.
fn accept_batch(execution: &mut Execution<'_>, value: &GlobalListenerBatchValue) {
    let config_key = value.global_listener_batch_key;
    let configured = execution.state.current_global_listeners();
    let listeners = configured.as_ref().map_or(&[][..], |row| &row.listeners);
    let mut has_changed = false;
    for listener in no_more_configured(listeners, &value.task_listeners) {
        let deleted = GlobalListenerValue { config_key, ..listener.clone() };
        has_changed |= make_true(execution, GlobalListenerIntent::Delete, &deleted);
    }
    for listener in &value.task_listeners {
        if !is_there(listeners, listener) {
            has_changed |= make_true(execution, GlobalListenerIntent::Update, listener);
        }
    }
    if has_changed {
        tell_configured(execution, config_key);
    }
}

/// Those that the configuration of the cluster defined and does not any more.
fn no_more_configured<'a>(
    listeners: &'a [GlobalListenerValue],
    configured: &'a [GlobalListenerValue],
) -> impl Iterator<Item = &'a GlobalListenerValue> {
    let is_left = |listener: &&GlobalListenerValue| configured.iter().any(|other| other.id == listener.id);
    listeners
        .iter()
        .filter(move |listener| listener.source == GlobalListenerSource::Configuration && !is_left(listener))
}

/// Whether a listener is as it is wanted by the configuration of the cluster, but for keys.
fn is_there(listeners: &[GlobalListenerValue], wanted: &GlobalListenerValue) -> bool {
    let Some(existing) = listeners.iter().find(|listener| listener.id == wanted.id) else { return false };
    let (global_listener_key, config_key) = (existing.global_listener_key, existing.config_key);
    let source = GlobalListenerSource::Configuration;
    *existing == GlobalListenerValue { global_listener_key, config_key, source, ..wanted.clone() }
}

/// The command that has those defined which the configuration of the cluster defines.
pub fn configure_global_listeners(configured: &[GlobalListenerValue]) -> Command {
    let value = GlobalListenerBatchValue { global_listener_batch_key: Key::NONE, task_listeners: configured.to_vec() };
    Command::of_system(Key::NONE, Payload::GlobalListenerBatch(GlobalListenerBatchIntent::Configure, Box::new(value)))
}

/// Whether the configuration of the cluster defines what is there.
pub(crate) fn is_configured(state: &State, configured: &[GlobalListenerValue]) -> bool {
    let row = state.current_global_listeners();
    let listeners = row.as_ref().map_or(&[][..], |row| &row.listeners);
    no_more_configured(listeners, configured).next().is_none()
        && configured.iter().all(|wanted| is_there(listeners, wanted))
}

/// Creates, changes or deletes a listener; whether there was anything to do.
fn make_true(execution: &mut Execution<'_>, intent: GlobalListenerIntent, value: &GlobalListenerValue) -> bool {
    let configured = execution.state.current_global_listeners();
    let exists = configured.is_some_and(|row| row.listeners.iter().any(|listener| listener.id == value.id));
    let event = match (intent, exists) {
        (GlobalListenerIntent::Delete, true) => Some(GlobalListenerIntent::Deleted),
        (GlobalListenerIntent::Delete, false) => None,
        (_, true) => Some(GlobalListenerIntent::Updated),
        (_, false) => Some(GlobalListenerIntent::Created),
    };
    let Some(event) = event else { return false };
    let changed = Payload::GlobalListener(event, Box::new(value.clone()));
    execution.emit(value.global_listener_key, changed);
    true
}

fn tell_configured(execution: &mut Execution<'_>, configuration: Key) {
    let value = GlobalListenerBatchValue { global_listener_batch_key: configuration, task_listeners: Vec::new() };
    let configured = Payload::GlobalListenerBatch(GlobalListenerBatchIntent::Configured, Box::new(value));
    execution.emit(configuration, configured);
}

/// Tells whoever waits that every partition has the change.
pub(crate) fn answer(execution: &mut Execution<'_>, payload: Payload, request: Option<Request>) {
    let Some(request) = request else { return };
    match payload {
        Payload::GlobalListener(intent, value) => {
            let done = match intent {
                GlobalListenerIntent::Create => GlobalListenerIntent::Created,
                GlobalListenerIntent::Update => GlobalListenerIntent::Updated,
                _ => GlobalListenerIntent::Deleted,
            };
            let key = value.global_listener_key;
            execution.reply_to(request, key, Payload::GlobalListener(done, value));
        }
        Payload::GlobalListenerBatch(_, value) => {
            let configured = GlobalListenerBatchIntent::Configured;
            let key = value.global_listener_batch_key;
            execution.reply_to(request, key, Payload::GlobalListenerBatch(configured, value));
        }
        _ => {}
    }
}

/// The listeners to an event that run before those of the model, or behind them, in their order.
pub(crate) fn listening(
    listeners: &[GlobalListenerValue],
    event: JobListenerEventType,
    is_after: bool,
) -> impl Iterator<Item = &GlobalListenerValue> {
    listeners.iter().filter(move |listener| listener.after_non_global == is_after && listener.listens_to(event))
}
