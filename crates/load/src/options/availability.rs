//! The options of a measurement of data availability.

use std::time::Duration;

use serde::Serialize;

use super::{Mode, positive, require, seconds};
use crate::error::LoadError;
use crate::profile::Profile;

/// Where instances are searched for after they were created.
#[derive(Clone, Debug, Serialize)]
pub struct AvailabilityOptions {
    /// What answers there.
    pub database: Database,
    /// REST ports of gateways, or HTTP ports of Elasticsearch or OpenSearch, as `host:port` or with `http://` before;
    /// connections are spread over them.
    pub addresses: Vec<String>,
    /// How many instances are looked for in a second.
    pub samples_per_second: f64,
    /// An instance that is not found for this long is lost, and the run fails.
    #[serde(serialize_with = "seconds")]
    pub give_up_after: Duration,
}

/// What can be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Database {
    /// The read model of a gateway, by the REST API.
    ReadModel,
    /// Elasticsearch or OpenSearch, in the indices of an exporter.
    Elasticsearch,
}

impl AvailabilityOptions {
    /// Ten instances a second, each for a minute at most.
    pub fn new(database: Database, addresses: Vec<String>) -> Self {
        AvailabilityOptions { database, addresses, samples_per_second: 10.0, give_up_after: Duration::from_secs(60) }
    }

    pub(super) fn check(&self, mode: &Mode) -> Result<(), LoadError> {
        let profile = match mode {
            Mode::Rate(options) => Some(options.work.profile),
            Mode::Maximum(options) => Some(options.work.profile),
            _ => None,
        };
        require(
            profile.is_some_and(|profile| profile != Profile::Messages),
            "The measurement of availability",
            "wanted",
            "left out, except for instances that are created at a rate or at the highest rate",
        )?;
        require(!self.addresses.is_empty(), "The address to search at", "missing", "given at least once")?;
        let holds = (0.001..=1_000.0).contains(&self.samples_per_second);
        require(holds, "The size of the sample", self.samples_per_second, "from 0.001 to 1000 instances per second")?;
        positive("The time to look for an instance", self.give_up_after)
    }
}
