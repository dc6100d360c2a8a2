//! Checks that need no state.

use protocol::{Key, PartitionId, Rejection, Text};
use serde::de::IgnoredAny;

use crate::outcome::Failure;

/// The names in a request for jobs, in bytes. Many requests wait at the same time, each with its names.
const JOB_REQUEST_BYTES_MAX: usize = 16 << 10;
/// How many tags an instance may have.
const TAGS_MAX: usize = 10;
/// How long a tag may be.
const TAG_BYTES_MAX: usize = 100;

/// The variables of a request.
#[derive(Debug)]
pub(crate) enum Variables {
    /// A text that nobody has looked at. An empty one means no variables.
    Text(String),
    /// A JSON value that was read as part of a larger one.
    Json(Text),
}

impl Default for Variables {
    fn default() -> Self {
        Variables::Text(String::new())
    }
}

impl Variables {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        let text: &str = match self {
            Variables::Text(text) => text,
            Variables::Json(text) => text,
        };
        let mut bytes = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
        matches!(text, "" | "null") || (bytes.next(), bytes.next()) == (Some(b'{'), Some(b'}'))
    }

    /// The text as it came when it is a JSON object.
    pub(crate) fn check(self) -> Result<Text, Failure> {
        match self {
            // The Go client says `null` when it was given no map.
            Variables::Text(text) if text.is_empty() || text == "null" => Ok(Text::default()),
            Variables::Text(text) => {
                check_object(&text)?;
                check_escapes(&text)?;
                match serde_json::from_str::<IgnoredAny>(&text) {
                    Ok(_) => Ok(text.into()),
                    Err(error) => Err(Failure::InvalidArgument(format!(
                        "Expected the variables to be a JSON object, but the text is not valid JSON: {error}."
                    ))),
                }
            }
            Variables::Json(text) => check_object(&text).and_then(|()| check_escapes(&text)).map(|()| text),
        }
    }
}

/// Whether a text begins as a JSON object does.
fn check_object(text: &str) -> Result<(), Failure> {
    if text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{') {
        return Ok(());
    }
    Err(Failure::InvalidArgument(format!(
        "Expected the variables to be a JSON object, but the text starts with '{}'. Put the values under names: {{\"name\": value}}.",
        excerpt(text)
    )))
}

