//! Events about the partition itself.

use protocol::{
    ClockIntent, ClockValue, ClusterIntent, ClusterValue, FeatureLevelIntent, FeatureLevelValue, IncarnationIntent,
    IncarnationValue, NodeIntent, NodeValue, SettingsIntent, SettingsValue,
};

use super::change::{broken, not_an_event};
use crate::state::{ClusterRow, FeatureLevel, State};

pub(super) fn apply_feature_level(state: &mut State, intent: FeatureLevelIntent, value: FeatureLevelValue) {
    match intent {
        // The command was looked at: the engine goes by the level.
        FeatureLevelIntent::Raised => match FeatureLevel::known_to(value.level, FeatureLevel::TEST) {
            Ok(level) => state.counters.feature_level = level,
            Err(error) => broken(state, error.to_string()),
        },
        FeatureLevelIntent::Raise => not_an_event(state, intent.name()),
    }
}

/// What other partitions sent in between is not known, so each order goes on with the oldest command that is still sent.
pub(super) fn apply_incarnation(state: &mut State, intent: IncarnationIntent, value: &IncarnationValue) {
    match intent {
        IncarnationIntent::Raised => {
            let counters = &mut state.counters;
            counters.incarnation = value.incarnation;
            counters.key = counters.key.max(value.key_counter);
            counters.position = counters.position.max(value.position);
            let senders: Vec<u16> = state.tables.inbox_sequences.iter().map(|(sender, _)| sender).collect();
            for sender in senders {
                state.tables.inbox_sequences.update(&sender, |row| row.awaits_oldest = true);
            }
        }
        IncarnationIntent::Raise => not_an_event(state, intent.name()),
    }
}

pub(super) fn apply_settings(state: &mut State, intent: SettingsIntent, value: SettingsValue) {
    match intent {
        SettingsIntent::Changed => {
            let counters = &mut state.counters;
            if value.root_variable_bytes_max > 0 {
                counters.root_variable_bytes_max = Some(value.root_variable_bytes_max);
            }
            counters.business_ids_are_unique =
                value.business_ids_are_unique.unwrap_or(counters.business_ids_are_unique);
        }
        SettingsIntent::Change => not_an_event(state, intent.name()),
    }
}

pub(super) fn apply_clock(state: &mut State, intent: ClockIntent, value: ClockValue) {
    match intent {
        ClockIntent::Pinned => state.counters.pinned_clock = Some(value.time),
        ClockIntent::Resetted => state.counters.pinned_clock = None,
        ClockIntent::Pin | ClockIntent::Reset => not_an_event(state, intent.name()),
    }
}

pub(super) fn apply_cluster(state: &mut State, intent: ClusterIntent, value: &ClusterValue) {
    match intent {
        ClusterIntent::Bootstrapped => {
            state.counters.correlation_partition_count = Some(value.correlation_partition_count);
            state.tables.cluster.put((), ClusterRow { value: value.clone() });
        }
        ClusterIntent::Bootstrap => not_an_event(state, intent.name()),
    }
}

pub(super) fn apply_node(state: &mut State, intent: NodeIntent, value: NodeValue) {
    match intent {
        NodeIntent::Started => state.tables.node_starts.put(value.node, value.start),
        NodeIntent::Start => not_an_event(state, intent.name()),
    }
}
