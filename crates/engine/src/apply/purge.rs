//! A partition forgets everything but itself.

use protocol::{PurgeIntent, PurgeValue};

use super::change::not_an_event;
use crate::state::{Counters, InboxRow, State, Tables};

/// Empties tables. Those of workers (`job_streams`, `job_streams_by_type`, `served_streams`), of nodes (`node_starts`) and of the
/// cluster (`cluster`) are not among them.
macro_rules! empty {
    ($tables:expr, $($table:ident),* $(,)?) => {
        let tables: &mut Tables = $tables;
        $(tables.$table.clear();)*
    };
}

pub(super) fn apply(state: &mut State, intent: PurgeIntent, value: PurgeValue) {
    match intent {
        PurgeIntent::Purged => purge(state, value.incarnation),
        PurgeIntent::Purge => not_an_event(state, intent.name()),
    }
}

fn purge(state: &mut State, incarnation: u64) {
    empty_execution(&mut state.tables);
    empty_messages(&mut state.tables);
    empty_resources(&mut state.tables);
    // What others sent in their lives before must not bring anything back. They begin a new order when they are purged.
    let senders: Vec<u16> = state.tables.inbox_sequences.iter().map(|(sender, _)| sender).collect();
    for sender in senders {
        state.tables.inbox_sequences.put(sender, InboxRow { incarnation, sequence: 0, awaits_oldest: true });
    }
    let of = state.counters;
    state.counters = Counters {
        key: of.key,
        position: of.position,
        work_in: of.work_in,
        timestamp: of.timestamp,
        job_streams: of.job_streams,
        incarnation,
        root_variable_bytes_max: of.root_variable_bytes_max,
        pinned_clock: of.pinned_clock,
        records: of.records,
        correlation_partition_count: of.correlation_partition_count,
        business_ids_are_unique: of.business_ids_are_unique,
        ..Counters::new(of.feature_level)
    };
}

/// Instances, and what is done for them.
fn empty_execution(tables: &mut Tables) {
    empty!(
        tables,
        element_instances,
        children,
        waiting_tokens,
        variables,
        jobs,
        available_jobs,
        job_deadlines,
        pushed_jobs,
        polled_jobs,
        job_backoffs,
        incidents,
        banned_instances,
        work,
        outbox,
        outbox_sequences,
        awaited_results,
        timers,
        timers_by_owner,
        due_timers,
        event_triggers,
        loop_items,
        loop_outputs,
        runtime_instructions,
        living_instances,
        user_tasks,
        compensation_subscriptions,
        compensation_scopes,
        compensable,
        compensable_activities,
        compensation_activities,
        compensation_throw_events,
        compensation_handlers,
        compensations,
        business_ids,
        conditional_subscriptions,
        conditional_variables,
        conditional_scopes,
        conditional_counts,
        conditional_start_events,
        global_listeners,
        pinned_global_listeners,
    );
}

/// Messages and signals, and who waits for them.
fn empty_messages(tables: &mut Tables) {
    empty!(
        tables,
        messages,
        messages_by_address,
        message_ids,
        message_deadlines,
        message_correlations,
        message_subscriptions,
        waiting_subscriptions,
        busy_subscriptions,
        waiting_processes,
        process_message_subscriptions,
        message_start_subscriptions,
        message_started_processes,
        message_locks,
        message_lock_keys,
        message_cursors,
        released_messages,
        awaited_correlations,
        signal_subscriptions,
        signal_receivers,
    );
}

/// What was deployed.
fn empty_resources(tables: &mut Tables) {
    empty!(
        tables,
        processes,
        latest_processes,
        process_versions,
        distributions,
        pending_distributions,
        processes_by_deployment,
        processes_by_version_tag,
        deleted_versions,
        deleting_processes,
        decision_requirements,
        latest_decision_requirements,
        decision_requirements_versions,
        decisions,
        latest_decisions,
        decision_versions,
        decisions_by_requirements,
        decisions_by_deployment,
        decisions_by_version_tag,
        forms,
        latest_forms,
        form_versions,
        forms_by_deployment,
        forms_by_version_tag,
        deleted_form_versions,
        resources,
        latest_resources,
        resource_versions,
        resources_by_deployment,
        resources_by_version_tag,
        deleted_resource_versions,
    );
}

#[cfg(test)]
mod tests {
    /// Whoever adds a table decides here whether it is emptied.
    #[test]
    fn every_table_is_emptied_or_named_as_one_that_stays() {
        let (state, purge) = (include_str!("../state.rs"), include_str!("purge.rs"));
        let purge = &purge[..purge.find("mod tests").expect("this module")];
        let tables = state.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(": state::"));
        let names: Vec<&str> = tables.map(|(name, _)| name).collect();
        assert!(names.len() > 50, "{names:?}");
        for name in names {
            let is_named = purge.contains(&format!("        {name},\n")) || purge.contains(&format!("`{name}`"));
            assert!(is_named || name == "inbox_sequences", "{name}");
        }
    }
}
