//! `osmia instances`, `incidents`, `jobs`, `tasks`, `definitions` and `variables`.

use clap::Args;
use serde_json::{Map, Value, json};

use super::question::Question;
use super::rest::{Rest, filter, shown, text};
use super::table;
use super::watch::watch;
use crate::client::{ClientError, Outcome};
use crate::output::Output;

/// Which part of a list is wanted.
#[derive(Debug, Args)]
pub(crate) struct Part {
    /// More conditions: the filter of the search as a JSON object; what other flags say goes before it
    #[arg(long, value_name = "JSON")]
    filter: Option<String>,
    /// Sort by this field, with :desc in descending order
    #[arg(long, value_name = "FIELD[:desc]")]
    sort: Option<String>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Go on behind this cursor, which the part before ended with
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Print the list again whenever it changes, until interrupted
    #[arg(long)]
    watch: bool,
}

/// What is listed, and as which columns.
struct List {
    entity: &'static str,
    columns: &'static [(&'static str, &'static str)],
}

impl List {
    fn print(&self, part: Part, flags: Map<String, Value>, rest: &Rest, output: &Output) -> Outcome {
        let path = format!("/v2/{}/search", self.entity);
        let is_watched = part.watch;
        let body = part.body(flags)?;
        let ask = || rest.post(&path, &body);
        let show = |answer: &Value| self.show(answer, &path, &body, rest, output);
        let away =
            |error: &ClientError| output.note(format_args!("{}. It is asked again.", table::plain(&error.to_string())));
        if is_watched { watch(ask, show, away) } else { show(&ask()?) }
    }

    /// A part of the list, and whether there is more.
    fn show(&self, answer: &Value, path: &str, body: &Value, rest: &Rest, output: &Output) -> Outcome {
        let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let heading = self.columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        let row = |item: &Value| self.columns.iter().map(|(_, field)| shown(&item[*field])).collect();
        let rows: Vec<Vec<String>> = std::iter::once(heading).chain(items.iter().map(row)).collect();
        output.say(table::lines(&rows).join("\n"), || answer.clone())?;
        if output.is_json() {
            return Ok(());
        }
        let page = &answer["page"];
        let total = format!("{}{}", page["totalItems"], if page["hasMoreTotalItems"] == true { "+" } else { "" });
        let Some(cursor) = text(page, "endCursor") else {
            output.note("These are all.");
            return Ok(());
        };
        // Whether this is the end is asked, because a part may be shorter than its limit when its rows are large.
        let mut body = body.clone();
        body["page"] = json!({ "limit": 1, "after": cursor });
        let is_end = rest.post(path, &body)?["items"].as_array().is_none_or(Vec::is_empty);
        if is_end {
            output.note(format_args!("{} of {total}. This is the end.", items.len()));
        } else {
            output.note(format_args!("{} of {total}. The next ones: --after {cursor}", items.len()));
        }
        Ok(())
    }
}

impl Part {
    /// The state to look for: what was said, none for all of them, or the usual one unless the filter names some.
    fn state(&self, said: Option<String>, usual: &str) -> Option<Value> {
        let filter = self.filter.as_deref().and_then(|given| serde_json::from_str::<Map<String, Value>>(given).ok());
        match said {
            Some(said) if said.eq_ignore_ascii_case("all") => None,
            Some(said) => capitals(Some(said)),
            None if filter.is_some_and(|filter| filter.contains_key("state")) => None,
            None => Some(usual.into()),
        }
    }

    /// The body of the search.
    fn body(&self, flags: Map<String, Value>) -> Outcome<Value> {
        let wrong = |reason: String| ClientError::Question(format!("--filter is no JSON object: {reason}"));
        let mut conditions: Map<String, Value> = match &self.filter {
            Some(given) => serde_json::from_str(given).map_err(|error| wrong(error.to_string()))?,
            None => Map::new(),
        };
        conditions.extend(flags);
        let mut page = json!({ "limit": self.limit });
        if let Some(cursor) = &self.after {
            page["after"] = json!(cursor);
        }
        let mut body = json!({ "filter": conditions, "page": page });
        if let Some(sort) = &self.sort {
            let (field, order) = match sort.split_once(':') {
                None | Some((_, "asc")) => (sort.strip_suffix(":asc").unwrap_or(sort), "ASC"),
                Some((field, "desc")) => (field, "DESC"),
                Some((_, other)) => {
                    return Err(ClientError::Question(format!(
                        "--sort ends with ':{other}', but must with :asc or :desc."
                    )));
                }
            };
            body["sort"] = json!([{ "field": field, "order": order }]);
        }
        Ok(body)
    }
}

