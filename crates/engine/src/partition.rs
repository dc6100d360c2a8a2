//! Commands about the partition itself: its rules, its data's life, its settings, its cluster and its clock.

pub(crate) mod bootstrap_cluster;
pub(crate) mod change_settings;
pub(crate) mod pin_clock;
pub(crate) mod purge;
pub(crate) mod raise_feature_level;
pub(crate) mod raise_incarnation;
pub(crate) mod reset_clock;
pub(crate) mod start_node;
