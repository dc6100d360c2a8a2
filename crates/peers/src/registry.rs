//! Which connections a node takes: from members alone, and from the newest life of each.

use std::collections::BTreeMap;

use crate::hello::{Hello, Refusal, VERSIONS};
use crate::identity::{DirectoryId, Identity, NodeNumber};

/// What is known of a member.
#[derive(Debug, Default)]
struct Member {
    /// The directory that the cluster knows the member with; none before it was founded.
    directory: Option<DirectoryId>,
    /// A directory without a cluster that asked for the place last.
    applicant: Option<DirectoryId>,
    /// The highest number of starts that was seen of the directory, and the process that said it.
    seen: Option<(u64, u64)>,
}

/// The members, as a node knows them.
#[derive(Debug)]
pub struct Registry {
    own: Identity,
    members: BTreeMap<NodeNumber, Member>,
}

impl Registry {
    /// A node and the numbers of all members.
    pub fn new(own: Identity, members: impl IntoIterator<Item = NodeNumber>) -> Registry {
        Registry { own, members: members.into_iter().map(|node| (node, Member::default())).collect() }
    }

    /// What the node says of itself.
    pub fn own(&self) -> &Identity {
        &self.own
    }

    /// The cluster was founded, or was found out.
    pub fn join(&mut self, cluster: String) {
        self.own.cluster = cluster;
    }

    /// From now on the member has this directory and no other.
    pub fn set_directory(&mut self, node: NodeNumber, directory: DirectoryId) {
        let member = self.members.entry(node).or_default();
        if member.directory != Some(directory) {
            *member = Member { directory: Some(directory), applicant: None, seen: None };
        }
    }

    /// The directory without a cluster that asked last for the place of a member, which has another one.
    pub fn applicant(&self, node: NodeNumber) -> Option<DirectoryId> {
        self.members.get(&node)?.applicant
    }

    /// Decides about a connection.
    ///
    /// # Errors
    /// With the reason that the other node and its operator get.
    pub fn admit(&mut self, hello: &Hello) -> Result<(), Refusal> {
        let (theirs, ours) = (&hello.identity, &self.own);
        let (from, to) = (theirs.node, ours.node);
        if hello.versions.1 < VERSIONS.0 || hello.versions.0 > VERSIONS.1 {
            return Err(Refusal::Versions { from, to, theirs: hello.versions, ours: VERSIONS });
        }
        if hello.to != to {
            return Err(Refusal::WrongNode { from, wanted: hello.to, to });
        }
        // Before its founding a node has no cluster and may ask.
        if !theirs.cluster.is_empty() && !ours.cluster.is_empty() && theirs.cluster != ours.cluster {
            let (theirs, ours) = (theirs.cluster.clone(), ours.cluster.clone());
            return Err(Refusal::WrongCluster { from, to, theirs, ours });
        }
        if from == to {
            return Err(Refusal::Unknown { from, to });
        }
        let Some(member) = self.members.get_mut(&from) else { return Err(Refusal::Unknown { from, to }) };
        if let Some(known) = member.directory.filter(|known| *known != theirs.directory) {
            if theirs.cluster.is_empty() {
                member.applicant = Some(theirs.directory);
            }
            return Err(Refusal::OtherDirectory { from, theirs: theirs.directory, known });
        }
        match member.seen {
            Some((seen, _)) if theirs.boot < seen => Err(Refusal::OldCopy { from, theirs: theirs.boot, seen }),
            Some((seen, process)) if theirs.boot == seen && theirs.process != process => Err(Refusal::Twin { from }),
            _ => {
                // An empty directory may still be wiped and made again; it counts from the founding on.
                if member.directory.is_some() {
                    member.seen = Some((theirs.boot, theirs.process));
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello::tests::{hello, identity};

    fn registry() -> Registry {
        let mut registry = Registry::new(identity(0), [0, 1, 2].map(NodeNumber));
        registry.set_directory(NodeNumber(1), identity(1).directory);
        registry
    }

    #[test]
    fn members_are_admitted_again_and_again() {
        let mut registry = registry();
        for boot in [1, 1, 2, 5] {
            let mut hello = hello(1, 0);
            hello.identity.boot = boot;
            assert_eq!(registry.admit(&hello), Ok(()));
        }
        assert_eq!(registry.admit(&hello(2, 0)), Ok(()), "before the founding it has no directory yet");
    }

    #[test]
    fn whoever_is_not_the_member_is_refused_by_a_sentence() {
        type Change = fn(&mut Hello);
        let changes: [(Change, &str); 6] = [
            (|hello| hello.versions = (2, 9), "speaks the versions (2, 9)"),
            (|hello| hello.to = NodeNumber(2), "looks for node 2 here, and this is node 0"),
            (|hello| hello.identity.cluster = "c2".to_owned(), "belongs to cluster 'c2'"),
            (|hello| hello.identity.node = NodeNumber(9), "node 9 is not in the list of members"),
            (|hello| hello.identity.node = NodeNumber(0), "node 0 is not in the list of members"),
            (|hello| hello.identity.directory = identity(2).directory, "osmia cluster replace 1"),
        ];
        for (change, expected) in changes {
            let mut hello = hello(1, 0);
            change(&mut hello);
            let refusal = registry().admit(&hello).expect_err(expected).to_string();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }

    #[test]
    fn an_old_copy_and_a_second_process_of_a_directory_are_refused() {
        let mut registry = registry();
        let mut newer = hello(1, 0);
        newer.identity.boot = 3;
        registry.admit(&newer).expect("the newest life");
        assert_eq!(
            registry.admit(&hello(1, 0)),
            Err(Refusal::OldCopy { from: NodeNumber(1), theirs: 1, seen: 3 }),
            "a copy of the disk from before"
        );
        newer.identity.process += 1;
        assert_eq!(registry.admit(&newer), Err(Refusal::Twin { from: NodeNumber(1) }));
    }

    #[test]
    fn a_replaced_directory_begins_to_count_again() {
        let mut registry = registry();
        let mut newer = hello(1, 0);
        newer.identity.boot = 3;
        registry.admit(&newer).expect("the newest life");
        let mut empty = hello(1, 0);
        (empty.identity.directory, empty.identity.cluster) = (identity(2).directory, String::new());
        registry.admit(&empty).expect_err("another directory has the place");
        assert_eq!(registry.applicant(NodeNumber(1)), Some(identity(2).directory));
        registry.set_directory(NodeNumber(1), identity(2).directory);
        assert!(matches!(registry.admit(&newer), Err(Refusal::OtherDirectory { .. })), "the lost disk comes back");
        let mut replaced = hello(1, 0);
        replaced.identity.directory = identity(2).directory;
        assert_eq!(registry.admit(&replaced), Ok(()));
    }
}
