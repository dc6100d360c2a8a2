//! Listeners of the user tasks of all processes, in JSON.

use protocol::{GlobalListenerEventType, GlobalListenerIntent, GlobalListenerValue, Text};

use super::json::JsonObject;
use super::object::{Object, Violations};
use super::problem::Problem;
use crate::request::global_listener::ChangeGlobalListener;
use crate::rest::no_answer::NoAnswer;
use crate::validation::excerpt;

/// Characters of an id.
const ID_CHARACTERS_MAX: usize = 256;

pub(super) fn creation(body: &[u8]) -> Result<ChangeGlobalListener, NoAnswer> {
    let mut object = Object::read(body)?;
    let id = object.take::<Text>("id")?;
    change(GlobalListenerIntent::Create, id, object)
}

pub(super) fn update(id: &str, body: &[u8]) -> Result<ChangeGlobalListener, NoAnswer> {
    let object = Object::read(body)?;
    change(GlobalListenerIntent::Update, Some(path_id(id)?.into()), object)
}

pub(super) fn deletion(id: &str, body: &[u8]) -> Result<ChangeGlobalListener, NoAnswer> {
    Object::read(body)?.finish()?;
    let mut violations = Violations::default();
    let id = check_id(&mut violations, Some(path_id(id)?.into()));
    violations.check()?;
    let listener = GlobalListenerValue { id, ..GlobalListenerValue::default() };
    Ok(ChangeGlobalListener { intent: GlobalListenerIntent::Delete, listener })
}

fn change(
    intent: GlobalListenerIntent,
    id: Option<Text>,
    mut object: Object<'_>,
) -> Result<ChangeGlobalListener, NoAnswer> {
    let job_type = object.take::<Text>("type")?;
    let event_types: Option<Vec<Text>> = object.take("eventTypes")?;
    let retries = object.take::<i32>("retries")?;
    let after_non_global = object.take("afterNonGlobal")?.unwrap_or_default();
    let priority = object.take("priority")?.unwrap_or(GlobalListenerValue::DEFAULT_PRIORITY);
    object.finish()?;
    let event_types = event_types.unwrap_or_default();
    let event_types = event_types.iter().map(|name| event_type(name)).collect::<Result<Vec<_>, _>>()?;
    let mut violations = Violations::default();
    let id = check_id(&mut violations, id);
    let job_type = violations.require_text("type", job_type);
    let event_types = violations.require("eventTypes", Some(event_types).filter(|types| !types.is_empty()));
    let retries = violations.require_positive("retries", Some(retries.unwrap_or(GlobalListenerValue::DEFAULT_RETRIES)));
    violations.check()?;
    let listener = GlobalListenerValue {
        id,
        job_type,
        retries,
        event_types: each_once(event_types),
        after_non_global,
        priority,
        ..GlobalListenerValue::default()
    };
    Ok(ChangeGlobalListener { intent, listener })
}

fn event_type(name: &str) -> Result<GlobalListenerEventType, Problem> {
    let every = GlobalListenerEventType::EVERY;
    every.into_iter().find(|of| of.name() == name).ok_or_else(|| {
        Problem::bad_request(format!(
            "Unexpected value '{}' for enum field 'eventTypes'. Use any of the following values: [{}]",
            excerpt(name),
            every.map(GlobalListenerEventType::name).join(", ")
        ))
    })
}

fn each_once(named: Vec<GlobalListenerEventType>) -> Vec<GlobalListenerEventType> {
    let mut once = Vec::new();
    for event_type in named {
        if !once.contains(&event_type) {
            once.push(event_type);
        }
    }
    once
}

/// An id is a part of paths and file names of clients, so it has few kinds of characters.
fn check_id(violations: &mut Violations, id: Option<Text>) -> Text {
    let id = violations.require_text("id", id);
    let is_usual = |character: char| character.is_ascii_alphanumeric() || "_~@.+-".contains(character);
    if !id.chars().all(is_usual) {
        violations.add(format!(
            "The id '{}' has a character that is not possible: an id has letters of ASCII, digits, and any of '_~@.+-'.",
            excerpt(&id)
        ));
    }
    let characters = id.chars().count();
    if characters > ID_CHARACTERS_MAX {
        violations.add(format!("The id has {characters} characters, but at most {ID_CHARACTERS_MAX} are possible."));
    }
    id
}

