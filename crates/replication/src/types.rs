//! The vocabulary that the callers of this crate speak.

use std::fmt;

use bytes::Bytes;
use raft::eraftpb::ConfState;

/// A Raft group: one replicated log with one state machine on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl fmt::Display for GroupId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// A member of Raft groups. Never 0: Raft reads 0 as "nobody".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    /// Reads Raft's node number, in which 0 means nobody.
    pub(crate) fn known(raw: u64) -> Option<Self> {
        (raw != 0).then_some(Self(raw))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// A place in a group's log. Index 0 with term 0 is the place before the first entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// Index in the log, counted from 1 without gaps.
    pub index: u64,
    /// Raft term in which the entry was proposed.
    pub term: u64,
}

/// A committed entry: the bytes that were proposed and their position in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Index in the log. Strictly increasing, but not gapless: Raft's own entries are not handed out.
    pub index: u64,
    /// Raft term in which the entry was proposed.
    pub term: u64,
    /// The proposed bytes, never empty.
    pub data: Bytes,
}

/// What a node is in a group right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Accepts proposals.
    Leader,
    /// Follows a leader and votes.
    Follower,
    /// Asks for votes.
    Candidate,
    /// Follows a leader without a vote (or is no member at all, yet or any more).
    Learner,
}

/// The members of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Membership {
    /// Members with a vote.
    pub voters: Vec<NodeId>,
    /// Members without a vote.
    pub learners: Vec<NodeId>,
    /// The voters of the configuration that is being left; empty unless a joint change is under way.
    pub outgoing_voters: Vec<NodeId>,
}

impl Membership {
    /// Whether the node is a member in any capacity.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        [&self.voters, &self.learners, &self.outgoing_voters].into_iter().any(|members| members.contains(&node))
    }

    /// Whether two configurations are valid at once, in the middle of a change.
    #[must_use]
    pub fn is_joint(&self) -> bool {
        !self.outgoing_voters.is_empty()
    }

    pub(crate) fn from_conf_state(state: &ConfState) -> Self {
        let nodes = |raw: &[u64]| {
            let mut nodes: Vec<NodeId> = raw.iter().copied().map(NodeId).collect();
            nodes.sort_unstable();
            nodes
        };
        let mut learners = nodes(&state.learners);
        learners.extend(nodes(&state.learners_next));
        learners.sort_unstable();
        learners.dedup();
        Self { voters: nodes(&state.voters), learners, outgoing_voters: nodes(&state.voters_outgoing) }
    }
}

/// One step of a change of members. Several steps proposed together take effect together (joint consensus).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipChange {
    /// The node becomes a voter; a learner is promoted.
    AddVoter(NodeId),
    /// The node becomes a learner; a voter is demoted.
    AddLearner(NodeId),
    /// The node leaves the group.
    Remove(NodeId),
}

/// How far a leader believes a member's log matches its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberProgress {
    /// The member.
    pub node: NodeId,
    /// The highest index that the member is known to have durably.
    pub matched: u64,
    /// Whether the member answered within the last election timeout.
    pub recently_active: bool,
}

/// What a node knows about one of its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStatus {
    /// What this node is in the group.
    pub role: Role,
    /// Raft's current term.
    pub term: u64,
    /// Whom this node voted for in that term, if anybody.
    pub vote: Option<NodeId>,
    /// The leader of that term, once known.
    pub leader: Option<NodeId>,
    /// The highest index known to be committed.
    pub commit: u64,
    /// The highest index that was handed out as committed.
    pub handed_out: u64,
    /// The index that the caller last reported as durable in its state machine.
    pub checkpoint: u64,
    /// The first index that the log still holds.
    pub first_index: u64,
    /// The last index in the log.
    pub last_index: u64,
    /// The members of the group.
    pub membership: Membership,
    /// On a leader, the progress of every member, itself included; elsewhere empty.
    pub progress: Vec<MemberProgress>,
}
