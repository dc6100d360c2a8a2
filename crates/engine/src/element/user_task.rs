//! User tasks: what a person has to do is a task that the engine leads, or a job for a task list.

use std::sync::Arc;

use bpmn::model::{Binding, Candidates, Priority, StaticOrExpression, UserTask, UserTaskForm};
use bpmn::timer;
use feel::{Value, json};
use protocol::{ErrorType, JobValue, Key, Text, UserTaskValue};

use super::bound_version::{Versions, deployment_of};
use super::job_worker_task::{create_job, job_of};
use crate::element::stop::Stop;
use crate::event;
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::{Token, activated};
use crate::user_task::{PRIORITY_MAX, check_size, create};
use crate::variable::expression;

/// Characters of a text that is no date, where it is refused.
const SHOWN_CHARACTERS: usize = 100;

/// The type of the jobs, which task lists ask for.
const JOB_TYPE: &str = "io.camunda.zeebe:userTask";
/// A task list is not told to try again.
const JOB_RETRIES: i32 = 1;
/// What the headers of such a job are called.
const HEADER_PREFIX: &str = "io.camunda.zeebe:";

pub(super) fn begin(execution: &mut Execution<'_>, token: &Token, task: &UserTask) -> Result<(), Stop> {
    let attributes = Attributes::evaluate(execution, token, task)?;
    if task.is_native {
        let value = attributes.into_user_task(execution, token, (&task.headers).into())?;
        event::subscribe(execution, token)?;
        let creation = create::create(execution, token, value);
        activated(execution, token);
        create::end(execution, creation)?;
        return Ok(());
    }
    let job = attributes.into_job(execution, token, task)?;
    event::subscribe(execution, token)?;
    let queue = create_job(execution, job);
    activated(execution, token);
    crate::job::delivery::deliver(execution, &queue);
    Ok(())
}

/// What a user task says, evaluated.
struct Attributes {
    assignee: Text,
    candidate_groups: Option<Vec<Text>>,
    candidate_users: Option<Vec<Text>>,
    due_date: Text,
    follow_up_date: Text,
    form_key: Key,
    /// Text that names a form elsewhere.
    form_reference: Text,
    priority: i32,
}

impl Attributes {
    fn evaluate(execution: &Execution<'_>, token: &Token, task: &UserTask) -> Result<Self, Problem> {
        let text = |attribute: &Option<StaticOrExpression>| match attribute {
            Some(attribute) => expression::text(execution, token.key, attribute).map(Text::from),
            None => Ok(Text::default()),
        };
        let assignee = text(&task.assignee)?;
        let candidate_groups = candidates(execution, token, task.candidate_groups.as_ref())?;
        let candidate_users = candidates(execution, token, task.candidate_users.as_ref())?;
        let due_date = date(execution, token, task.due_date.as_ref())?;
        let follow_up_date = date(execution, token, task.follow_up_date.as_ref())?;
        let (mut form_key, mut form_reference) = (Key::NONE, Text::default());
        match &task.form {
            Some(UserTaskForm::Id { id, binding }) => form_key = find_form(execution, token, id, binding)?,
            Some(UserTaskForm::Key(key)) => form_reference = key.into(),
            Some(UserTaskForm::Reference(reference)) => {
                form_reference = expression::text(execution, token.key, reference)?.into();
            }
            None => {}
        }
        let priority = priority(execution, token, task.priority.as_ref())?;
        Ok(Attributes {
            assignee,
            candidate_groups,
            candidate_users,
            due_date,
            follow_up_date,
            form_key,
            form_reference,
            priority,
        })
    }

    fn into_user_task(
        self,
        execution: &Execution<'_>,
        token: &Token,
        custom_headers: Text,
    ) -> Result<UserTaskValue, Problem> {
        let of = token.value();
        let value = UserTaskValue {
            assignee: self.assignee,
            candidate_groups_list: self.candidate_groups.unwrap_or_default(),
            candidate_users_list: self.candidate_users.unwrap_or_default(),
            due_date: self.due_date,
            follow_up_date: self.follow_up_date,
            form_key: self.form_key,
            external_form_reference: self.form_reference,
            custom_headers,
            element_id: of.element_id.clone(),
            element_instance_key: token.key,
            bpmn_process_id: of.bpmn_process_id.clone(),
            process_definition_version: of.version,
            process_definition_key: of.process_definition_key,
            priority: self.priority,
            process_instance_key: of.process_instance_key,
            tenant_id: of.tenant_id.clone(),
            ..UserTaskValue::default()
        };
        check(execution, token, &value)?;
        Ok(value)
    }

