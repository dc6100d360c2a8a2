//! Listeners of the user tasks of all processes.

use protocol::{GlobalListenerEventType, GlobalListenerIntent, GlobalListenerValue};

use crate::database::{Database, Result};
use crate::enumerations::{GLOBAL_EVENT_TYPES, LISTENER_SOURCES, number_of};

/// Who reads it finds a listener as it is; one that was deleted is gone.
pub(super) fn write(database: &Database, intent: GlobalListenerIntent, value: &GlobalListenerValue) -> Result<()> {
    let key = value.global_listener_key.raw();
    database.execute("DELETE FROM global_listener_event WHERE listener_key = ?", &[key.into()])?;
    if intent == GlobalListenerIntent::Deleted {
        database.execute("DELETE FROM global_listener WHERE key = ?", &[key.into()])?;
        return Ok(());
    }
    let insert = "INSERT INTO global_listener(key, id, type, retries, event_types, after_non_global, priority, source) \
                  VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET id = excluded.id, type = excluded.type, \
                  retries = excluded.retries, event_types = excluded.event_types, \
                  after_non_global = excluded.after_non_global, priority = excluded.priority, source = excluded.source";
    let events: Vec<&str> = value.event_types.iter().copied().map(GlobalListenerEventType::name).collect();
    let as_json = serde_json::json!(events).to_string();
    let values = [
        key.into(),
        (&*value.id).into(),
        (&*value.job_type).into(),
        value.retries.into(),
        as_json.as_str().into(),
        value.after_non_global.into(),
        value.priority.into(),
        number_of(LISTENER_SOURCES, value.source.name()).into(),
    ];
    database.execute(insert, &values)?;
    for event in events {
        let insert = "INSERT INTO global_listener_event(listener_key, event_type) VALUES (?, ?) \
                      ON CONFLICT(listener_key, event_type) DO NOTHING";
        database.execute(insert, &[key.into(), number_of(GLOBAL_EVENT_TYPES, event).into()])?;
    }
    Ok(())
}
