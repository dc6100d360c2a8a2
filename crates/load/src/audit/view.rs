//! What one node finds of a run.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tonic::Status;

use crate::ledger::Header;
use crate::model::{Tag, task_number};
use crate::options::RestOptions;
use crate::rest::Rest;

/// How many instances or jobs one page has.
const PAGE_ITEMS: u32 = 2_000;
/// How long a page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Instances and jobs of a run, as one node shows them.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// By their keys.
    pub instances: HashMap<i64, Instance>,
    /// By their keys.
    pub jobs: HashMap<i64, Job>,
}

/// A process instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// None when the node shows none of this tool.
    pub tag: Option<Tag>,
    pub state: State,
    pub has_incident: bool,
}

/// The state of a process instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum State {
    Active,
    Completed,
    #[serde(alias = "CANCELED")]
    Terminated,
}

/// A job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// The key of its process instance.
    pub instance: i64,
    /// The number of its task.
    pub task: Option<u16>,
    pub is_completed: bool,
}

impl Display for State {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            State::Active => "ACTIVE",
            State::Completed => "COMPLETED",
            State::Terminated => "TERMINATED",
        })
    }
}

#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
    page: Cursors,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cursors {
    end_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InstanceItem {
    process_instance_key: String,
    state: State,
    #[serde(default)]
    has_incident: bool,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobItem {
    job_key: String,
    process_instance_key: String,
    #[serde(default)]
    element_id: String,
    state: String,
}

/// A node that is searched.
pub(super) struct Node {
    pub address: String,
    rest: Rest,
}

impl Node {
    pub fn new(address: &str) -> Self {
        let addresses = vec![address.to_owned()];
        Node { address: address.to_owned(), rest: Rest::new(&RestOptions { addresses, connection_per_request: false }) }
    }

    pub fn rest(&self) -> &Rest {
        &self.rest
    }

    /// Reads all instances of the run's processes, and all jobs of its type.
    pub async fn view(&self, header: &Header) -> Result<View, Status> {
        let mut view = View::default();
        let filter = json!({ "processDefinitionId": { "$in": header.process_ids } });
        self.pages("process-instances", "processInstanceKey", &filter, |item: InstanceItem| {
            let tags = item.tags.unwrap_or_default();
            let instance = Instance {
                tag: Tag::among(tags.iter().map(String::as_str)),
                state: item.state,
                has_incident: item.has_incident,
            };
            view.instances.insert(key(&item.process_instance_key)?, instance);
            Ok(())
        })
        .await?;
        self.pages("jobs", "jobKey", &json!({ "type": header.job_type }), |item: JobItem| {
            let job = Job {
                instance: key(&item.process_instance_key)?,
                task: task_number(&item.element_id),
                is_completed: item.state == "COMPLETED",
            };
            view.jobs.insert(key(&item.job_key)?, job);
            Ok(())
        })
        .await?;
        Ok(view)
    }

    /// Goes through all items of a search, in the order of their keys.
    async fn pages<T: DeserializeOwned>(
        &self,
        what: &str,
        by: &str,
        filter: &Value,
        mut take: impl FnMut(T) -> Result<(), Status>,
    ) -> Result<(), Status> {
        let path = format!("/v2/{what}/search");
        let mut after = None;
        loop {
            let mut page = json!({ "limit": PAGE_ITEMS });
            if let Some(after) = &after {
                page["after"] = json!(after);
            }
            let sort = json!([{ "field": by, "order": "ASC" }]);
            let body = json!({ "filter": filter, "sort": sort, "page": page }).to_string();
            let answer = self.rest.post(&path, body, PAGE_TIMEOUT).await?;
            let page: Page<T> = serde_json::from_slice(&answer)
                .map_err(|error| Status::internal(format!("the answer to {path} cannot be read: {error}")))?;
            let is_empty = page.items.is_empty();
            page.items.into_iter().try_for_each(&mut take)?;
            match page.page.end_cursor {
                Some(cursor) if !is_empty => after = Some(cursor),
                _ => return Ok(()),
            }
        }
    }
}

fn key(text: &str) -> Result<i64, Status> {
    text.parse().map_err(|_| Status::internal(format!("\"{text}\" is not a key")))
}
