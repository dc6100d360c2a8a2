//! Commands between partitions: each is kept in the outbox and sent again until the other partition acknowledges it,
//! and is taken once and in order, even if it was sent twice or overtaken on the way.

use protocol::{
    Command, CommandBatch, CommandDistributionIntent, CommandDistributionValue, Key, OutboxIntent, OutboxSource,
    OutboxValue, PartitionId, Payload, Rejection,
};

use crate::execution::step::Step;
use crate::execution::{Execution, Outcome};
use crate::output::{OutgoingCommand, Output};
use crate::payload_bytes::command_bytes;
use crate::routing;
use crate::state::{InboxRow, State};

/// Commands that one acknowledgement takes out of the outbox; more are there only if many acknowledgements were lost, and go
/// with the next one.
const ACKNOWLEDGED_PER_COMMAND_MAX: usize = 10_000;

/// Sends a command to every other partition; when all have it, the distribution is finished.
pub(crate) fn start(execution: &mut Execution<'_>, key: Key, payload: Payload) {
    let command = Command::new(key, payload).following(&execution.origin);
    let queue = match &command.payload {
        Payload::GlobalListener(..) | Payload::GlobalListenerBatch(..) => "GLOBAL_LISTENERS",
        _ => "DEPLOYMENT",
    };
    let value = |partition_id, command_of| {
        Box::new(CommandDistributionValue {
            partition_id,
            queue_id: queue.into(),
            value_type: command.payload.value_type().name().into(),
            intent: command.payload.intent_name().into(),
            command: command_of,
        })
    };
    let own = execution.state.partition;
    // The waiting client stays here.
    let started = value(own, Some(Box::new(Command { request: execution.request, ..command.clone() })));
    execution.emit(key, Payload::CommandDistribution(CommandDistributionIntent::Started, started));
    for partition in routing::other_partitions(execution) {
        let distributing =
            Payload::CommandDistribution(CommandDistributionIntent::Distributing, value(partition, None));
        execution.emit(key, distributing);
        enqueue(execution, partition, key, command.clone());
    }
}

/// Refuses a distribution while many wait for a partition that does not acknowledge: it may be gone for good, and each is kept.
pub(crate) fn check_distributions(execution: &Execution<'_>) -> Result<(), Rejection> {
    let (tables, pending_max) = (&execution.state.tables, execution.limits.pending_distributions_max);
    if !routing::has_other_partitions(execution) || tables.distributions.iter().take(pending_max).count() < pending_max
    {
        return Ok(());
    }
    let oldest = tables.pending_distributions.iter().next();
    let partition = oldest.map_or_else(|| "another one".to_owned(), |((_, partition), _)| partition.to_string());
    Err(Rejection::invalid_state(format!(
        "Expected to tell every partition of it, but {pending_max} deployments and deletions before it wait, the oldest for \
         partition {partition}, which does not acknowledge; look at the health of that partition, and try again when it is back"
    )))
}

/// Checks that a partition takes what is sent to it: commands that start something there wait while many are not acknowledged.
pub(crate) fn check_outbox(execution: &Execution<'_>, partition: PartitionId) -> Result<(), String> {
    let Some(waiting) = full_outbox(execution, partition) else { return Ok(()) };
    Err(format!(
        "Expected partition {partition} to acknowledge what it is sent, but {waiting} commands for it wait. Look at the health of \
         that partition, and resolve the incident when it is back."
    ))
}

/// How many commands wait for a partition, if they are too many to start something there.
pub(crate) fn full_outbox(execution: &Execution<'_>, partition: PartitionId) -> Option<u64> {
    let tables = &execution.state.tables;
    // Sequences have no gap.
    let (first, _) = tables.outbox.first(&partition.0)?;
    let last = tables.outbox_sequences.get(&partition.0).map_or(first, |sequence| *sequence);
    let waiting = last.saturating_sub(first) + 1;
    (waiting >= execution.limits.outbox_commands_max).then_some(waiting)
}

