//! Commands between partitions: each is kept in the outbox until the other partition has it, is sent again as long as it is
//! not acknowledged, and is taken once, in order, whatever was sent twice or overtaken on the way.

use protocol::{
    Command, CommandDistributionIntent, CommandDistributionValue, Key, OutboxIntent, OutboxSource, OutboxValue,
    PartitionId, Payload, Rejection,
};

use crate::element::Step;
use crate::execution::{Execution, Outcome};

/// Sends a command to every other partition; when all have it, the distribution is finished.
pub(crate) fn start(execution: &mut Execution<'_>, key: Key, payload: Payload) {
    let command = Command::new(key, payload);
    let value = |partition_id, command| {
        Box::new(CommandDistributionValue {
            partition_id,
            queue_id: "DEPLOYMENT".into(),
            value_type: "DEPLOYMENT".into(),
            intent: "CREATE".into(),
            command,
        })
    };
    let own = execution.state.partition;
    let started = value(own, Some(Box::new(command.clone())));
    execution.emit(key, Payload::CommandDistribution(CommandDistributionIntent::Started, started));
    for partition in (1..=execution.partition_count).map(PartitionId).filter(|partition| *partition != own) {
        let distributing =
            Payload::CommandDistribution(CommandDistributionIntent::Distributing, value(partition, None));
        execution.emit(key, distributing);
        enqueue(execution, partition, key, command.clone());
    }
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

/// Puts a command into the outbox and sends it.
fn enqueue(execution: &mut Execution<'_>, partition: PartitionId, distribution_key: Key, mut command: Command) {
    let sequence = execution.state.tables.outbox_sequences.get(&partition.0).map_or(0, |sequence| *sequence) + 1;
    command.source = Some(OutboxSource { partition: execution.state.partition, sequence });
    let value = OutboxValue { partition, sequence, distribution_key, command: Some(Box::new(command.clone())) };
    execution.emit(Key::NONE, Payload::Outbox(OutboxIntent::Enqueued, Box::new(value)));
    execution.send(partition, command);
}

/// What to do with a command that came from another partition.
pub(crate) enum Arrival {
    /// It is the next in order.
    Next,
    /// It was taken before, or one before it is missing; nothing is done now.
    NotNext,
}

/// Notes the arrival of a command from another partition and acknowledges it.
pub(crate) fn receive(execution: &mut Execution<'_>, source: OutboxSource) -> Arrival {
    let received = execution.state.tables.inbox_sequences.get(&source.partition.0).map_or(0, |sequence| *sequence);
    if source.sequence > received + 1 {
        return Arrival::NotNext;
    }
    acknowledge(execution, source);
    if source.sequence <= received {
        return Arrival::NotNext;
    }
    let value = OutboxValue {
        partition: source.partition,
        sequence: source.sequence,
        distribution_key: Key::NONE,
        command: None,
    };
    execution.emit(Key::NONE, Payload::Outbox(OutboxIntent::Received, Box::new(value)));
    Arrival::Next
}

fn acknowledge(execution: &mut Execution<'_>, source: OutboxSource) {
    let value = OutboxValue {
        partition: execution.state.partition,
        sequence: source.sequence,
        distribution_key: Key::NONE,
        command: None,
    };
    let command = Command::new(Key::NONE, Payload::Outbox(OutboxIntent::Acknowledge, Box::new(value)));
    execution.send(source.partition, command);
}

/// OUTBOX ACKNOWLEDGE: the other partition has the command.
pub(crate) fn acknowledged(execution: &mut Execution<'_>, value: &OutboxValue) -> Outcome {
    let place = (value.partition.0, value.sequence);
    let Some(row) = execution.state.tables.outbox.get(&place) else {
        return Err(Rejection::not_found(format!(
            "Expected to acknowledge command {} for partition {}, but it is acknowledged already",
            value.sequence, value.partition
        ))
        .into());
    };
    let distribution_key = row.distribution;
    let acknowledged = OutboxValue { distribution_key, command: None, ..value.clone() };
    execution.emit(Key::NONE, Payload::Outbox(OutboxIntent::Acknowledged, Box::new(acknowledged)));
    if distribution_key.is_some() {
        distributed_to(execution, distribution_key, value.partition);
    }
    Ok(())
}

fn distributed_to(execution: &mut Execution<'_>, key: Key, partition: PartitionId) {
    let Some(row) = execution.state.tables.distributions.get(&key.raw()) else { return };
    let value = CommandDistributionValue { partition_id: partition, command: None, ..row.value.clone() };
    let acknowledged = Payload::CommandDistribution(CommandDistributionIntent::Acknowledged, Box::new(value));
    execution.emit(key, acknowledged);
    let is_pending =
        execution.state.tables.pending_distributions.range((key.raw(), 0)..=(key.raw(), u16::MAX)).next().is_some();
    if is_pending {
        return;
    }
    let finished = CommandDistributionValue { command: None, ..row.value.clone() };
    execution.emit(key, Payload::CommandDistribution(CommandDistributionIntent::Finished, Box::new(finished)));
    if let Some(Payload::Deployment(_, deployment)) = row.value.command.as_ref().map(|command| &command.payload) {
        crate::deployment::fully_distributed(execution, key, deployment);
    }
}