/// Half of a character is none: what has it cannot be kept as text. Called for what is JSON, or is refused as not being it.
fn check_escapes(json: &str) -> Result<(), Failure> {
    let mut rest = json;
    while let Some(place) = rest.find('\\') {
        let escape = &rest[place..];
        let unit = |from: usize| {
            let digits = escape.get(from..from + 6)?.strip_prefix("\\u")?;
            u16::from_str_radix(digits, 16).ok()
        };
        let length = match (unit(0), unit(6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                let found = &escape[..6];
                return Err(Failure::InvalidArgument(format!(
                    "Expected the variables to be JSON, but {found} is half of a character, without its other half."
                )));
            }
            _ => 2,
        };
        // A letter that is no escape is found by whoever reads the JSON.
        rest = escape.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// What a by-key command is about, for the sentence that says that there is no such thing.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    /// Name of the command's intent.
    pub intent: &'static str,
    /// What is to be done, up to the key: `complete job`.
    pub action: &'static str,
    /// What was looked for: `job`.
    pub kind: &'static str,
}

/// The key of a request and the partition that must know it. A number that no partition of this cluster can have made names nothing.
pub(crate) fn route(target: Target, key: i64, partition_count: u16) -> Result<(PartitionId, Key), Failure> {
    let key = Key::from_raw(key);
    match key.partition().filter(|partition| partition.0 <= partition_count) {
        Some(partition) => Ok((partition, key)),
        None => Err(Failure::rejected(
            target.intent,
            key,
            Rejection::not_found(format!(
                "Expected to {} with key '{key}', but no such {} was found",
                target.action, target.kind
            )),
        )),
    }
}

/// Tags of an instance.
pub(crate) fn tags(tags: Vec<Text>) -> Result<Vec<Text>, Failure> {
    if tags.len() > TAGS_MAX {
        let message = format!("Expected at most {TAGS_MAX} tags, but {} were given.", tags.len());
        return Err(Failure::InvalidArgument(message));
    }
    for tag in &tags {
        let follows = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:.".contains(&byte);
        let valid = tag.len() <= TAG_BYTES_MAX
            && tag.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
            && tag.bytes().all(follows);
        if !valid {
            return Err(Failure::InvalidArgument(format!(
                "Expected a tag to start with a letter, followed by at most {} letters, digits, '_', '-', ':' or '.', but it was '{}'.",
                TAG_BYTES_MAX - 1,
                excerpt(tag)
            )));
        }
    }
    Ok(tags)
}

/// What a worker asks for in any request for jobs. `action` begins the sentence: `activate jobs`, `stream activated jobs`.
/// The names are kept as long as the request, so their size is limited.
pub(crate) fn job_request(
    action: &str,
    job_type: &str,
    timeout: i64,
    worker: &str,
    fetch_variables: &[String],
) -> Result<(), Failure> {
    if job_type.trim().is_empty() {
        return Err(Failure::expected(action, "type", "present", "blank"));
    }
    if timeout < 1 {
        return Err(Failure::expected(action, "timeout", "greater than zero", timeout));
    }
    // A name without a letter is one to look for too.
    let variables: usize = fetch_variables.iter().map(|name| name.len() + 1).sum();
    let bytes = job_type.len() + worker.len() + variables;
    if bytes > JOB_REQUEST_BYTES_MAX {
        let rule = format!("at most {JOB_REQUEST_BYTES_MAX} bytes together");
        return Err(Failure::expected(action, "type, worker and variable names", &rule, bytes));
    }
    Ok(())
}

/// Shares every string of a list.
pub(crate) fn texts(strings: Vec<String>) -> Vec<Text> {
    strings.into_iter().map(Text::from).collect()
}

/// The beginning of what a client sent, for an error message.
pub(crate) fn excerpt(text: &str) -> &str {
    let end = text.char_indices().nth(40).map_or(text.len(), |(position, _)| position);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Result<Text, Failure> {
        Variables::Text(text.to_owned()).check()
    }

    #[test]
    fn variables_are_an_object_or_nothing() {
        assert_eq!(text("").unwrap(), "");
        assert_eq!(text("null").unwrap(), "");
        assert_eq!(text(" {\"a\": [1, \"é\"]}\n").unwrap(), " {\"a\": [1, \"é\"]}\n");
        for wrong in ["[]", "1", "\"{}\"", "{", "{}x", "{\"a\":01}", "{'a':1}", "{\"a\":1,}", "{\"a\":NaN}", " "] {
            let Err(Failure::InvalidArgument(message)) = text(wrong) else { panic!("{wrong}") };
            assert!(message.starts_with("Expected the variables to be a JSON object"), "{message}");
        }
        assert_eq!(Variables::Json("{\"a\":1}".into()).check().unwrap(), "{\"a\":1}");
        assert!(Variables::Json("[1]".into()).check().is_err());
        for none in ["{}", " { } ", "null", ""] {
            assert!(Variables::Json(none.into()).is_empty() && Variables::Text(none.to_owned()).is_empty(), "{none}");
        }
        assert!(!Variables::Json("{\"a\":1}".into()).is_empty());
    }

    #[test]
    fn halves_of_characters_are_none() {
        for right in
            [r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\\ud83d"}"#, r#"{"\u00e9":"\\\\"}"#, r#"{"a":"\uD83D\uDE00\n"}"#]
        {
            assert_eq!(text(right).unwrap(), right);
        }
        for wrong in [r#"{"a":"\ud83d"}"#, r#"{"a":"\ude00\ud83d"}"#, r#"{"\uD83Dx":1}"#, r#"{"a":"\\\ud83d\u0041"}"#] {
            let Err(Failure::InvalidArgument(message)) = Variables::Json(wrong.into()).check() else {
                panic!("{wrong}")
            };
            assert!(message.contains("is half of a character"), "{message}");
            assert!(text(wrong).is_err());
        }
        assert!(text("{\"a\":\"\\é\"}").is_err(), "an escape that is none, before a letter of two bytes");
    }

    #[test]
    fn keys_lead_to_their_partition_or_to_nothing() {
        let target = Target { intent: "COMPLETE", action: "complete job", kind: "job" };
        let key = Key::new(PartitionId(2), 7);
        assert_eq!(route(target, key.raw(), 3).unwrap(), (PartitionId(2), key));
        for raw in [0, -1, 12, i64::MIN, Key::new(PartitionId(4), 7).raw()] {
            let failure = route(target, raw, 3).unwrap_err();
            assert_eq!(
                failure.message("CompleteJob"),
                format!(
                    "Command 'COMPLETE' rejected with code 'NOT_FOUND': Expected to complete job with key '{raw}', but no such job was found"
                )
            );
        }
    }

    #[test]
    fn tags_follow_their_pattern() {
        assert!(tags(vec!["a".into(), "Order:1.2_3-4".into()]).is_ok());
        for wrong in ["", "1a", "ä", "a b"] {
            assert!(tags(vec![wrong.into()]).is_err(), "{wrong}");
        }
        assert!(tags(vec!["a".repeat(101).into()]).is_err());
        assert!(tags(vec!["a".into(); 11]).is_err());
    }
}
