//! The operations that only read.

use hyper::StatusCode;
use protocol::{Key, PartitionId};
use readmodel::Cost;
use readmodel::query::{
    AUDIT_LOGS, CORRELATED_MESSAGE_SUBSCRIPTIONS, Condition, DECISION_DEFINITIONS, DECISION_INSTANCES,
    DECISION_REQUIREMENTS, ELEMENT_INSTANCES, Entity, FORMS, Failure, GLOBAL_LISTENERS, INCIDENTS, JOBS,
    MESSAGE_SUBSCRIPTIONS, Models, PROCESS_DEFINITIONS, PROCESS_INSTANCES, RESOURCES, Readers, SEQUENCE_FLOWS, Scope,
    Search, Sort, TaskPlace, Test, USER_TASKS, VARIABLE, VARIABLES, Value, WAIT_STATES,
};

use super::{Searcher, answer, request};
use crate::request::job::UpdateJobRetries;
use crate::rest::global_listener::path_id;
use crate::rest::json::JsonObject;
use crate::rest::object::{number_of_key, path_key};
use crate::rest::problem::Problem;
use crate::validation::excerpt;

/// What an operation reads.
#[derive(Debug, Clone, Copy)]
pub(in crate::rest) enum Read {
    /// Rows of an entity.
    Search(&'static Entity),
    /// The incidents of the element instance in the path, and of what is inside of it or was called there.
    IncidentsOfElementInstance,
    /// The incidents of the process instance in the path, and of those that it called.
    IncidentsOfProcessInstance,
    /// The row with the key in the path.
    Get(&'static Entity),
    /// Its instance key is a text.
    GetDecisionInstance,
    /// The global listener with the id in the path.
    GetGlobalListener,
    GetVariable,
    GetSequenceFlows,
    GetCallHierarchy,
    GetModel(&'static Entity, Models),
    GetStartForm,
    /// The form of the user task in the path.
    GetTaskForm,
    /// The variables that the user task in the path sees: all, or without those that inner ones hide.
    TaskVariables {
        is_effective: bool,
    },
    ElementStatisticsOfDefinition,
    ElementStatisticsOfInstance,
    DefinitionStatistics,
    VersionStatistics,
    ErrorStatistics,
    DefinitionErrorStatistics,
    SubscriptionStatistics,
    /// The names that variables of the definition in the path have had.
    VariableNames,
    WaitStatistics,
    JobsOfAll,
    JobsByType,
    JobsByWorker,
    JobsByTime,
    JobErrors,
    /// What was done with the user task in the path.
    AuditOfTask,
    UsageMetrics,
}

impl PartialEq for Read {
    fn eq(&self, other: &Read) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Eq for Read {}

impl Read {
    /// By the names of their operations.
    pub(in crate::rest) const ALL: &[(&str, Read)] = &[
        ("searchProcessInstances", Read::Search(&PROCESS_INSTANCES)),
        ("getProcessInstance", Read::Get(&PROCESS_INSTANCES)),
        ("getProcessInstanceSequenceFlows", Read::GetSequenceFlows),
        ("getProcessInstanceCallHierarchy", Read::GetCallHierarchy),
        ("getProcessInstanceStatistics", Read::ElementStatisticsOfInstance),
        ("searchProcessInstanceIncidents", Read::IncidentsOfProcessInstance),
        ("searchElementInstances", Read::Search(&ELEMENT_INSTANCES)),
        ("getElementInstance", Read::Get(&ELEMENT_INSTANCES)),
        ("searchElementInstanceIncidents", Read::IncidentsOfElementInstance),
        ("searchElementInstanceWaitStates", Read::Search(&WAIT_STATES)),
        ("getProcessInstanceWaitStateStatistics", Read::WaitStatistics),
        ("searchVariables", Read::Search(&VARIABLES)),
        ("getVariable", Read::GetVariable),
        ("searchJobs", Read::Search(&JOBS)),
        ("getGlobalJobStatistics", Read::JobsOfAll),
        ("getJobTypeStatistics", Read::JobsByType),
        ("getJobWorkerStatistics", Read::JobsByWorker),
        ("getJobTimeSeriesStatistics", Read::JobsByTime),
        ("getJobErrorStatistics", Read::JobErrors),
        ("searchIncidents", Read::Search(&INCIDENTS)),
        ("getIncident", Read::Get(&INCIDENTS)),
        ("getProcessInstanceStatisticsByError", Read::ErrorStatistics),
        ("getProcessInstanceStatisticsByDefinition", Read::DefinitionErrorStatistics),
        ("searchProcessDefinitions", Read::Search(&PROCESS_DEFINITIONS)),
        ("getProcessDefinition", Read::Get(&PROCESS_DEFINITIONS)),
        ("getProcessDefinitionXml", Read::GetModel(&PROCESS_DEFINITIONS, Models::Process)),
        ("getStartProcessForm", Read::GetStartForm),
        ("getProcessDefinitionStatistics", Read::ElementStatisticsOfDefinition),
        ("getProcessDefinitionInstanceStatistics", Read::DefinitionStatistics),
        ("getProcessDefinitionInstanceVersionStatistics", Read::VersionStatistics),
        ("getProcessDefinitionMessageSubscriptionStatistics", Read::SubscriptionStatistics),
        ("searchProcessDefinitionVariableNames", Read::VariableNames),
        ("searchDecisionDefinitions", Read::Search(&DECISION_DEFINITIONS)),
        ("getDecisionDefinition", Read::Get(&DECISION_DEFINITIONS)),
        ("getDecisionDefinitionXml", Read::GetModel(&DECISION_DEFINITIONS, Models::Decision)),
        ("searchDecisionRequirements", Read::Search(&DECISION_REQUIREMENTS)),
        ("getDecisionRequirements", Read::Get(&DECISION_REQUIREMENTS)),
        ("getDecisionRequirementsXml", Read::GetModel(&DECISION_REQUIREMENTS, Models::DecisionRequirements)),
        ("searchDecisionInstances", Read::Search(&DECISION_INSTANCES)),
        ("getDecisionInstance", Read::GetDecisionInstance),
        ("searchResources", Read::Search(&RESOURCES)),
        ("getFormByKey", Read::Get(&FORMS)),
        ("searchUserTasks", Read::Search(&USER_TASKS)),
        ("getUserTask", Read::Get(&USER_TASKS)),
        ("getUserTaskForm", Read::GetTaskForm),
        ("searchUserTaskVariables", Read::TaskVariables { is_effective: false }),
        ("searchUserTaskEffectiveVariables", Read::TaskVariables { is_effective: true }),
        ("searchAuditLogs", Read::Search(&AUDIT_LOGS)),
        ("getAuditLog", Read::Get(&AUDIT_LOGS)),
        ("searchUserTaskAuditLogs", Read::AuditOfTask),
        ("getUsageMetrics", Read::UsageMetrics),
        ("searchGlobalTaskListeners", Read::Search(&GLOBAL_LISTENERS)),
        ("getGlobalTaskListener", Read::GetGlobalListener),
        ("searchMessageSubscriptions", Read::Search(&MESSAGE_SUBSCRIPTIONS)),
        ("searchCorrelatedMessageSubscriptions", Read::Search(&CORRELATED_MESSAGE_SUBSCRIPTIONS)),
    ];
}

/// A request to read.
pub(in crate::rest) struct Asked<'a> {
    /// The first part of the path that differs.
    pub parameter: &'a str,
    /// What stands behind the path.
    pub query: &'a str,
    pub body: &'a [u8],
}

/// What is answered.
#[derive(Debug)]
pub(in crate::rest) enum Answered {
    Json(Vec<u8>),
    Xml(Vec<u8>),
    /// There is nothing to answer.
    Nothing,
}

/// An incident that is to be resolved.
#[derive(Debug)]
pub(in crate::rest) struct ActiveIncident {
    pub incident_key: i64,
    /// The job that has no retries left, if that is what is wrong: of a task, a listener or an ad-hoc sub-process.
    without_retries: Option<i64>,
}

impl ActiveIncident {
    fn read(item: &[u8]) -> Option<ActiveIncident> {
        let item: serde_json::Value = serde_json::from_slice(item).ok()?;
        let key = |name: &str| item[name].as_str().and_then(|key| key.parse().ok());
        let lacks_retries = item["errorType"].as_str().is_some_and(|of| of.ends_with("NO_RETRIES"));
        let without_retries = key("jobKey").filter(|_| lacks_retries);
        Some(ActiveIncident { incident_key: key("incidentKey")?, without_retries })
    }

    /// What must be done before it is resolved, or it would be there again.
    pub(in crate::rest) fn another_try(&self) -> Option<UpdateJobRetries> {
        let job_key = self.without_retries?;
        Some(UpdateJobRetries { job_key, retries: 1, operation_reference: None })
    }
}

impl Searcher {
    /// Reads what was asked for.
    pub(in crate::rest) async fn read(&self, read: Read, asked: Asked<'_>) -> Result<Answered, Problem> {
        match read {
            Read::Search(entity) => {
                let mut search = request::search(entity, asked.body)?;
                search.truncates = truncates(asked.query)?;
                self.ask(search.cost(), move |readers| Ok(Ok(Answered::Json(answer::page(&search.run(readers)?)))))
                    .await
            }
            Read::IncidentsOfElementInstance => {
                let key = path_key("elementInstanceKey", asked.parameter)?;
                let mut search = request::search(&INCIDENTS, asked.body)?;
                search.condition = Condition::All(vec![Condition::WithinElement(key), search.condition]);
                search.partition = Key::from_raw(key).partition();
                self.incidents(&ELEMENT_INSTANCES, key, search).await
            }
            Read::IncidentsOfProcessInstance => {
                let key = path_key("processInstanceKey", asked.parameter)?;
                let mut search = request::search(&INCIDENTS, asked.body)?;
                search.condition = Condition::All(vec![Condition::OfInstance(key), search.condition]);
                search.partition = Key::from_raw(key).partition();
                self.incidents(&PROCESS_INSTANCES, key, search).await
            }
            Read::Get(entity) => {
                let key = path_key(key_field(entity), asked.parameter)?;
                self.get(entity, key).await
            }
            Read::GetVariable => {
                let key = path_key("variableKey", asked.parameter)?;
                self.get(&VARIABLE, key).await
            }
            Read::GetDecisionInstance => self.decision_instance(asked.parameter.to_owned()).await,
            Read::GetGlobalListener => self.global_listener(path_id(asked.parameter)?).await,
            Read::GetSequenceFlows => {
                let key = path_key("processInstanceKey", asked.parameter)?;
                self.sequence_flows(key).await
            }
            Read::GetCallHierarchy => {
                let key = path_key("processInstanceKey", asked.parameter)?;
                self.call_hierarchy(key).await
            }
            Read::GetModel(entity, models) => {
                let key = path_key(key_field(entity), asked.parameter)?;
                self.ask(Cost::Key, move |readers| {
                    let model = readers.model(models, key)?;
                    Ok(model.map(Answered::Xml).ok_or_else(|| not_found(entity, key)))
                })
                .await
            }
            Read::AuditOfTask => {
                let key = path_key("userTaskKey", asked.parameter)?;
                let mut search = request::search(&AUDIT_LOGS, asked.body)?;
                restrict(&mut search, "userTaskKey", key);
                self.ask(Cost::Any, move |readers| Ok(Ok(Answered::Json(answer::page(&search.run(readers)?))))).await
            }
            Read::GetStartForm => self.start_form(asked).await,
            Read::GetTaskForm => self.task_form(asked).await,
            Read::TaskVariables { is_effective } => self.task_variables(asked, is_effective).await,
            _ => self.statistics(read, asked).await,
        }
    }

    /// The form of the start event of a process.
    async fn start_form(&self, asked: Asked<'_>) -> Result<Answered, Problem> {
        let key = path_key("processDefinitionKey", asked.parameter)?;
        let search = by_key(&PROCESS_DEFINITIONS, key);
        self.ask(Cost::Key, move |readers| {
            if search.map(|search| search.first(readers)).transpose()?.flatten().is_none() {
                return Ok(Err(not_found(&PROCESS_DEFINITIONS, key)));
            }
            let form = readers.start_form(key)?;
            Ok(Ok(form_or_nothing(readers, form)?))
        })
        .await
    }

    /// The form of a user task.
    async fn task_form(&self, asked: Asked<'_>) -> Result<Answered, Problem> {
        let key = path_key("userTaskKey", asked.parameter)?;
        self.ask(Cost::Key, move |readers| {
            let Some(place) = task_place(readers, key)? else { return Ok(Err(not_found(&USER_TASKS, key))) };
            Ok(Ok(form_or_nothing(readers, place.form)?))
        })
        .await
    }

    /// The variables that a user task sees.
    async fn task_variables(&self, asked: Asked<'_>, is_effective: bool) -> Result<Answered, Problem> {
        let key = path_key("userTaskKey", asked.parameter)?;
        let mut search = request::search(&VARIABLES, asked.body)?;
        search.truncates = truncates(asked.query)?;
        self.ask(Cost::Any, move |readers| {
            let Some(place) = task_place(readers, key)? else { return Ok(Err(not_found(&USER_TASKS, key))) };
            let seen = Condition::Seen {
                element_instance: place.element_instance,
                process_instance: place.process_instance,
                is_effective,
            };
            search.condition = Condition::All(vec![seen, search.condition]);
            search.partition = Key::from_raw(key).partition();
            Ok(Ok(Answered::Json(answer::page(&search.run(readers)?))))
        })
        .await
    }

    /// The incidents that a search finds, if what they belong to is there.
    async fn incidents(&self, of: &'static Entity, key: i64, search: Search) -> Result<Answered, Problem> {
        let owner = by_key(of, key);
        self.ask(Cost::Any, move |readers| {
            if owner.map(|owner| owner.first(readers)).transpose()?.flatten().is_none() {
                return Ok(Err(not_found(of, key)));
            }
            Ok(Ok(Answered::Json(answer::page(&search.run(readers)?))))
        })
        .await
    }

    /// Some of the active incidents of a process instance and of those that it called, with keys behind the first one and up to the
    /// second one, in the order of their keys.
    pub(in crate::rest) async fn active_incidents(
        &self,
        key: i64,
        behind: i64,
        up_to: i64,
    ) -> Result<Vec<ActiveIncident>, Problem> {
        self.incidents_of(
            key,
            vec![Test::Greater(Value::Integer(behind)), Test::LessOrEqual(Value::Integer(up_to))],
            false,
        )
        .await
    }

    /// The key of the newest one of them.
    pub(in crate::rest) async fn newest_incident(&self, key: i64) -> Result<Option<i64>, Problem> {
        let newest = self.incidents_of(key, Vec::new(), true).await?;
        Ok(newest.first().map(|incident| incident.incident_key))
    }

    /// Active incidents whose keys pass tests; of the newest ones the first alone.
    async fn incidents_of(&self, key: i64, tests: Vec<Test>, newest: bool) -> Result<Vec<ActiveIncident>, Problem> {
        let owner = by_key(&PROCESS_INSTANCES, key);
        let is = |name: &str, tests: Vec<Test>| INCIDENTS.field(name).map(|field| Condition::Is(field, tests));
        let active = i64::try_from(
            readmodel::enumerations::INCIDENT_STATES.iter().position(|state| *state == "ACTIVE").unwrap_or_default(),
        )
        .unwrap_or_default();
        let conditions = [is("state", vec![Test::Equal(Value::Integer(active))]), is("incidentKey", tests)];
        let conditions = [Condition::OfInstance(key)].into_iter().chain(conditions.into_iter().flatten());
        let mut search = Search::new(&INCIDENTS, Condition::All(conditions.collect()));
        search.partition = Key::from_raw(key).partition();
        if newest {
            search.sort =
                INCIDENTS.field("incidentKey").map(|field| Sort { field, descending: true }).into_iter().collect();
            search.limit = 1;
        }
        self.ask(Cost::Any, move |readers| {
            if owner.map(|owner| owner.first(readers)).transpose()?.flatten().is_none() {
                return Ok(Err(not_found(&PROCESS_INSTANCES, key)));
            }
            Ok(Ok(search.run(readers)?.items.iter().filter_map(|item| ActiveIncident::read(item)).collect()))
        })
        .await
    }

    async fn get(&self, entity: &'static Entity, key: i64) -> Result<Answered, Problem> {
        let search = by_key(entity, key);
        self.ask(Cost::Key, move |readers| {
            let found = match search {
                Some(mut search) => {
                    // The whole value: only lists have it shortened.
                    search.truncates = false;
                    search.first(readers)?
                }
                None => None,
            };
            Ok(found.map(Answered::Json).ok_or_else(|| not_found(entity, key)))
        })
        .await
    }

    async fn decision_instance(&self, key: String) -> Result<Answered, Problem> {
        let numbers = key.split_once('-').and_then(|(key, index)| number_of_key(key).zip(index.parse::<u32>().ok()));
        let Some((number, _)) = numbers else {
            return Err(Problem::bad_request(format!(
                "Expected decisionEvaluationInstanceKey to be the number of a key, a hyphen and a number, but it was '{}'.",
                excerpt(&key)
            )));
        };
        let partition = Key::from_raw(number).partition();
        self.ask(Cost::Key, move |readers| {
            let missing = || named_not_found(&DECISION_INSTANCES, &key);
            let Some(partition) = partition.filter(|of| readers.partitions().contains(of)) else {
                return Ok(Err(missing()));
            };
            let Some(details) = readers.decision_details(partition, &key)? else { return Ok(Err(missing())) };
            let mut search = Search::new(&DECISION_INSTANCES, Condition::always());
            search.partition = Some(partition);
            if let Some(field) = DECISION_INSTANCES.field("decisionEvaluationInstanceKey") {
                search.condition = Condition::equal(field, Value::Text(key.clone()));
            }
            let Some(mut item) = search.first(readers)? else { return Ok(Err(missing())) };
            // The details are an object: both become one.
            item.pop();
            item.push(b',');
            item.extend_from_slice(with_rules(&details).get(1..).unwrap_or("}").as_bytes());
            Ok(Ok(Answered::Json(item)))
        })
        .await
    }

    async fn global_listener(&self, id: String) -> Result<Answered, Problem> {
        let mut search = Search::new(&GLOBAL_LISTENERS, Condition::always());
        if let Some(field) = GLOBAL_LISTENERS.field("id") {
            search.condition = Condition::equal(field, Value::Text(id.clone()));
        }
        self.ask(Cost::Key, move |readers| {
            let found = search.first(readers)?;
            Ok(found.map(Answered::Json).ok_or_else(|| {
                let detail = format!("Global task listener with id '{}' not found", excerpt(&id));
                Problem { title: "NOT_FOUND".into(), ..Problem::new(StatusCode::NOT_FOUND, detail) }
            }))
        })
        .await
    }

    async fn sequence_flows(&self, key: i64) -> Result<Answered, Problem> {
        let owner = by_key(&PROCESS_INSTANCES, key);
        self.ask(Cost::Any, move |readers| {
            let Some(owner) = owner else { return Ok(Err(not_found(&PROCESS_INSTANCES, key))) };
            if owner.first(readers)?.is_none() {
                return Ok(Err(not_found(&PROCESS_INSTANCES, key)));
            }
            let mut search = Search::new(&SEQUENCE_FLOWS, Condition::always());
            restrict(&mut search, "processInstanceKey", key);
            (search.partition, search.limit) = (owner.partition, 10_000);
            let found = search.run(readers)?;
            let mut text = b"{\"items\":[".to_vec();
            text.extend(found.items.join(&b','));
            text.extend_from_slice(b"]}");
            Ok(Ok(Answered::Json(text)))
        })
        .await
    }

    /// From the instance that nobody called to this one.
    async fn call_hierarchy(&self, key: i64) -> Result<Answered, Problem> {
        const DEPTH_MAX: usize = 1_000;
        self.ask(Cost::Any, move |readers| {
            let mut hierarchy = Vec::new();
            let mut next = Some(key);
            while let Some(key) = next.filter(|_| hierarchy.len() < DEPTH_MAX) {
                let found = by_key(&PROCESS_INSTANCES, key).map(|search| search.first(readers)).transpose()?.flatten();
                let Some(item) = found else { break };
                let item: serde_json::Value = serde_json::from_slice(&item).unwrap_or_default();
                next = item["parentProcessInstanceKey"].as_str().and_then(|key| key.parse().ok());
                let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
                let mut json = JsonObject::new();
                json.text("processInstanceKey", &key.to_string());
                json.text("processDefinitionKey", &text("processDefinitionKey"));
                let name =
                    item["processDefinitionName"].as_str().map_or_else(|| text("processDefinitionId"), str::to_owned);
                json.text("processDefinitionName", &name);
                hierarchy.push(json);
            }
            if hierarchy.is_empty() {
                return Ok(Err(not_found(&PROCESS_INSTANCES, key)));
            }
            hierarchy.reverse();
            let items: Vec<Vec<u8>> = hierarchy.into_iter().map(JsonObject::finish).collect();
            Ok(Ok(Answered::Json([&b"["[..], &items.join(&b','), b"]"].concat())))
        })
        .await
    }
}

fn task_place(readers: &mut Readers, task: i64) -> Result<Option<TaskPlace>, Failure> {
    let partition = Key::from_raw(task).partition().filter(|of| readers.partitions().contains(of));
    partition.map(|partition| readers.task_place(partition, task)).transpose().map(Option::flatten)
}

/// A form as it is answered; nothing where there is none.
fn form_or_nothing(readers: &mut Readers, key: Option<i64>) -> Result<Answered, Failure> {
    let search = key.and_then(|key| by_key(&FORMS, key));
    let form = search.map(|search| search.first(readers)).transpose()?.flatten();
    Ok(form.map_or(Answered::Nothing, Answered::Json))
}

/// What the key of an entity is called.
fn key_field(entity: &Entity) -> &'static str {
    entity.key_field
}

/// The search for the row with a key; none when no key is like that.
pub(super) fn by_key(entity: &'static Entity, key: i64) -> Option<Search> {
    let field = entity.field(key_field(entity))?;
    let partition = Key::from_raw(key).partition()?;
    let mut search = Search::new(entity, Condition::equal(field, Value::Integer(key)));
    search.partition = Some(if entity.scope == Scope::Same { PartitionId::DEPLOYMENT } else { partition });
    search.limit = 1;
    Some(search)
}

fn restrict(search: &mut Search, field: &str, key: i64) {
    let Some(field) = search.entity.field(field) else { return };
    let given = std::mem::replace(&mut search.condition, Condition::always());
    search.condition = Condition::All(vec![Condition::equal(field, Value::Integer(key)), given]);
    search.partition = Key::from_raw(key).partition();
}

pub(super) fn not_found(entity: &Entity, key: i64) -> Problem {
    named_not_found(entity, &key.to_string())
}

fn named_not_found(entity: &Entity, key: &str) -> Problem {
    let mut name = entity.name.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let detail = format!("{name} with key '{key}' not found");
    Problem { title: "NOT_FOUND".into(), ..Problem::new(StatusCode::NOT_FOUND, detail) }
}

/// Whether long values are to be shortened, as the query of the request says.
fn truncates(query: &str) -> Result<bool, Problem> {
    let given = query.split('&').filter_map(|part| part.split_once('=')).find(|(name, _)| *name == "truncateValues");
    match given {
        None | Some((_, "true")) => Ok(true),
        Some((_, "false")) => Ok(false),
        Some((_, other)) => Err(Problem::bad_request(format!(
            "The query parameter truncateValues is '{}', but it must be true or false.",
            crate::validation::excerpt(other)
        ))),
    }
}

/// The details of a decision instance, with the rule of each output beside it too, as the API has it.
fn with_rules(details: &str) -> String {
    let Ok(mut details) = serde_json::from_str::<serde_json::Value>(details) else { return details.to_owned() };
    for rule in details["matchedRules"].as_array_mut().into_iter().flatten() {
        let (id, index) = (rule["ruleId"].clone(), rule["ruleIndex"].clone());
        for output in rule["evaluatedOutputs"].as_array_mut().into_iter().flatten() {
            output["ruleId"] = id.clone();
            output["ruleIndex"] = index.clone();
        }
    }
    details.to_string()
}
