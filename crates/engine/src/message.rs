//! Messages and what waits for them: one file per subject of commands.
//!
//! A message is kept and correlated on the partition of its correlation key. An element instance that waits has a
//! subscription in two places: where it lives (`PROCESS_MESSAGE_SUBSCRIPTION`) and where the message arrives
//! (`MESSAGE_SUBSCRIPTION`). Commands keep the two in step. Between two partitions they arrive once and in order, so every
//! CORRELATE is answered by exactly one CORRELATE or REJECT, and nothing is ever repeated.

pub(crate) mod buffer;
pub(crate) mod correlation;
pub(crate) mod expire;
pub(crate) mod message_subscription;
pub(crate) mod process_message_subscription;
pub(crate) mod publish;
pub(crate) mod start_event;
pub(crate) mod subscription;

use protocol::{
    Command, Key, MessageSubscriptionIntent, MessageSubscriptionValue, Payload, ProcessMessageSubscriptionIntent,
    ProcessMessageSubscriptionValue,
};

use crate::distribution;
use crate::execution::Execution;
use crate::routing;

/// To the partition where the messages of a correlation key arrive.
pub(crate) fn send_to_message(
    execution: &mut Execution<'_>,
    correlation_key: &str,
    intent: MessageSubscriptionIntent,
    value: MessageSubscriptionValue,
) {
    let partition = routing::correlation_partition(execution, correlation_key);
    let command = Command::new(Key::NONE, Payload::MessageSubscription(intent, Box::new(value)));
    distribution::send_command(execution, partition, command);
}

/// To the partition where the instance lives.
fn send_to_instance(
    execution: &mut Execution<'_>,
    intent: ProcessMessageSubscriptionIntent,
    value: ProcessMessageSubscriptionValue,
) {
    let partition = value.process_instance_key.partition().unwrap_or(execution.state.partition);
    let command = Command::new(Key::NONE, Payload::ProcessMessageSubscription(intent, Box::new(value)));
    distribution::send_command(execution, partition, command);
}

/// Whether this is the partition of a correlation key.
fn is_here(execution: &Execution<'_>, correlation_key: &str) -> bool {
    routing::correlation_partition_count(execution) <= 1
        || routing::correlation_partition(execution, correlation_key) == execution.state.partition
}
