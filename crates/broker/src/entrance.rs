//! What other threads see of a partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use protocol::PartitionId;

use crate::client::SubmitError;
use crate::flow_control::{Admission, Limiter, Permit, Refusal};
use crate::held::Held;
use crate::requests::Requests;

/// What a replica does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It takes commands and carries out their effects.
    Leader,
    /// It follows the leader.
    Follower,
    /// It does neither: it is starting or has stopped.
    Inactive,
}

/// How a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It works.
    Healthy,
    /// It does not make progress now and tries again: for example, the disk is full.
    Unhealthy,
    /// It stopped because its state cannot be trusted.
    Dead,
}

/// The way into a partition, shared by the threads that submit commands and the thread that owns the partition.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub id: PartitionId,
    pub limiter: Arc<Limiter>,
    pub requests: Requests,
    pub held: Held,
    role: AtomicU8,
    health: AtomicU8,
    /// One bit for each trouble that is being retried.
    troubles: AtomicU8,
}

impl Entrance {
    pub fn new(id: PartitionId, limiter: Arc<Limiter>, requests: Requests, held: Held) -> Self {
        Entrance {
            id,
            limiter,
            requests,
            held,
            role: AtomicU8::new(Role::Inactive as u8),
            health: AtomicU8::new(Health::Unhealthy as u8),
            troubles: AtomicU8::new(0),
        }
    }

    /// Whether commands may come in.
    pub fn is_open(&self) -> bool {
        self.role() == Role::Leader && self.health() != Health::Dead
    }

    /// Takes a share of the limits for a command, unless others wait for one already.
    pub fn admit(&self, admission: Admission, bytes: usize) -> Result<Permit, Refusal> {
        if admission == Admission::Growth && !self.held.is_empty() {
            return Err(self.limiter.no_room());
        }
        self.limiter.admit(admission, bytes, self.unwritable())
    }

    /// The answer to a command that is not taken.
    pub fn refuse(&self, refusal: &Refusal) -> SubmitError {
        self.limiter.count_refusal();
        SubmitError::ResourceExhausted { partition: self.id, reason: refusal.to_string() }
    }

    /// Answers all waiting requests with an error: their commands were lost, or nobody will report on them.
    pub fn fail_all(&self, error: &SubmitError) {
        self.held.clear();
        self.requests.fail_all(error);
    }

    pub fn role(&self) -> Role {
        match self.role.load(Ordering::Acquire) {
            role if role == Role::Leader as u8 => Role::Leader,
            role if role == Role::Follower as u8 => Role::Follower,
            _ => Role::Inactive,
        }
    }

    pub fn set_role(&self, role: Role) {
        self.role.store(role as u8, Ordering::Release);
    }

    pub fn health(&self) -> Health {
        match self.health.load(Ordering::Acquire) {
            health if health == Health::Dead as u8 => Health::Dead,
            health if health == Health::Healthy as u8 && self.troubles.load(Ordering::Acquire) == 0 => Health::Healthy,
            _ => Health::Unhealthy,
        }
    }

    pub fn set_health(&self, health: Health) {
        self.health.store(health as u8, Ordering::Release);
    }

    /// What the partition needs for every command and cannot write now.
    pub fn unwritable(&self) -> Option<&'static str> {
        match self.troubles.load(Ordering::Acquire) {
            0 => None,
            troubles if troubles & Trouble::Log as u8 != 0 => Some("its log"),
            troubles if troubles & Trouble::Records as u8 != 0 => Some("its record stream"),
            // A checkpoint has time: the limit of changes that wait for one holds meanwhile.
            _ => None,
        }
    }

    /// Something that the partition needs fails and is tried again, or works again. Returns whether that is news.
    pub fn set_trouble(&self, trouble: Trouble, troubled: bool) -> bool {
        let bit = trouble as u8;
        let before = match troubled {
            true => self.troubles.fetch_or(bit, Ordering::AcqRel),
            false => self.troubles.fetch_and(!bit, Ordering::AcqRel),
        };
        (before & bit != 0) != troubled
    }
}

/// What a partition needs and can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Trouble {
    /// Writing the log.
    Log = 1,
    /// Writing the record stream.
    Records = 2,
    /// Writing a checkpoint of the state.
    Checkpoint = 4,
}
