//! The searches of a gateway, and of Elasticsearch and OpenSearch behind an exporter.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use serde::Deserialize;
use tonic::{Code, Status};

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

/// What Elasticsearch or OpenSearch found.
#[derive(Deserialize)]
struct Answer {
    hits: Hits,
}

#[derive(Deserialize)]
struct Hits {
    hits: Vec<Hit>,
}

#[derive(Deserialize)]
struct Hit {
    #[serde(rename = "_source")]
    source: Document,
}

#[derive(Deserialize)]
struct Document {
    value: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Value {
    process_instance_key: i64,
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

    /// How soon a search that found nothing may come again. Elasticsearch shows nothing new between its refreshes, and a thousand
    /// searches a second are work of which what is measured would become longer.
    pub(super) fn shortest_pause(&self) -> Duration {
        match self.database {
            Database::ReadModel => Duration::from_millis(1),
            Database::Elasticsearch => Duration::from_millis(25),
        }
    }

    pub(super) async fn by_key(&self, key: i64) -> Result<bool, Status> {
        match self.database {
            Database::ReadModel => {
                match self.rest.get(&format!("/v2/process-instances/{key}"), self.request_timeout).await {
                    Ok(_) => Ok(true),
                    Err(status) if status.code() == Code::NotFound => Ok(false),
                    Err(status) => Err(status),
                }
            }
            Database::Elasticsearch => {
                let filter = format!(r#"{{"term":{{"value.processInstanceKey":{key}}}}}"#);
                self.documents("process-instance", &filter, key).await
            }
        }
    }

    pub(super) async fn by_filter(&self, process_id: &str, tag: Tag, key: i64) -> Result<bool, Status> {
        match self.database {
            Database::ReadModel => {
                let body = format!(
                    r#"{{"filter":{{"processDefinitionId":"{process_id}","variables":[{{"name":"{TAG}","value":"\"{tag}\""}}]}},"page":{{"limit":2}}}}"#
                );
                let answer = self.rest.post("/v2/process-instances/search", body, self.request_timeout).await?;
                let page: Page = read(&answer)?;
                expect_one(page.items.iter().map(|item| item.process_instance_key.parse().unwrap_or(-1)), key)
            }
            Database::Elasticsearch => {
                let filter = format!(
                    r#"{{"term":{{"value.bpmnProcessId":"{process_id}"}}}},{{"term":{{"value.name":"{TAG}"}}}},{{"term":{{"value.value":"\"{tag}\""}}}}"#
                );
                self.documents("variable", &filter, key).await
            }
        }
    }

    /// Whether there is a record of this instance among those of a value type that match.
    async fn documents(&self, value_type: &str, filter: &str, key: i64) -> Result<bool, Status> {
        let body = format!(
            r#"{{"size":2,"track_total_hits":false,"_source":["value.processInstanceKey"],"query":{{"bool":{{"filter":[{filter}]}}}}}}"#
        );
        let path = format!("/*_{value_type}_*/_search");
        let answer: Answer = read(&self.rest.post(&path, body, self.request_timeout).await?)?;
        let keys = answer.hits.hits.iter().map(|hit| hit.source.value.process_instance_key);
        expect_one(keys, key)
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
