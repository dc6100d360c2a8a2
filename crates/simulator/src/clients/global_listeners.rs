//! Who defines, changes and deletes listeners of the user tasks of all processes.

use protocol::*;

use super::{Ask, Clients, Kind};
use crate::model::{self, CONFIGURED, GLOBAL_RETRIES};

/// What a listener listens to, at most.
const EVENT_TYPES_MAX: u64 = 3;

impl Clients {
    /// Another listener, another kind of one that there may be, or one less; also of those that the configuration defines.
    pub(super) fn change_global_listeners(&mut self) -> Ask {
        let (kind, intent) = match self.chance.below(5) {
            0..=2 => ("create a global listener", GlobalListenerIntent::Create),
            3 => ("update a global listener", GlobalListenerIntent::Update),
            _ => ("delete a global listener", GlobalListenerIntent::Delete),
        };
        let id = *self.chance.choose(&["a", "b", "c", CONFIGURED[0].0]);
        let value = GlobalListenerValue { id: id.into(), ..self.global_listener() };
        let payload = Payload::GlobalListener(intent, Box::new(value));
        self.ask(Kind::Other(kind), PartitionId::DEPLOYMENT, Key::NONE, payload)
    }

    /// Its retries say which one it is.
    fn global_listener(&mut self) -> GlobalListenerValue {
        self.global_listeners += 1;
        let mut event_types = Vec::new();
        for _ in 0..1 + self.chance.below(EVENT_TYPES_MAX) {
            let event_type = *self.chance.choose(&GlobalListenerEventType::EVERY);
            if !event_types.contains(&event_type) {
                event_types.push(event_type);
            }
        }
        GlobalListenerValue {
            job_type: model::JOB_TYPE.into(),
            retries: GLOBAL_RETRIES + self.global_listeners,
            event_types,
            after_non_global: self.chance.one_in(3),
            priority: *self.chance.choose(&[-1, 50, 50, 100]),
            ..GlobalListenerValue::default()
        }
    }
}
