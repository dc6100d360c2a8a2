//! Raising feature levels: only to what every node of the cluster announced to know, and the first partition last.
//!
//! The first partition tells the others of the cluster when it comes to the level for that; they must be there before.

use engine::{FeatureLevel, Reply, UnknownFeatureLevel};
use protocol::{Command, FeatureLevelIntent, FeatureLevelValue, Key, PartitionId, Payload};

use crate::client::{Client, PendingRequest};
use crate::member::Member;
use crate::submit_error::SubmitError;

/// A partition with the level that its state is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionLevel {
    /// The partition.
    pub partition: PartitionId,
    /// Its feature level.
    pub level: u32,
}

/// A feature level cannot be raised to what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RaiseError {
    /// This build does not know it: a command for it would stop the partition.
    #[error(transparent)]
    Unknown(#[from] UnknownFeatureLevel),
    /// Another node does not know it, and its replicas would stop.
    #[error(
        "Feature level {level} is not known to node {node}, whose build knows the levels up to {newest}. Update that node first, and \
         raise the level then."
    )]
    Member {
        /// The level asked for.
        level: u32,
        /// The node.
        node: u32,
        /// The newest level that it knows.
        newest: u32,
    },
    /// The first partition comes last.
    #[error(
        "Partition 1 is raised to feature level {level} after all others, because it then tells them of what they must know, but \
         partition {partition} is at level {behind}. Raise that one first."
    )]
    FirstPartitionLast {
        /// The level asked for.
        level: u32,
        /// One that is not there yet.
        partition: PartitionId,
        /// Its level.
        behind: u32,
    },
}

impl Client {
    /// The nodes of the cluster, as they announced themselves.
    pub fn members(&self) -> Vec<Member> {
        let mut members = self.shared.members.lock().clone();
        // Nothing is known of a node that was never heard from, so it counts as one that knows no level.
        let others = self.shared.port.as_ref().map(|port| port.contacts()).unwrap_or_default();
        members.extend(
            others
                .into_iter()
                .map(|(node, contact)| Member { node: node.0, newest_level: contact.status.newest_level }),
        );
        members
    }

    /// The feature levels of the partitions, in the order in which they are raised: the first partition last.
    pub fn feature_levels(&self) -> Vec<PartitionLevel> {
        let level = |entrance: &std::sync::Arc<crate::entrance::Entrance>| PartitionLevel {
            partition: entrance.id,
            level: entrance.feature_level(),
        };
        let mut levels: Vec<_> = self.shared.entrances.all().values().map(level).collect();
        levels.sort_by_key(|level| (level.partition == PartitionId::DEPLOYMENT, level.partition));
        levels
    }

    /// Makes a partition go on by the rules of a newer feature level. `reply` is called as by [`Client::submit`].
    ///
    /// # Errors
    /// When a node of the cluster does not know the level, or other partitions have to be raised before.
    pub fn raise_feature_level(
        &self,
        partition: PartitionId,
        level: u32,
        reply: impl FnOnce(Result<Reply, SubmitError>) + Send + 'static,
    ) -> Result<PendingRequest, RaiseError> {
        self.check_feature_level(level)?;
        if partition == PartitionId::DEPLOYMENT {
            let others = self.feature_levels().into_iter().filter(|other| other.partition != partition);
            if let Some(PartitionLevel { partition, level: behind }) =
                others.into_iter().find(|other| other.level < level)
            {
                return Err(RaiseError::FirstPartitionLast { level, partition, behind });
            }
        }
        let raise = Payload::FeatureLevel(FeatureLevelIntent::Raise, FeatureLevelValue { level });
        Ok(self.submit(partition, Command::new(Key::NONE, raise), reply))
    }

    /// Looks whether every node of the cluster knows a level.
    ///
    /// # Errors
    /// When one does not.
    pub fn check_feature_level(&self, level: u32) -> Result<(), RaiseError> {
        FeatureLevel::known_to(level, self.shared.newest_feature_level)?;
        match self.members().into_iter().find(|member| member.newest_level < level) {
            Some(Member { node, newest_level: newest }) => Err(RaiseError::Member { level, node, newest }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Shared;

    #[test]
    fn a_level_is_raised_only_to_what_all_nodes_know_and_on_the_first_partition_last() {
        let (shared, inbox) = Shared::for_test(3, 8);
        let client = Client::new(shared.clone());
        let newest = FeatureLevel::TEST.number();
        let raise = |partition| client.raise_feature_level(PartitionId(partition), newest, |_| ()).map(drop);
        let order = |levels: Vec<PartitionLevel>| levels.iter().map(|level| level.partition.0).collect::<Vec<_>>();
        assert_eq!(order(client.feature_levels()), [2, 3, 1]);
        let error = raise(1).expect_err("the others are behind").to_string();
        assert!(error.contains(&format!("partition 2 is at level {}", FeatureLevel::OLDEST)), "{error}");
        shared.members.lock().push(Member { node: 8, newest_level: newest - 1 });
        let error = raise(2).expect_err("node 8 does not know it").to_string();
        assert!(error.contains("not known to node 8, whose build knows the levels up to"), "{error}");
        assert_eq!(inbox.try_iter().count(), 0, "nothing was logged");
        shared.members.lock().retain(|member| member.node != 8);
        raise(2).expect("all know it");
        shared.entrances.all().values().skip(1).for_each(|entrance| entrance.set_feature_level(FeatureLevel::TEST));
        raise(1).expect("the others are there");
        assert_eq!(inbox.try_iter().count(), 2);
    }
}
