//! What the target says of each document of a bulk.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Only this of the answer is asked for.
pub(super) const BULK_PATH: &str = "/_bulk?filter_path=took,errors,items.*.status,items.*.error";

/// Errors of the target that are not the document's own: they go away, or somebody has to do something, and the document is
/// sent again.
const OF_THE_TARGET: &[&str] = &[
    "cluster_block_exception",
    "index_closed_exception",
    "index_not_found_exception",
    "invalid_alias_name_exception",
    "invalid_index_name_exception",
    "no_shard_available_action_exception",
    "process_cluster_event_timeout_exception",
    "security_exception",
    // Too many shards in the cluster, for example.
    "validation_exception",
];

/// The same, of errors whose type is that of many others: what their reasons say.
const REASONS_OF_THE_TARGET: &[&str] = &[
    // `rest.action.multi.allow_explicit_index` is off.
    "explicit index in bulk is not allowed",
    // The index is full.
    "Number of documents in the index can't exceed",
    // Its ingest pipeline is missing.
    "pipeline with id [",
    // Somebody made a data stream of that name.
    "only write ops with an op_type of create are allowed in data streams",
];

/// The answer to a bulk.
#[derive(Debug, Deserialize)]
pub(super) struct BulkAnswer<'a> {
    /// How long the target worked, in milliseconds.
    #[serde(default)]
    took: Option<u64>,
    errors: bool,
    #[serde(borrow, default)]
    items: Vec<Item<'a>>,
}

#[derive(Debug, Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    index: ItemAnswer<'a>,
}

/// The answer to a document.
#[derive(Debug, Deserialize)]
pub(super) struct ItemAnswer<'a> {
    pub status: u16,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Told {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    reason: Option<String>,
}

impl Told {
    fn read(error: &RawValue) -> Option<Told> {
        serde_json::from_str(error.get()).ok()
    }

    fn is_of_the_target(&self) -> bool {
        let reason = self.reason.as_deref().unwrap_or_default();
        OF_THE_TARGET.contains(&self.kind.as_str()) || REASONS_OF_THE_TARGET.iter().any(|part| reason.contains(part))
    }
}

/// What becomes of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The target has it.
    Taken,
    /// It may be taken another time.
    Again,
    /// It is never taken.
    Rejected,
}

impl<'a> BulkAnswer<'a> {
    /// Reads the answer to so many documents. An error says why it cannot be believed.
    pub fn read(body: &'a [u8], documents: usize) -> Result<BulkAnswer<'a>, String> {
        let answer: BulkAnswer<'a> =
            serde_json::from_slice(body).map_err(|error| format!("the answer is not that of a bulk: {error}"))?;
        if answer.items.len() != documents {
            return Err(format!("the answer is about {} records of {documents}", answer.items.len()));
        }
        Ok(answer)
    }

    /// Whether all documents were taken.
    pub fn is_success(&self) -> bool {
        !self.errors && self.items.iter().all(|item| item.index.verdict() == Verdict::Taken)
    }

    /// How long the target says that it worked.
    pub fn took(&self) -> Option<Duration> {
        self.took.map(Duration::from_millis)
    }

    /// The answer to a document.
    pub fn item(&self, index: usize) -> &ItemAnswer<'a> {
        &self.items[index].index
    }
}

impl ItemAnswer<'_> {
    /// What becomes of the document.
    pub fn verdict(&self) -> Verdict {
        match self.status {
            200..=299 => Verdict::Taken,
            // Not there, not allowed, too many: none of them is about what is in the document.
            401 | 403 | 404 | 408 | 429 | 500.. => Verdict::Again,
            400..=499 if self.error.and_then(Told::read).is_some_and(|told| told.is_of_the_target()) => Verdict::Again,
            400..=499 => Verdict::Rejected,
            _ => Verdict::Again,
        }
    }
}

/// Whether a request was refused as a whole for what is in it: it could not be read. Whatever else is said of all documents at once
/// is not about them.
pub(super) fn is_about_content(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Refusal<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    let refusal = serde_json::from_slice::<Refusal<'_>>(body).ok();
    let told = refusal.and_then(|refusal| Told::read(refusal.error));
    told.is_some_and(|told| ["parse_exception", "parsing_exception"].iter().any(|end| told.kind.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_has_its_verdict() {
        for (item, expected) in [
            (r#"{"status":201}"#, Verdict::Taken),
            (r#"{"status":200}"#, Verdict::Taken),
            (r#"{"status":429,"error":{"type":"es_rejected_execution_exception"}}"#, Verdict::Again),
            (r#"{"status":403,"error":{"type":"cluster_block_exception"}}"#, Verdict::Again),
            (r#"{"status":503,"error":{"type":"unavailable_shards_exception"}}"#, Verdict::Again),
            (r#"{"status":404,"error":{"type":"index_not_found_exception"}}"#, Verdict::Again),
            (r#"{"status":400,"error":{"type":"validation_exception"}}"#, Verdict::Again),
            (
                r#"{"status":400,"error":{"type":"illegal_argument_exception","reason":"pipeline with id [p] does not exist"}}"#,
                Verdict::Again,
            ),
            (
                r#"{"status":400,"error":{"type":"illegal_argument_exception","reason":"Document contains an immense term"}}"#,
                Verdict::Rejected,
            ),
            (r#"{"status":400,"error":{"type":"illegal_argument_exception","reason":null}}"#, Verdict::Rejected),
            (r#"{"status":400,"error":{"type":"document_parsing_exception","reason":"x"}}"#, Verdict::Rejected),
            (r#"{"status":400,"error":{"type":"a later one"}}"#, Verdict::Rejected),
            (r#"{"status":413}"#, Verdict::Rejected),
            (r#"{"status":302}"#, Verdict::Again),
        ] {
            let body = format!(r#"{{"errors":true,"items":[{{"index":{item}}}]}}"#);
            let answer = BulkAnswer::read(body.as_bytes(), 1).expect(item);
            assert_eq!(answer.item(0).verdict(), expected, "{item}");
            assert!(!answer.is_success());
        }
    }

    #[test]
    fn an_answer_that_is_not_about_all_documents_is_not_believed() {
        let ok = br#"{"errors":false,"items":[{"index":{"status":201}}]}"#;
        assert!(BulkAnswer::read(ok, 1).expect("right").is_success());
        for (body, part) in
            [(&ok[..], "1 records of 2"), (b"<html>", "not that of a bulk"), (br#"{"errors":false}"#, "0 records of 2")]
        {
            assert!(BulkAnswer::read(body, 2).expect_err("wrong").contains(part));
        }
        assert!(is_about_content(br#"{"error":{"type":"x_content_parse_exception"},"status":400}"#));
        let explicit =
            r#"{"error":{"type":"illegal_argument_exception","reason":"explicit index in bulk is not allowed"}}"#;
        for other in
            [r#"{"error":"no handler found for uri"}"#, r#"{"error":{"type":"security_exception"}}"#, explicit, "x"]
        {
            assert!(!is_about_content(other.as_bytes()), "{other}");
        }
    }
}