/// A key as the API has it.
fn key(key: Option<i64>) -> Option<Value> {
    key.map(|key| json!(key.to_string()))
}

/// A name in the capitals of the API.
fn capitals(name: Option<String>) -> Option<Value> {
    name.map(|name| json!(name.to_uppercase()))
}

#[derive(Debug, Args)]
pub(crate) struct Instances {
    /// BPMN process id
    #[arg(long, value_name = "ID")]
    process: Option<String>,
    /// Version of the process
    #[arg(long)]
    version: Option<i32>,
    /// active, completed or terminated
    #[arg(long)]
    state: Option<String>,
    /// Only those with an incident
    #[arg(long)]
    incidents: bool,
    /// Only those with this business id
    #[arg(long, value_name = "ID")]
    business_id: Option<String>,
    /// Only those that this process instance called
    #[arg(long, value_name = "KEY")]
    parent: Option<i64>,
    /// Only those with a variable of this JSON value; may be given several times
    #[arg(long = "variable", value_name = "NAME=JSON")]
    variables: Vec<String>,
    #[command(flatten)]
    part: Part,
}

impl Question for Instances {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome {
        let variable = |given: &String| match given.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(json!({ "name": name, "value": value })),
            _ => Err(ClientError::Question(format!("--variable is '{given}', but must be NAME=JSON."))),
        };
        let variables = self.variables.iter().map(variable).collect::<Outcome<Vec<Value>>>()?;
        let flags = filter([
            ("processDefinitionId", self.process.map(Value::from)),
            ("processDefinitionVersion", self.version.map(Value::from)),
            ("state", capitals(self.state)),
            ("hasIncident", self.incidents.then_some(Value::Bool(true))),
            ("parentProcessInstanceKey", key(self.parent)),
            ("businessId", self.business_id.map(Value::from)),
            ("variables", Some(Value::Array(variables)).filter(|all| all != &json!([]))),
        ]);
        let list = List {
            entity: "process-instances",
            columns: &[
                ("KEY", "processInstanceKey"),
                ("PROCESS", "processDefinitionId"),
                ("VERSION", "processDefinitionVersion"),
                ("BUSINESS ID", "businessId"),
                ("STATE", "state"),
                ("INCIDENT", "hasIncident"),
                ("STARTED", "startDate"),
                ("ENDED", "endDate"),
            ],
        };
        list.print(self.part, flags, rest, output)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Tasks {
    /// Who is to do it
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    /// Only those that nobody has
    #[arg(long, conflicts_with = "assignee")]
    unassigned: bool,
    /// A group whose members may do it
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// BPMN process id
    #[arg(long, value_name = "ID")]
    process: Option<String>,
    /// Key of the process instance
    #[arg(long, value_name = "KEY")]
    instance: Option<i64>,
    /// created, completed or canceled, for example; all for each. Without it and without a state in --filter: created
    #[arg(long)]
    state: Option<String>,
    #[command(flatten)]
    part: Part,
}

impl Question for Tasks {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome {
        let nobody = self.unassigned.then(|| json!({ "$exists": false }));
        let flags = filter([
            ("assignee", self.assignee.map(Value::from).or(nobody)),
            ("candidateGroup", self.group.map(Value::from)),
            ("processDefinitionId", self.process.map(Value::from)),
            ("processInstanceKey", key(self.instance)),
            ("state", self.part.state(self.state, "CREATED")),
        ]);
        let list = List {
            entity: "user-tasks",
            columns: &[
                ("KEY", "userTaskKey"),
                ("NAME", "name"),
                ("ASSIGNEE", "assignee"),
                ("PROCESS", "processDefinitionId"),
                ("INSTANCE", "processInstanceKey"),
                ("STATE", "state"),
                ("SINCE", "creationDate"),
                ("DUE", "dueDate"),
            ],
        };
        list.print(self.part, flags, rest, output)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Incidents {
    /// BPMN process id
    #[arg(long, value_name = "ID")]
    process: Option<String>,
    /// Key of the process instance
    #[arg(long, value_name = "KEY")]
    instance: Option<i64>,
    /// Kind: job_no_retries, for example
    #[arg(long = "type", value_name = "TYPE")]
    error_type: Option<String>,
    /// active, resolved, or all. Without it and without a state in --filter: active
    #[arg(long)]
    state: Option<String>,
    #[command(flatten)]
    part: Part,
}

impl Question for Incidents {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome {
        let flags = filter([
            ("processDefinitionId", self.process.map(Value::from)),
            ("processInstanceKey", key(self.instance)),
            ("errorType", capitals(self.error_type)),
            ("state", self.part.state(self.state, "ACTIVE")),
        ]);
        let list = List {
            entity: "incidents",
            columns: &[
                ("KEY", "incidentKey"),
                ("INSTANCE", "processInstanceKey"),
                ("ELEMENT", "elementId"),
                ("TYPE", "errorType"),
                ("SINCE", "creationTime"),
                ("MESSAGE", "errorMessage"),
            ],
        };
        list.print(self.part, flags, rest, output)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// Type of the job
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Key of the process instance
    #[arg(long, value_name = "KEY")]
    instance: Option<i64>,
    /// created, failed, completed, …
    #[arg(long)]
    state: Option<String>,
    /// bpmn_element, execution_listener, task_listener or ad_hoc_sub_process
    #[arg(long)]
    kind: Option<String>,
    /// Name of the worker that has it, or had it last
    #[arg(long)]
    worker: Option<String>,
    #[command(flatten)]
    part: Part,
}

impl Question for Jobs {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome {
        let flags = filter([
            ("type", self.job_type.map(Value::from)),
            ("processInstanceKey", key(self.instance)),
            ("state", capitals(self.state)),
            ("kind", capitals(self.kind)),
            ("worker", self.worker.map(Value::from)),
        ]);
        let list = List {
            entity: "jobs",
            columns: &[
                ("KEY", "jobKey"),
                ("TYPE", "type"),
                ("KIND", "kind"),
                ("STATE", "state"),
                ("RETRIES", "retries"),
                ("WORKER", "worker"),
                ("INSTANCE", "processInstanceKey"),
                ("ELEMENT", "elementId"),
                ("ERROR", "errorMessage"),
            ],
        };
        list.print(self.part, flags, rest, output)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Definitions {
    /// BPMN process id
    #[arg(long, value_name = "ID")]
    process: Option<String>,
    /// Only the latest version of each process
    #[arg(long)]
    latest: bool,
    #[command(flatten)]
    part: Part,
}

impl Question for Definitions {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome {
        let flags = filter([
            ("processDefinitionId", self.process.map(Value::from)),
            ("isLatestVersion", self.latest.then_some(Value::Bool(true))),
        ]);
        let list = List {
            entity: "process-definitions",
            columns: &[
                ("KEY", "processDefinitionKey"),
                ("PROCESS", "processDefinitionId"),
                ("VERSION", "version"),
                ("TAG", "versionTag"),
                ("NAME", "name"),
                ("FILE", "resourceName"),
            ],
        };
        list.print(self.part, flags, rest, output)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Variables {
    /// Key of the process instance
    #[arg(long, value_name = "KEY")]
    instance: Option<i64>,
    /// Key of the element instance or process instance that they belong to
    #[arg(long, value_name = "KEY")]
    scope: Option<i64>,
    /// Name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    part: Part,
}

impl Question for Variables {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome {
        let flags = filter([
            ("processInstanceKey", key(self.instance)),
            ("scopeKey", key(self.scope)),
            ("name", self.name.map(Value::from)),
        ]);
        let list = List {
            entity: "variables",
            columns: &[
                ("KEY", "variableKey"),
                ("INSTANCE", "processInstanceKey"),
                ("SCOPE", "scopeKey"),
                ("NAME", "name"),
                ("VALUE", "value"),
            ],
        };
        list.print(self.part, flags, rest, output)
    }
}