/// Sends a command to another partition, where it arrives once and in order; to this one, as a step of its own that follows
/// those that wait already.
pub(crate) fn send_command(execution: &mut Execution<'_>, partition: PartitionId, command: Command) {
    if partition == execution.state.partition {
        execution.steps.push_back(Step::Command(Box::new(command)));
    } else {
        enqueue(execution, partition, Key::NONE, command);
    }
}

/// Sends a command to every other partition, where it arrives once and in order.
pub(crate) fn send_to_others(execution: &mut Execution<'_>, command: &Command) {
    for partition in routing::other_partitions(execution) {
        enqueue(execution, partition, Key::NONE, command.clone());
    }
}

/// Puts a command into the outbox and sends it.
fn enqueue(execution: &mut Execution<'_>, partition: PartitionId, distribution_key: Key, command: Command) {
    let mut command = command.following(&execution.origin);
    let bytes = command_bytes(&command);
    if bytes > execution.limits.outbox_command_bytes_max {
        execution.exceed("a command for another partition", bytes, execution.limits.outbox_command_bytes_max);
        return;
    }
    let sequence = execution.state.tables.outbox_sequences.get(&partition.0).map_or(0, |sequence| *sequence) + 1;
    let incarnation = execution.state.counters.incarnation;
    let (own, is_oldest) = (execution.state.partition, false);
    command.source = Some(OutboxSource { partition: own, sequence, incarnation, is_oldest });
    let kept = Some(Box::new(command.clone()));
    let value = OutboxValue { partition, sequence, distribution_key, command: kept, incarnation };
    execution.emit(Key::NONE, Payload::Outbox(OutboxIntent::Enqueued, Box::new(value)));
    execution.send(partition, command);
}

/// What to do with a command that came from another partition.
pub(crate) enum Arrival {
    /// It is the next in order.
    Next,
    /// It was taken before, or one before it is missing; nothing is done now.
    NotNext,
    /// The sender was restored since, and knows nothing of it any more.
    OfOldIncarnation(Rejection),
}

/// Where the order of a sender's commands stands.
fn received_from(state: &State, sender: PartitionId) -> InboxRow {
    let row = state.tables.inbox_sequences.get(&sender.0).map(|row| *row);
    // A partition that was restored may have known senders that it knows nothing of now.
    row.unwrap_or(InboxRow { incarnation: 0, sequence: 0, awaits_oldest: state.counters.incarnation > 1 })
}

/// Notes the arrival of a command from another partition.
///
/// When one of the two was restored, the sequences of both sides do not fit each other any more. The order then goes on with
/// the oldest command that the sender keeps: it was not acknowledged in the sender's present life.
pub(crate) fn receive(execution: &mut Execution<'_>, source: OutboxSource) -> Arrival {
    let received = received_from(&execution.state, source.partition);
    if source.incarnation < received.incarnation {
        return Arrival::OfOldIncarnation(Rejection::invalid_state(format!(
            "Expected a command from incarnation {} of partition {}, but it is from incarnation {}: the data of that partition was \
             restored since, and does not hold it",
            received.incarnation, source.partition, source.incarnation
        )));
    }
    let is_anew = received.awaits_oldest || (source.incarnation > received.incarnation && received.incarnation > 0);
    let is_next = match is_anew {
        true => source.is_oldest || source.sequence == 1,
        false => source.sequence == received.sequence.saturating_add(1),
    };
    if !is_next {
        return Arrival::NotNext;
    }
    let value = OutboxValue {
        partition: source.partition,
        sequence: source.sequence,
        distribution_key: Key::NONE,
        command: None,
        incarnation: source.incarnation,
    };
    execution.emit(Key::NONE, Payload::Outbox(OutboxIntent::Received, Box::new(value)));
    Arrival::Next
}