/// The id in a path, where clients write some characters as a percent sign and two digits.
pub(super) fn path_id(given: &str) -> Result<String, Problem> {
    let wrong = || Problem::bad_request(format!("The id '{}' in the path cannot be decoded.", excerpt(given)));
    let (mut decoded, mut rest) = (Vec::with_capacity(given.len()), given.as_bytes());
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            decoded.push(*byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2).ok_or_else(wrong)?;
        let digits = std::str::from_utf8(digits).ok().filter(|of| of.bytes().all(|digit| digit.is_ascii_hexdigit()));
        decoded.push(digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or_else(wrong)?);
        rest = behind;
    }
    String::from_utf8(decoded).map_err(|_| wrong())
}

pub(super) fn rendered(listener: &GlobalListenerValue) -> Vec<u8> {
    let event_types: Vec<Text> = listener.event_types.iter().map(|of| of.name().into()).collect();
    let mut json = JsonObject::new();
    json.text("id", &listener.id).text("source", listener.source.name()).texts("eventTypes", &event_types);
    json.text("type", &listener.job_type).number("retries", listener.retries);
    json.flag("afterNonGlobal", listener.after_non_global).number("priority", listener.priority);
    json.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail<T: std::fmt::Debug>(read: Result<T, NoAnswer>) -> String {
        match read.expect_err("it is refused") {
            NoAnswer::Problem(problem) => format!("{} {}", problem.status.as_u16(), problem.detail),
            NoAnswer::Failure(failure) => panic!("{failure:?}"),
        }
    }

    #[test]
    fn what_is_not_said_has_its_usual_value() {
        let request =
            creation(br#"{"id":"audit","type":"t","eventTypes":["creating","all","creating"]}"#).expect("valid");
        let expected = GlobalListenerValue {
            id: "audit".into(),
            job_type: "t".into(),
            event_types: vec![GlobalListenerEventType::Creating, GlobalListenerEventType::All],
            ..GlobalListenerValue::default()
        };
        assert_eq!((request.intent, &request.listener), (GlobalListenerIntent::Create, &expected));
        assert_eq!(
            String::from_utf8(rendered(&expected)).expect("text"),
            r#"{"id":"audit","source":"API","eventTypes":["creating","all"],"type":"t","retries":3,"afterNonGlobal":false,"priority":50}"#
        );
        let body = br#"{"type":"t","eventTypes":["all"],"retries":1,"afterNonGlobal":true,"priority":-7}"#;
        let request = update("a%40b%2Bc", body).expect("valid");
        assert_eq!((&*request.listener.id, request.listener.retries, request.listener.priority), ("a@b+c", 1, -7));
        assert_eq!(&*deletion("audit", b"").expect("valid").listener.id, "audit");
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let long = "x".repeat(257);
        for (body, expected) in [
            ("{}", "400 No id provided. No type provided. No eventTypes provided."),
            (
                r#"{"id":" ","type":"","eventTypes":[]}"#,
                "400 No id provided. No type provided. No eventTypes provided.",
            ),
            (
                r#"{"id":"a","type":"t","eventTypes":["done"]}"#,
                "400 Unexpected value 'done' for enum field 'eventTypes'.",
            ),
            (
                r#"{"id":"a","type":"t","eventTypes":["all"],"retries":0}"#,
                "400 The value for retries is '0' but must be > 0.",
            ),
            (
                r#"{"id":"a b","type":"t","eventTypes":["all"]}"#,
                "400 The id 'a b' has a character that is not possible",
            ),
            (
                &format!(r#"{{"id":"{long}","type":"t","eventTypes":["all"]}}"#),
                "400 The id has 257 characters, but at most 256",
            ),
            (
                r#"{"id":"a","type":"t","eventTypes":["all"],"source":"API"}"#,
                "400 Request property [source] cannot be parsed",
            ),
        ] {
            let found = detail(creation(body.as_bytes()));
            assert!(found.starts_with(expected), "{body}: {found}");
        }
        for id in ["%4", "%zz", "%+1", "%ff"] {
            assert!(detail(deletion(id, b"")).contains("cannot be decoded"), "{id}");
        }
        assert!(detail(update("a", br#"{"id":"a","type":"t","eventTypes":["all"]}"#)).contains("[id]"));
    }
}
