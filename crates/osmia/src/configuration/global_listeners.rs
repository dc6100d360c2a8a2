//! Listeners of the user tasks of all processes, as the configuration file defines them.

use std::collections::BTreeSet;

use engine::Limits;
use protocol::{GlobalListenerEventType, GlobalListenerSource, GlobalListenerValue};
use serde_json::{Map, Value as Json};

use super::ConfigurationError;

/// What a listener can say.
const KEYS: [&str; 6] = ["id", "type", "event-types", "retries", "after-non-global", "priority"];

/// The list in the value of `global-listeners`.
pub(super) fn of_file(value: Json) -> Result<Vec<Json>, String> {
    match value {
        Json::Object(mut kinds) => match (kinds.remove("user-task"), kinds.keys().next()) {
            (_, Some(other)) => Err(format!("'global-listeners.{other}' is not known; there is 'user-task'")),
            (Some(Json::Array(listeners)), None) => Ok(listeners),
            (None, None) => Ok(Vec::new()),
            (Some(_), None) => Err("'global-listeners.user-task' must be a list".to_owned()),
        },
        _ => Err("'global-listeners' must be a mapping with 'user-task'".to_owned()),
    }
}

/// # Errors
/// When one of them is none: the first, with its number from 0.
pub(super) fn read(listeners: &[Json]) -> Result<Vec<GlobalListenerValue>, ConfigurationError> {
    let mut ids = BTreeSet::new();
    let mut all = Vec::with_capacity(listeners.len());
    let listeners_max = Limits::default().global_listeners_max;
    if listeners.len() > listeners_max {
        let reason = format!("is one too many: there can be {listeners_max}");
        return Err(ConfigurationError::GlobalListener { number: listeners_max, reason });
    }
    for (number, listener) in listeners.iter().enumerate() {
        let read = listener.as_object().ok_or_else(|| "must be a mapping".to_owned()).and_then(self::listener);
        let read = read.and_then(|listener| match ids.insert(listener.id.to_string()) {
            true => Ok(listener),
            false => Err(format!("has the id '{}', which another one has too", listener.id)),
        });
        all.push(read.map_err(|reason| ConfigurationError::GlobalListener { number, reason })?);
    }
    Ok(all)
}

fn listener(of: &Map<String, Json>) -> Result<GlobalListenerValue, String> {
    if let Some(other) = of.keys().find(|key| !KEYS.contains(&&***key)) {
        return Err(format!("has the unknown key '{other}'; the known keys are {}", KEYS.join(", ")));
    }
    let text = |name: &str| match of.get(name).and_then(Json::as_str).filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok(text.to_owned()),
        None => Err(format!("must have '{name}', a text")),
    };
    let number = |name: &str, usual: i32| match of.get(name) {
        None => Ok(usual),
        Some(given) => {
            let number = given.as_i64().and_then(|number| i32::try_from(number).ok());
            number.ok_or_else(|| format!("has '{name}' {given}, but it must be a whole number of 32 bits"))
        }
    };
    let after_non_global = match of.get("after-non-global") {
        None => false,
        Some(Json::Bool(is_after)) => *is_after,
        Some(other) => return Err(format!("has 'after-non-global' {other}, but it must be true or false")),
    };
    let retries = number("retries", GlobalListenerValue::DEFAULT_RETRIES)?;
    if retries < 1 {
        return Err(format!("has 'retries' {retries}, but there must be at least 1"));
    }
    Ok(GlobalListenerValue {
        id: text("id")?.as_str().into(),
        job_type: text("type")?.as_str().into(),
        event_types: event_types(of.get("event-types"))?,
        retries,
        after_non_global,
        priority: number("priority", GlobalListenerValue::DEFAULT_PRIORITY)?,
        source: GlobalListenerSource::Configuration,
        ..GlobalListenerValue::default()
    })
}

fn event_types(given: Option<&Json>) -> Result<Vec<GlobalListenerEventType>, String> {
    let every = GlobalListenerEventType::EVERY;
    let known = every.map(GlobalListenerEventType::name).join(", ");
    let expected = || format!("must have 'event-types', a list of some of {known}");
    let mut event_types = Vec::new();
    for name in given.and_then(Json::as_array).filter(|names| !names.is_empty()).ok_or_else(expected)? {
        let event_type = every.into_iter().find(|event_type| name.as_str() == Some(event_type.name()));
        let event_type = event_type.ok_or_else(|| format!("has the event type {name}, but there are {known}"))?;
        if !event_types.contains(&event_type) {
            event_types.push(event_type);
        }
    }
    Ok(event_types)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_of(value: Json) -> Result<Vec<GlobalListenerValue>, String> {
        read(&of_file(value)?).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_said_has_its_usual_value() {
        let listeners = json!({"user-task": [
            {"id": "audit", "type": "log", "event-types": ["all", "all"]},
            {"id": "late", "type": "log", "event-types": ["creating", "canceling"], "retries": 1, "after-non-global": true,
             "priority": -3},
        ]});
        let found = read_of(listeners).expect("valid");
        let usual =
            GlobalListenerValue { source: GlobalListenerSource::Configuration, ..GlobalListenerValue::default() };
        let audit = GlobalListenerValue {
            id: "audit".into(),
            job_type: "log".into(),
            event_types: vec![GlobalListenerEventType::All],
            ..usual.clone()
        };
        let late = GlobalListenerValue {
            id: "late".into(),
            job_type: "log".into(),
            event_types: vec![GlobalListenerEventType::Creating, GlobalListenerEventType::Canceling],
            retries: 1,
            after_non_global: true,
            priority: -3,
            ..usual
        };
        assert_eq!(found, [audit, late]);
        assert_eq!(read_of(json!({})), Ok(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let with = |key: &str, value: Json| {
            let mut listener = json!({"id": "a", "type": "t", "event-types": ["all"]});
            listener[key] = value;
            json!({"user-task": [{"id": "first", "type": "t", "event-types": ["all"]}, listener]})
        };
        for (value, expected) in [
            (json!([]), "'global-listeners' must be a mapping with 'user-task'"),
            (json!({"user-task": {}}), "'global-listeners.user-task' must be a list"),
            (json!({"execution": []}), "'global-listeners.execution' is not known; there is 'user-task'"),
            (json!({"user-task": ["a"]}), "global-listeners.user-task[0] must be a mapping."),
            (
                with("id", json!("first")),
                "global-listeners.user-task[1] has the id 'first', which another one has too.",
            ),
            (with("id", json!(" ")), "global-listeners.user-task[1] must have 'id', a text."),
            (with("type", json!(7)), "must have 'type', a text."),
            (with("event-types", json!([])), "must have 'event-types', a list of some of all, creating, assigning,"),
            (with("event-types", json!(["done"])), "has the event type \"done\", but there are all, creating,"),
            (with("retries", json!(0)), "has 'retries' 0, but there must be at least 1."),
            (with("priority", json!(1.5)), "has 'priority' 1.5, but it must be a whole number of 32 bits."),
            (with("after-non-global", json!("yes")), "has 'after-non-global' \"yes\", but it must be true or false."),
            (with("source", json!("API")), "has the unknown key 'source'; the known keys are id, type, event-types,"),
        ] {
            let found = read_of(value).expect_err(expected);
            assert!(found.contains(expected), "{found}");
        }
        let many: Vec<Json> =
            (0..101).map(|number| json!({"id": number.to_string(), "type": "t", "event-types": ["all"]})).collect();
        let found = read_of(json!({"user-task": many})).expect_err("too many");
        assert_eq!(found, "global-listeners.user-task[100] is one too many: there can be 100.");
    }
}