    /// A job has no attributes of its own for this: they are headers.
    fn into_job(self, execution: &Execution<'_>, token: &Token, task: &UserTask) -> Result<JobValue, Problem> {
        let form_key =
            if self.form_key.is_some() { self.form_key.to_string().into() } else { self.form_reference.clone() };
        let list = |names: &Option<Vec<Text>>| names.as_ref().map(|names| list_text(names)).unwrap_or_default();
        let entries = [
            ("assignee", self.assignee.to_string()),
            ("candidateGroups", list(&self.candidate_groups)),
            ("candidateUsers", list(&self.candidate_users)),
            ("dueDate", self.due_date.to_string()),
            ("followUpDate", self.follow_up_date.to_string()),
            ("formKey", form_key.to_string()),
        ];
        let mut headers = task.headers.strip_suffix('}').unwrap_or(&task.headers).to_owned();
        for (name, value) in entries.iter().filter(|(_, value)| !value.is_empty()) {
            if headers.len() > 1 {
                headers.push(',');
            }
            json::write_string(&format!("{HEADER_PREFIX}{name}"), &mut headers);
            headers.push(':');
            json::write_string(value, &mut headers);
        }
        headers.push('}');
        let value = UserTaskValue {
            assignee: self.assignee,
            candidate_groups_list: self.candidate_groups.unwrap_or_default(),
            candidate_users_list: self.candidate_users.unwrap_or_default(),
            external_form_reference: self.form_reference,
            custom_headers: headers.as_str().into(),
            ..UserTaskValue::default()
        };
        check(execution, token, &value)?;
        Ok(job_of(token, JOB_TYPE.into(), JOB_RETRIES, headers.into()))
    }
}

fn check(execution: &Execution<'_>, token: &Token, value: &UserTaskValue) -> Result<(), Problem> {
    check_size(execution, value)
        .map_err(|reason| problem(format!("Expected to create user task '{}', but {reason}", token.element().id)))
}

fn problem(message: String) -> Problem {
    Problem::new(ErrorType::ExtractValueError, message)
}

/// Names as a JSON text.
pub(crate) fn list_text(names: &[Text]) -> String {
    let mut text = String::from("[");
    for name in names {
        if text.len() > 1 {
            text.push(',');
        }
        json::write_string(name, &mut text);
    }
    text.push(']');
    text
}

fn candidates(
    execution: &Execution<'_>,
    token: &Token,
    candidates: Option<&Candidates>,
) -> Result<Option<Vec<Text>>, Problem> {
    match candidates {
        None => Ok(None),
        Some(Candidates::Static(names)) => Ok(Some(names.iter().map(Text::from).collect())),
        Some(Candidates::Expression(expression)) => expression::strings(execution, token.key, expression).map(Some),
    }
}

/// A date-time with offset; empty for null and for an empty text.
fn date(execution: &Execution<'_>, token: &Token, date: Option<&StaticOrExpression>) -> Result<Text, Problem> {
    let expression = match date {
        None => return Ok(Text::default()),
        Some(StaticOrExpression::Static(date)) => return Ok(date.into()),
        Some(StaticOrExpression::Expression(expression)) => expression,
    };
    let evaluation = expression::evaluate(execution, token.key, expression::NOTHING, expression).map_err(problem)?;
    let text = match &evaluation.value {
        Value::Null => return Ok(Text::default()),
        Value::String(text) if text.is_empty() => return Ok(Text::default()),
        Value::String(text) => text.to_string(),
        value @ Value::DateTime(_) => value.to_json().trim_matches('"').to_owned(),
        _ => {
            return Err(problem(format!(
                "Expected result of the expression '{}' to be one of '[NULL, DATE_TIME, STRING]', but was '{}'.",
                expression.text(),
                evaluation.value.kind()
            )));
        }
    };
    // Clocks without a zone are those of UTC.
    let without_zone =
        || matches!(evaluation.value, Value::DateTime(_)).then(|| timer::date_text(&format!("{text}Z")))?;
    timer::date_text(&text).or_else(without_zone).map(Text::from).ok_or_else(|| {
        let shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
        problem(format!(
            "Invalid date-time format '{shown}' for expression '{}'. Give a date with time and offset, such as \
             2030-01-31T09:00:00Z.",
            expression.text()
        ))
    })
}

