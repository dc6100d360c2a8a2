//! PURGE PURGE: the partition forgets everything but itself, for tests that share a node.
//!
//! Whoever may ask for it decides where it is asked: the state does not know who tests. Keys, positions and numbers of records go
//! on, so nothing of the life before is taken for something of the new one, and exporters stay where they are.

use protocol::{Key, Payload, PurgeIntent, PurgeValue, Rejection};

use crate::execution::{Execution, Outcome};

/// A table with more rows is not emptied by one command.
const PURGED_ROWS_MAX: usize = 100_000;

pub(crate) fn purge(execution: &mut Execution<'_>, value: PurgeValue) -> Outcome {
    let counters = &execution.state.counters;
    let incarnation = value.incarnation.max(counters.incarnation.saturating_add(1));
    if let Some(table) = large_table(execution) {
        return Err(Rejection::invalid_state(format!(
            "Expected to purge the partition, but it has more than {PURGED_ROWS_MAX} {table}; start a new node on an empty directory \
             instead"
        ))
        .into());
    }
    let purged = Payload::Purge(PurgeIntent::Purged, PurgeValue { incarnation });
    execution.emit(Key::NONE, purged.clone());
    execution.reply(Key::NONE, purged);
    Ok(())
}

/// What there is too much of for one command. Of everything else there is not more than of these.
fn large_table(execution: &Execution<'_>) -> Option<&'static str> {
    let tables = &execution.state.tables;
    let is_large = |rows: usize| rows > PURGED_ROWS_MAX;
    let counted = PURGED_ROWS_MAX + 1;
    [
        ("element instances", is_large(tables.element_instances.iter().take(counted).count())),
        ("variables", is_large(tables.variables.iter().take(counted).count())),
        ("messages", is_large(tables.messages.iter().take(counted).count())),
        ("subscriptions to messages", is_large(tables.message_subscriptions.iter().take(counted).count())),
        ("commands for other partitions", is_large(tables.outbox.entries().take(counted).count())),
        ("items of loops", is_large(tables.loop_items.iter().take(counted).count())),
    ]
    .into_iter()
    .find_map(|(name, is_large)| is_large.then_some(name))
}
