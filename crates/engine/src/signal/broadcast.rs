//! SIGNAL BROADCAST: by a client, by an event that throws, or by another partition.
//!
//! A signal may reach very many. It is brought to a bounded number of subscriptions at a time; an entry of the work queue goes on
//! behind them, so that other commands come in between. What was opened after the signal came does not get it.

use bpmn::model::StaticOrExpression;
use protocol::{Command, ErrorType, Key, Payload, Rejection, SignalIntent, SignalRest, SignalValue, WorkValue};

use super::{start_event, subscription};
use crate::distribution;
use crate::event;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::name::key_bytes;
use crate::routing;
use crate::variable::document;

/// Subscriptions that a signal is brought to before other commands have their turn.
const RECEIVERS_AT_ONCE_MAX: usize = 100;

pub(crate) fn broadcast(execution: &mut Execution<'_>, command: &Command, value: &SignalValue) -> Outcome {
    if let Some(rest) = value.rest {
        return bring(execution, value, rest);
    }
    let begins_here = command.source.is_none();
    // What an event throws was checked before, when there could still be an incident.
    if command.request.is_some() {
        check(execution, value)?;
    }
    let key = if begins_here { execution.state.next_key() } else { command.key };
    let broadcasted = Payload::Signal(SignalIntent::Broadcasted, Box::new(value.clone()));
    execution.emit(key, broadcasted.clone());
    if begins_here {
        // The request of what led to an event that throws is not about the signal.
        if let Some(request) = command.request {
            execution.reply_to(request, key, broadcasted);
        }
        let elsewhere = Payload::Signal(SignalIntent::Broadcast, Box::new(value.clone()));
        distribution::send_to_others(execution, &Command::new(key, elsewhere));
    }
    let up_to = Key::new(execution.state.partition, execution.state.counters.key);
    bring(execution, value, SignalRest { after: Key::NONE, up_to, starts_instances: begins_here })
}

/// Whether a signal can be broadcast.
fn check(execution: &Execution<'_>, value: &SignalValue) -> Result<(), Rejection> {
    let (bytes, bytes_max) = (key_bytes(&value.signal_name), execution.limits.name_bytes_max);
    if !(1..=bytes_max).contains(&bytes) {
        return Err(Rejection::invalid_argument(format!(
            "Expected the name of a signal to have 1 to {bytes_max} bytes, but it has {bytes}"
        )));
    }
    document::split(&value.variables, bytes_max)?;
    check_way(execution, value.variables.len()).map_err(Rejection::invalid_state)
}

/// Whether this partition and every other one takes the signal.
fn check_way(execution: &Execution<'_>, variable_bytes: usize) -> Result<(), String> {
    // The envelope of the command is counted where it is sent.
    let bytes_max = execution.limits.outbox_command_bytes_max.saturating_sub(1_000);
    if variable_bytes as u64 > bytes_max {
        return Err(format!(
            "Expected the variables of a signal to have at most {bytes_max} bytes, but they have {variable_bytes}. Let the signal \
             bring less."
        ));
    }
    let (waiting, waiting_max) = (execution.state.counters.work_entries, execution.limits.work_entries_max);
    if waiting >= waiting_max {
        return Err(format!(
            "Expected to broadcast a signal when what others have begun is done, but {waiting} entries of the work queue of \
             partition {} wait. Try again later.",
            execution.state.partition
        ));
    }
    let others = routing::other_partitions(execution);
    others.into_iter().try_for_each(|partition| distribution::check_outbox(execution, partition))
}

/// The broadcast that a throw or end event begins.
pub(crate) fn of_event(
    execution: &Execution<'_>,
    token: &Token,
    name: &StaticOrExpression,
) -> Result<Command, Problem> {
    let signal_name = subscription::name(execution, token, token.element, name)?;
    let variables = document::of_local(&execution.state, token.key);
    check_way(execution, variables.len()).map_err(|message| Problem::new(ErrorType::ExtractValueError, message))?;
    let tenant_id = token.value().tenant_id.clone();
    let value = SignalValue { signal_name, variables: variables.into(), tenant_id, rest: None };
    Ok(Command::new(Key::NONE, Payload::Signal(SignalIntent::Broadcast, Box::new(value))))
}

/// Brings a signal to the next of those that wait for it.
fn bring(execution: &mut Execution<'_>, value: &SignalValue, rest: SignalRest) -> Outcome {
    let name = (value.tenant_id.shared().clone(), value.signal_name.shared().clone());
    let at_once = execution.at_once(RECEIVERS_AT_ONCE_MAX);
    let receivers = execution.state.tables.signal_receivers.iter_after(&name, &rest.after.raw());
    let receivers = receivers.take_while(|(key, _)| *key <= rest.up_to.raw());
    let receivers: Vec<(i64, i64)> = receivers.take(at_once + 1).map(|(key, owner)| (key, *owner)).collect();
    let mut after = rest.after;
    for (count, (key, owner)) in receivers.into_iter().enumerate() {
        if count == at_once || (count > 0 && execution.is_over_budget()) {
            go_on_later(execution, value, SignalRest { after, ..rest });
            break;
        }
        after = Key::from_raw(key);
        reach(execution, value, (owner, key), rest.starts_instances)?;
    }
    Ok(())
}

/// Brings a signal to one that waits, if it still may.
fn reach(
    execution: &mut Execution<'_>,
    value: &SignalValue,
    subscription: (i64, i64),
    starts_instances: bool,
) -> Outcome {
    let Some(row) = execution.state.tables.signal_subscriptions.get(&subscription) else { return Ok(()) };
    let waiting = row.value.catch_event_instance_key;
    if waiting.is_none() {
        if starts_instances {
            start_event::start(execution, &row.value, &value.variables);
        }
        return Ok(());
    }
    // What goes wrong now is the fault of this instance, and must not stop the signal on its way to others.
    execution.at = waiting;
    let Some(scope) = Token::find(execution, waiting)? else { return Ok(()) };
    let Some(event) = scope.process.find_event(&row.value.catch_event_id) else { return Ok(()) };
    let is_boundary_event = scope.element().boundary_events.contains(&event);
    let is_banned = execution.state.is_banned(scope.value().process_instance_key);
    if !is_banned && event::can_trigger(&execution.state, &scope.instance, is_boundary_event) {
        event::trigger(execution, &scope, event, value.variables.clone());
        // Before the next one is blamed for it.
        execution.check_step()?;
    }
    Ok(())
}

/// The rest waits its turn in the work queue.
fn go_on_later(execution: &mut Execution<'_>, value: &SignalValue, rest: SignalRest) {
    let value = SignalValue { rest: Some(rest), ..value.clone() };
    let command = Command::new(Key::NONE, Payload::Signal(SignalIntent::Broadcast, Box::new(value)));
    let work = WorkValue {
        commands: vec![command.following(&execution.origin)],
        // Signals that cause one another without end are seen, however many each of them reaches.
        rounds: execution.rounds,
        ..WorkValue::default()
    };
    execution.enqueue(work);
}
