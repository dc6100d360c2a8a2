//! Events of commands between partitions.

use protocol::{CommandDistributionIntent, CommandDistributionValue, Key, OutboxIntent, OutboxValue};

use crate::state::{DistributionRow, InboxRow, OutboxRow, State};

pub(super) fn apply(state: &mut State, key: Key, intent: CommandDistributionIntent, value: &CommandDistributionValue) {
    match intent {
        CommandDistributionIntent::Started => {
            state.tables.distributions.insert_new(key.raw(), DistributionRow { value: value.clone() });
        }
        CommandDistributionIntent::Distributing => {
            state.tables.pending_distributions.insert_new((key.raw(), value.partition_id.0), ());
        }
        CommandDistributionIntent::Acknowledged => {
            state.tables.pending_distributions.delete(&(key.raw(), value.partition_id.0));
        }
        CommandDistributionIntent::Finished => state.tables.distributions.delete(&key.raw()),
        // Commands, and what belongs to queues that this version does not need: the outbox keeps the order.
        CommandDistributionIntent::Acknowledge
        | CommandDistributionIntent::Enqueued
        | CommandDistributionIntent::ContinuationRequested
        | CommandDistributionIntent::Continued
        | CommandDistributionIntent::Finish
        | CommandDistributionIntent::Continue => super::change::not_an_event(state, intent.name()),
    }
}

pub(super) fn apply_outbox(state: &mut State, intent: OutboxIntent, value: &OutboxValue) {
    let partition = value.partition.0;
    match intent {
        OutboxIntent::Enqueued => {
            let Some(command) = &value.command else {
                return super::change::broken(state, "it holds no command to be sent".to_owned());
            };
            let row = OutboxRow { command: (**command).clone(), distribution: value.distribution_key };
            state.tables.outbox.insert(partition, value.sequence, row);
            state.tables.outbox_sequences.put(partition, value.sequence);
        }
        OutboxIntent::Acknowledged => {
            state.tables.outbox.remove_up_to(&partition, &value.sequence);
        }
        OutboxIntent::Received => {
            let row = InboxRow { incarnation: value.incarnation, sequence: value.sequence, awaits_oldest: false };
            state.tables.inbox_sequences.put(partition, row);
        }
        OutboxIntent::Acknowledge => super::change::not_an_event(state, intent.name()),
    }
}
