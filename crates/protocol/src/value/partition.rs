//! Values about a partition itself: by which rules it works, in which life of its data, and with which time.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{PartitionId, Text, Timestamp};

/// By which rules commands of the partition are processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeatureLevelValue {
    /// The number of the level, from 1.
    #[n(0)]
    pub level: u32,
}

/// The life of a partition's data: restoring older data begins another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IncarnationValue {
    /// The number of the incarnation, from 1.
    #[n(0)]
    pub incarnation: u64,
    /// Keys that lives before may have given away have at most this counter.
    #[n(1)]
    pub key_counter: u64,
    /// Positions that lives before may have given away are at most this.
    #[n(2)]
    pub position: u64,
}

/// Settings that change what a command results in, so that they are part of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingsValue {
    /// Bytes that the variables of a root process instance and of all that it called may have. 0 leaves that as it is, when
    /// something else changes.
    #[n(0)]
    pub root_variable_bytes_max: u64,
    /// Whether no two living instances of a process that nobody called may have the same business id; none leaves that as it is.
    #[n(1)]
    pub business_ids_are_unique: Option<bool>,
}

/// A node that leads the partition, and takes requests and streams for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeValue {
    /// Its number.
    #[n(0)]
    pub node: u32,
    /// How often it began, from 1: the upper part of the numbers of its requests and streams.
    #[n(1)]
    pub start: u64,
}

/// The clock of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClockValue {
    /// The time at which the clock stands still.
    #[n(0)]
    pub time: Timestamp,
}

/// The cluster, and where its partitions send what belongs to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterValue {
    /// The name of the cluster, given once.
    #[n(0)]
    pub cluster_id: Text,
    /// The partitions that deployments go to, ascending.
    #[n(1)]
    pub active_partitions: Vec<PartitionId>,
    /// By how many partitions, from partition 1 on, messages find those who wait for them. Partitions that are added later do not
    /// change it, because messages and those who wait would then miss one another.
    #[n(2)]
    pub correlation_partition_count: u16,
}

/// That a partition forgets everything but itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PurgeValue {
    /// The incarnation that begins with it; as a wish, the least that it may be.
    #[n(0)]
    pub incarnation: u64,
}