fn priority(execution: &Execution<'_>, token: &Token, priority: Option<&Priority>) -> Result<i32, Problem> {
    let expression = match priority {
        None => return Ok(UserTaskValue::DEFAULT_PRIORITY),
        Some(Priority::Static(priority)) => return Ok(*priority),
        Some(Priority::Expression(expression)) => expression,
    };
    let evaluation = expression::evaluate(execution, token.key, expression::NOTHING, expression).map_err(problem)?;
    let Value::Number(number) = &evaluation.value else {
        return Err(problem(expression::unexpected_kind(expression, "NUMBER", &evaluation)));
    };
    let Some(priority) = number.to_i64() else {
        return Err(problem(format!(
            "Expected result of the expression '{}' to be an integer, but was a decimal.",
            expression.text()
        )));
    };
    i32::try_from(priority).ok().filter(|priority| (0..=PRIORITY_MAX).contains(priority)).ok_or_else(|| {
        problem(format!("Expected priority to be in the range [0,{PRIORITY_MAX}] but was '{priority}'."))
    })
}

/// The version of the form that the binding means.
fn find_form(
    execution: &Execution<'_>,
    token: &Token,
    id: &StaticOrExpression,
    binding: &Binding,
) -> Result<Key, Problem> {
    let id: Arc<str> = expression::text(execution, token.key, id)?;
    if let Some(but) = crate::name::too_long(&id, execution.limits.name_bytes_max) {
        return Err(problem(format!("Expected the form id of '{}' to have {but}", token.element().id)));
    }
    let found = Versions::of_forms(&execution.state.tables).find(execution, token, &id, binding);
    found.ok_or_else(|| {
        let message = match binding {
            Binding::Latest => format!(
                "Expected to find a form with id '{id}', but no form with this id is found. Deploy a form with this id, then \
                 resolve the incident."
            ),
            Binding::Deployment => format!(
                "Expected to use a form with id '{id}' with binding type 'deployment', but no such form was found in the \
                 deployment with key {} which contains the process. Migrate the instance to a version of its process that was \
                 deployed together with the form.",
                deployment_of(execution, token)
            ),
            Binding::VersionTag(tag) => format!(
                "Expected to use a form with id '{id}' and version tag '{tag}', but no such form was found. Deploy a form with \
                 this id and version tag, then resolve the incident."
            ),
        };
        Problem::new(ErrorType::FormNotFound, message)
    })
}

/// The job of the element goes on as a task that the engine leads, with what its headers say. Who has it keeps it; otherwise
/// it goes to whom the element names.
pub(crate) fn continue_as_user_task(
    execution: &mut Execution<'_>,
    token: &Token,
    task: &UserTask,
) -> Result<(), Problem> {
    let Some(job) = execution.state.job(token.instance.job) else { return Ok(()) };
    let headers = json::split_object(&job.value.custom_headers).unwrap_or_default();
    let mut attributes = Attributes {
        assignee: Text::default(),
        candidate_groups: None,
        candidate_users: None,
        due_date: Text::default(),
        follow_up_date: Text::default(),
        form_key: Key::NONE,
        form_reference: Text::default(),
        priority: priority(execution, token, task.priority.as_ref())?,
    };
    let mut own = String::from("{");
    for (name, text) in headers {
        let Some(reserved) = name.strip_prefix(HEADER_PREFIX) else {
            if own.len() > 1 {
                own.push(',');
            }
            json::write_string(&name, &mut own);
            own.push(':');
            own.push_str(&text);
            continue;
        };
        let value = Value::from_json(&text).unwrap_or_default();
        attributes.read_header(reserved, value.as_str().unwrap_or_default());
    }
    own.push('}');
    if attributes.assignee.is_empty()
        && let Some(assignee) = &task.assignee
    {
        attributes.assignee = expression::text(execution, token.key, assignee)?.into();
    }
    let value = attributes.into_user_task(execution, token, own.into())?;
    // Its listeners are for what happens from now on.
    create::create_at_once(execution, value);
    Ok(())
}

impl Attributes {
    /// What [`Attributes::into_job`] wrote into a header.
    fn read_header(&mut self, name: &str, value: &str) {
        let names = || {
            let list = Value::from_json(value).unwrap_or_default();
            list.as_list().map(|names| names.iter().filter_map(Value::as_str).map(Text::from).collect())
        };
        match name {
            "assignee" => self.assignee = value.into(),
            "candidateGroups" => self.candidate_groups = names(),
            "candidateUsers" => self.candidate_users = names(),
            "dueDate" => self.due_date = value.into(),
            "followUpDate" => self.follow_up_date = value.into(),
            // The key of a form that was deployed, or the name of one elsewhere.
            "formKey" => match value.parse() {
                Ok(key) => self.form_key = Key::from_raw(key),
                Err(_) => self.form_reference = value.into(),
            },
            _ => {}
        }
    }
}