/// Acknowledges to each partition that sent something with a batch up to where all its commands were taken.
pub(crate) fn acknowledge(state: &State, batch: &CommandBatch, output: &mut Output) {
    let mut acknowledged: Vec<PartitionId> = Vec::new();
    for source in batch.commands.iter().filter_map(|command| command.source) {
        if acknowledged.contains(&source.partition) {
            continue;
        }
        let received = received_from(state, source.partition);
        let is_known = source.incarnation == received.incarnation && !received.awaits_oldest;
        if !is_known || source.sequence > received.sequence {
            // One before it is missing, or its sender was restored.
            continue;
        }
        acknowledged.push(source.partition);
        let value = OutboxValue {
            partition: state.partition,
            sequence: received.sequence,
            distribution_key: Key::NONE,
            command: None,
            incarnation: received.incarnation,
        };
        let command = Command::of_system(Key::NONE, Payload::Outbox(OutboxIntent::Acknowledge, Box::new(value)));
        output.sends.push(OutgoingCommand { partition: source.partition, command });
    }
}

/// OUTBOX ACKNOWLEDGE: the other partition has this command and all before it.
pub(crate) fn acknowledged(execution: &mut Execution<'_>, value: &OutboxValue) -> Outcome {
    let incarnation = execution.state.counters.incarnation;
    if value.incarnation != incarnation {
        // Sequences of another life may have gone to other commands.
        return Err(Rejection::invalid_state(format!(
            "Expected to acknowledge commands of incarnation {incarnation} for partition {}, but these are of incarnation {}",
            value.partition, value.incarnation
        ))
        .into());
    }
    let rows = newly_acknowledged(&execution.state, value);
    let Some((sequence, _)) = rows.last().copied() else {
        return Err(Rejection::not_found(format!(
            "Expected to acknowledge the commands for partition {} up to {}, but they are acknowledged already",
            value.partition, value.sequence
        ))
        .into());
    };
    let acknowledged = OutboxValue { sequence, distribution_key: Key::NONE, command: None, ..value.clone() };
    execution.emit(Key::NONE, Payload::Outbox(OutboxIntent::Acknowledged, Box::new(acknowledged)));
    for (_, distribution) in rows.iter().filter(|(_, distribution)| distribution.is_some()) {
        distributed_to(execution, *distribution, value.partition);
    }
    Ok(())
}

/// The sequences of what an acknowledgement takes out of the outbox, with the distributions that wait for it.
pub(crate) fn newly_acknowledged(state: &State, value: &OutboxValue) -> Vec<(u64, Key)> {
    if value.incarnation != state.counters.incarnation {
        return Vec::new();
    }
    let partition = value.partition.0;
    let rows = state.tables.outbox.iter(&partition).take_while(|(sequence, _)| *sequence <= value.sequence);
    rows.take(ACKNOWLEDGED_PER_COMMAND_MAX).map(|(sequence, row)| (sequence, row.distribution)).collect()
}

fn distributed_to(execution: &mut Execution<'_>, key: Key, partition: PartitionId) {
    let Some(row) = execution.state.tables.distributions.get(&key.raw()) else { return };
    let value = CommandDistributionValue { partition_id: partition, command: None, ..row.value.clone() };
    let acknowledged = Payload::CommandDistribution(CommandDistributionIntent::Acknowledged, Box::new(value));
    execution.emit(key, acknowledged);
    let is_pending = execution.state.tables.pending_distributions.prefix(&key.raw()).next().is_some();
    if is_pending {
        return;
    }
    let finished = CommandDistributionValue { command: None, ..row.value.clone() };
    execution.emit(key, Payload::CommandDistribution(CommandDistributionIntent::Finished, Box::new(finished)));
    let Some(command) = &row.value.command else { return };
    // That it is everywhere now is still what its sender wanted, whoever acknowledged it last.
    let acknowledgement = std::mem::replace(&mut execution.origin, command.origin());
    match &command.payload {
        Payload::Deployment(_, deployment) => crate::deployment::fully_distributed(execution, key, deployment),
        Payload::ResourceDeletion(_, deletion) => {
            crate::resource_deletion::fully_distributed(execution, key, deletion, command.request);
        }
        Payload::GlobalListener(..) | Payload::GlobalListenerBatch(..) => {
            crate::global_listener::answer(execution, command.payload.clone(), command.request);
        }
        _ => {}
    }
    execution.origin = acknowledgement;
}
