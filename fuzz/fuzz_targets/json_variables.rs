//! Variables as a client sends them. The gateway lets through what another JSON parser takes; the engine splits it by name,
//! and gives the parts together to workers. Whatever the engine takes, the other parser takes too, before and after.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use feel::{JsonError, Value, json};
use serde::de::IgnoredAny;

fuzz_target!(|text: &str| {
    let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
    match json::validate(text) {
        Ok(()) => assert!(is_json, "{text:?}"),
        // What stands behind the level too many was not looked at.
        Err(JsonError::TooDeep { .. }) => {}
        Err(_) => assert!(!is_json, "{text:?}"),
    }
    let Ok(members) = json::split_object(text) else { return };
    assert!(is_json);
    let mut joined = String::from("{");
    for (name, value) in &members {
        assert!(json::validate(value).is_ok());
        if joined.len() > 1 {
            joined.push(',');
        }
        json::write_string(name, &mut joined);
        joined.push(':');
        joined.push_str(value);
        if let Ok(read) = Value::from_json(value) {
            let written = read.to_json();
            assert_eq!(Value::from_json(&written).expect("what was written can be read").to_json(), written);
        }
    }
    joined.push('}');
    assert!(serde_json::from_str::<IgnoredAny>(&joined).is_ok(), "{joined:?}");
    let again = json::split_object(&joined).expect("what was joined can be split");
    let by_name = |members: &[(std::borrow::Cow<'_, str>, &str)]| {
        members.iter().map(|(name, value)| (name.to_string(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(by_name(&again), by_name(&members));
    assert_eq!(again.len(), members.len(), "names are unique");
});
