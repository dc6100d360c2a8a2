//! The searches of a gateway, and of Elasticsearch and OpenSearch behind an exporter.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tonic::{Code, Status};

use super::{By, Wanted};
use crate::model::{TAG, Tag};
use crate::options::{AvailabilityOptions, Database, RestOptions};
use crate::rest::Rest;

/// Searches for one instance.
pub(super) struct Searches {
    database: Database,
    rest: Rest,
    addresses: String,
    request_timeout: Duration,
}

/// What a gateway found.
#[derive(Deserialize)]
struct Page {
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    process_instance_key: String,
}

/// What Elasticsearch or OpenSearch found; nothing as long as there is no index.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    aggregations: Aggregations,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Aggregations {
    found: Buckets,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Buckets {
    buckets: Vec<Bucket>,
}

#[derive(Deserialize)]
struct Bucket {
    key: i64,
}

impl Searches {
    pub(super) fn new(options: &AvailabilityOptions, request_timeout: Duration) -> Self {
        let connections = RestOptions { addresses: options.addresses.clone(), connection_per_request: false };
        Searches {
            database: options.database,
            rest: Rest::new(&connections),
            addresses: options.addresses.join(", "),
            request_timeout,
        }
    }

    /// Whether one search looks for all that is wanted.
    pub(super) fn are_made_together(&self) -> bool {
        self.database == Database::Elasticsearch
    }

    /// How soon a search that found nothing may come again. Elasticsearch shows nothing new between its refreshes, and a thousand
    /// searches a second are work by which what is measured would become longer.
    pub(super) fn shortest_pause(&self) -> Duration {
        match self.database {
            Database::ReadModel => Duration::from_millis(1),
            Database::Elasticsearch => Duration::from_millis(25),
        }
    }

    pub(super) async fn by_key(&self, key: i64) -> Result<bool, Status> {
        match self.rest.get(&format!("/v2/process-instances/{key}"), self.request_timeout).await {
            Ok(_) => Ok(true),
            Err(status) if status.code() == Code::NotFound => Ok(false),
            Err(status) => Err(status),
        }
    }

    pub(super) async fn by_filter(&self, process_id: &str, tag: Tag, key: i64) -> Result<bool, Status> {
        let body = format!(
            r#"{{"filter":{{"processDefinitionId":"{process_id}","variables":[{{"name":"{TAG}","value":"\"{tag}\""}}]}},"page":{{"limit":2}}}}"#
        );
        let answer = self.rest.post("/v2/process-instances/search", body, self.request_timeout).await?;
        let page: Page = read(&answer)?;
        expect_one(page.items.iter().map(|item| item.process_instance_key.parse().unwrap_or(-1)), key)
    }

    /// The keys of those wanted instances of which Elasticsearch or OpenSearch finds a record.
    pub(super) async fn all(&self, by: By, process_ids: &[Arc<str>], wanted: &[Wanted]) -> Result<Vec<i64>, Status> {
        let (value_type, filter) = match by {
            By::Key => {
                let keys: Vec<i64> = wanted.iter().map(|wanted| wanted.key).collect();
                ("process-instance", json!([{ "terms": { "value.processInstanceKey": keys } }]))
            }
            By::Filter => {
                let tags: Vec<String> = wanted.iter().map(|wanted| format!("\"{}\"", wanted.tag)).collect();
                let filter = json!([
                    { "terms": { "value.bpmnProcessId": process_ids.iter().map(|id| &**id).collect::<Vec<_>>() } },
                    { "term": { "value.name": TAG } },
                    { "terms": { "value.value": tags } },
                ]);
                ("variable", filter)
            }
        };
        let body = json!({
            "size": 0, "track_total_hits": false, "query": { "bool": { "filter": filter } },
            "aggs": { "found": { "terms": { "field": "value.processInstanceKey", "size": wanted.len() } } },
        });
        let path = format!("/*_{value_type}_*/_search");
        let answer: Answer = read(&self.rest.post(&path, body.to_string(), self.request_timeout).await?)?;
        Ok(answer.aggregations.found.buckets.into_iter().map(|bucket| bucket.key).collect())
    }
}

impl Display for Searches {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let name = match self.database {
            Database::ReadModel => "the read model",
            Database::Elasticsearch => "Elasticsearch or OpenSearch",
        };
        write!(formatter, "{name} at {}", self.addresses)
    }
}

fn read<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, Status> {
    serde_json::from_slice(answer).map_err(|error| Status::internal(format!("an answer cannot be read: {error}")))
}

/// Nothing is found yet, or the instance; another one is an error.
fn expect_one(keys: impl Iterator<Item = i64>, wanted: i64) -> Result<bool, Status> {
    let mut is_found = false;
    for key in keys {
        if key != wanted {
            return Err(Status::data_loss(format!("a search for instance {wanted} found {key}")));
        }
        is_found = true;
    }
    Ok(is_found)
}
