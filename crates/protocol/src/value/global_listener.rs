//! Values about global listeners: those of the user tasks of all processes.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{JobListenerEventType, Key, Text};

/// A listener that user tasks have besides those of their models. In a command, what is wished for.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GlobalListenerValue {
    /// This listener.
    #[n(0)]
    pub global_listener_key: Key,
    /// What whoever defined it calls it.
    #[n(1)]
    pub id: Text,
    /// The type of its jobs.
    #[n(2)]
    #[serde(rename = "type")]
    pub job_type: Text,
    /// The retries of its jobs.
    #[n(3)]
    pub retries: i32,
    /// What it listens to.
    #[n(4)]
    pub event_types: Vec<GlobalListenerEventType>,
    /// Whether it runs behind the listeners of the model and not before them.
    #[n(5)]
    pub after_non_global: bool,
    /// Where it runs among global listeners: those with a higher one go first.
    #[n(6)]
    pub priority: i32,
    /// Where it was defined.
    #[n(7)]
    pub source: GlobalListenerSource,
    /// What it is a listener of.
    #[n(8)]
    pub listener_type: GlobalListenerType,
    /// The configuration of all global listeners that begins with this change.
    #[n(9)]
    pub config_key: Key,
}

impl GlobalListenerValue {
    /// The retries of a listener that says none.
    pub const DEFAULT_RETRIES: i32 = 3;
    /// The priority of a listener that says none.
    pub const DEFAULT_PRIORITY: i32 = 50;

    /// Whether it listens to this.
    pub fn listens_to(&self, event: JobListenerEventType) -> bool {
        self.event_types.iter().any(|own| *own == GlobalListenerEventType::All || own.event() == event)
    }
}

impl Default for GlobalListenerValue {
    fn default() -> Self {
        GlobalListenerValue {
            global_listener_key: Key::NONE,
            id: Text::default(),
            job_type: Text::default(),
            retries: GlobalListenerValue::DEFAULT_RETRIES,
            event_types: Vec::new(),
            after_non_global: false,
            priority: GlobalListenerValue::DEFAULT_PRIORITY,
            source: GlobalListenerSource::Api,
            listener_type: GlobalListenerType::UserTask,
            config_key: Key::NONE,
        }
    }
}

/// What a global listener listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "lowercase")]
pub enum GlobalListenerEventType {
    /// Everything.
    #[n(0)]
    All,
    /// A user task is created.
    #[n(1)]
    Creating,
    /// A user task is assigned.
    #[n(2)]
    Assigning,
    /// Attributes of a user task change.
    #[n(3)]
    Updating,
    /// A user task is completed.
    #[n(4)]
    Completing,
    /// A user task is cancelled.
    #[n(5)]
    Canceling,
}

impl GlobalListenerEventType {
    /// All of them, in the order of their numbers.
    pub const EVERY: [GlobalListenerEventType; 6] =
        [Self::All, Self::Creating, Self::Assigning, Self::Updating, Self::Completing, Self::Canceling];

    /// As clients know it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Creating => "creating",
            Self::Assigning => "assigning",
            Self::Updating => "updating",
            Self::Completing => "completing",
            Self::Canceling => "canceling",
        }
    }

    /// The event that it stands for; all together are none.
    const fn event(self) -> JobListenerEventType {
        match self {
            Self::All => JobListenerEventType::Unspecified,
            Self::Creating => JobListenerEventType::Creating,
            Self::Assigning => JobListenerEventType::Assigning,
            Self::Updating => JobListenerEventType::Updating,
            Self::Completing => JobListenerEventType::Completing,
            Self::Canceling => JobListenerEventType::Canceling,
        }
    }
}

/// Where a global listener was defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GlobalListenerSource {
    /// In the configuration of the cluster.
    #[n(0)]
    Configuration,
    /// By a request.
    #[n(1)]
    Api,
}

impl GlobalListenerSource {
    /// The name in the record stream.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configuration => "CONFIGURATION",
            Self::Api => "API",
        }
    }
}

/// What a global listener is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GlobalListenerType {
    /// Of user tasks.
    #[n(0)]
    #[default]
    UserTask,
}

/// That the global listeners are other ones now. Its key names what changes of user tasks go by that begin from here on.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GlobalListenerBatchValue {
    /// The configuration of all global listeners.
    #[n(0)]
    pub global_listener_batch_key: Key,
    /// In a command the listeners that there are to be; in the event none, because those that changed have events of their own.
    #[n(1)]
    pub task_listeners: Vec<GlobalListenerValue>,
}
