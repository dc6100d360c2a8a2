//! Checks that need no state.

use protocol::{DEFAULT_TENANT, Key, PartitionId, Rejection, Text};
use serde::de::IgnoredAny;
use tonic::Status;

use crate::status::{invalid_argument, rejected};

/// The names in a request for jobs, in bytes. Many requests wait at the same time, each with its names.
const JOB_REQUEST_BYTES_MAX: usize = 16 << 10;
/// How many tags an instance may have.
const TAGS_MAX: usize = 10;
/// How long a tag may be.
const TAG_BYTES_MAX: usize = 100;

/// The variables of a request: the text as it came when it is a JSON object; an empty text means no variables.
pub(crate) fn variables(text: String) -> Result<Text, Status> {
    // The Go client says `null` when it was given no map.
    if text.is_empty() || text == "null" {
        return Ok(Text::default());
    }
    let first = text.trim_start_matches([' ', '\t', '\n', '\r']).bytes().next();
    if first != Some(b'{') {
        return Err(invalid_argument(format!(
            "Expected the variables to be a JSON object, but the text starts with '{}'. Put the values under names: {{\"name\": value}}.",
            excerpt(&text)
        )));
    }
    match serde_json::from_str::<IgnoredAny>(&text) {
        Ok(_) => Ok(text.into()),
        Err(error) => Err(invalid_argument(format!(
            "Expected the variables to be a JSON object, but the text is not valid JSON: {error}."
        ))),
    }
}

/// The tenant of a request. There is only the default one.
pub(crate) fn tenant(request: &'static str, tenant_id: &str) -> Result<Text, Status> {
    if tenant_id.is_empty() || tenant_id == DEFAULT_TENANT {
        return Ok(DEFAULT_TENANT.into());
    }
    Err(invalid_argument(format!(
        "Expected to handle gRPC request {request} with tenant identifier '{}', but multi-tenancy is disabled. Leave the tenant out or use '{DEFAULT_TENANT}'.",
        excerpt(tenant_id)
    )))
}

/// The tenants whose jobs are wanted.
pub(crate) fn tenants(request: &'static str, tenant_ids: &[String]) -> Result<Vec<Text>, Status> {
    for tenant_id in tenant_ids {
        tenant(request, tenant_id)?;
    }
    Ok(vec![DEFAULT_TENANT.into()])
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
pub(crate) fn route(target: Target, key: i64, partition_count: u16) -> Result<(PartitionId, Key), Status> {
    let key = Key::from_raw(key);
    match key.partition().filter(|partition| partition.0 <= partition_count) {
        Some(partition) => Ok((partition, key)),
        None => Err(rejected(
            target.intent,
            &Rejection::not_found(format!(
                "Expected to {} with key '{key}', but no such {} was found",
                target.action, target.kind
            )),
        )),
    }
}

/// Tags of an instance.
pub(crate) fn tags(tags: Vec<String>) -> Result<Vec<Text>, Status> {
    if tags.len() > TAGS_MAX {
        return Err(invalid_argument(format!("Expected at most {TAGS_MAX} tags, but {} were given.", tags.len())));
    }
    for tag in &tags {
        let follows = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:.".contains(&byte);
        let valid = tag.len() <= TAG_BYTES_MAX
            && tag.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
            && tag.bytes().all(follows);
        if !valid {
            return Err(invalid_argument(format!(
                "Expected a tag to start with a letter, followed by at most {} letters, digits, '_', '-', ':' or '.', but it was '{}'.",
                TAG_BYTES_MAX - 1,
                excerpt(tag)
            )));
        }
    }
    Ok(texts(tags))
}

/// What a worker asks for in any request for jobs. `action` begins the sentence: `activate jobs`, `stream activated jobs`.
/// The names are kept as long as the request, so their size is limited.
pub(crate) fn job_request(
    action: &str,
    job_type: &str,
    timeout: i64,
    worker: &str,
    fetch_variables: &[String],
) -> Result<(), Status> {
    if job_type.trim().is_empty() {
        return Err(expected(action, "type", "present", "blank"));
    }
    if timeout < 1 {
        return Err(expected(action, "timeout", "greater than zero", timeout));
    }
    let variables: usize = fetch_variables.iter().map(String::len).sum();
    let bytes = job_type.len() + worker.len() + variables;
    if bytes > JOB_REQUEST_BYTES_MAX {
        let rule = format!("at most {JOB_REQUEST_BYTES_MAX} bytes together");
        return Err(expected(action, "type, worker and variable names", &rule, bytes));
    }
    Ok(())
}

/// `Expected to <action> with <field> to be <…>, but it was <…>`
pub(crate) fn expected(action: &str, field: &str, rule: &str, found: impl std::fmt::Display) -> Status {
    invalid_argument(format!("Expected to {action} with {field} to be {rule}, but it was {found}"))
}

/// Shares every string of a list.
pub(crate) fn texts(strings: Vec<String>) -> Vec<Text> {
    strings.into_iter().map(Text::from).collect()
}

/// The beginning of what a client sent, for an error message.
fn excerpt(text: &str) -> &str {
    let end = text.char_indices().nth(40).map_or(text.len(), |(position, _)| position);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_an_object_or_nothing() {
        assert_eq!(variables(String::new()).unwrap(), "");
        assert_eq!(variables("null".into()).unwrap(), "");
        assert_eq!(variables(" {\"a\": [1, \"é\"]}\n".into()).unwrap(), " {\"a\": [1, \"é\"]}\n");
        for wrong in ["[]", "1", "\"{}\"", "{", "{}x", "{\"a\":01}", "{'a':1}", "{\"a\":1,}", "{\"a\":NaN}", " "] {
            let status = variables(wrong.into()).unwrap_err();
            assert_eq!(status.code(), tonic::Code::InvalidArgument, "{wrong}");
            assert!(status.message().starts_with("Expected the variables to be a JSON object"), "{status}");
        }
    }

    #[test]
    fn keys_lead_to_their_partition_or_to_nothing() {
        let target = Target { intent: "COMPLETE", action: "complete job", kind: "job" };
        let key = Key::new(PartitionId(2), 7);
        assert_eq!(route(target, key.raw(), 3).unwrap(), (PartitionId(2), key));
        for raw in [0, -1, 12, i64::MIN, Key::new(PartitionId(4), 7).raw()] {
            let status = route(target, raw, 3).unwrap_err();
            assert_eq!(status.code(), tonic::Code::NotFound);
            assert_eq!(
                status.message(),
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
        assert!(tags(vec!["a".repeat(101)]).is_err());
        assert!(tags(vec!["a".into(); 11]).is_err());
    }
}
