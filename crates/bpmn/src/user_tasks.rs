//! User tasks: who does the work, until when, with which form.

use std::sync::Arc;

use roxmltree::Node;

use crate::bindings::binding;
use crate::expressions::{required_expression, static_or_expression};
use crate::extensions::Extensions;
use crate::listeners::{self, TASK_LISTENER};
use crate::model::{Candidates, Listener, Priority, StaticOrExpression, UserTask, UserTaskForm};
use crate::names;
use crate::report::Problems;
use crate::timer;
use crate::xml::{self, ZEEBE_NAMESPACE, present};

/// The highest priority of a user task; the lowest is 0.
const PRIORITY_MAX: i32 = 100;

/// What a user task says; `None` after a problem.
pub(crate) fn user_task(extensions: &Extensions, problems: &mut Problems) -> Option<UserTask> {
    let is_native = extensions.user_task.is_some();
    let form = match extensions.form_definition {
        Some(node) => form(node, is_native, problems).map(Some),
        None => Some(None),
    };
    let assignment = extensions.assignment_definition;
    let assignee = text(assignment, "assignee", problems);
    let candidate_groups = candidates(assignment, "candidateGroups", problems);
    let candidate_users = candidates(assignment, "candidateUsers", problems);
    let due_date = date(extensions.task_schedule, "dueDate", problems);
    let follow_up_date = date(extensions.task_schedule, "followUpDate", problems);
    let priority = priority(extensions.priority_definition, problems);
    let headers = extensions.headers(problems);
    let listeners = listeners(extensions, headers.as_ref(), problems);
    Some(UserTask {
        is_native,
        assignee: assignee?,
        candidate_groups: candidate_groups?,
        candidate_users: candidate_users?,
        due_date: due_date?,
        follow_up_date: follow_up_date?,
        // Only the engine knows what it means.
        priority: priority?.filter(|_| is_native),
        form: form?,
        headers: headers?,
        listeners,
    })
}

/// Only a task that the engine leads changes in ways that can be listened to.
fn listeners(extensions: &Extensions, headers: Option<&Arc<str>>, problems: &mut Problems) -> Vec<Listener> {
    let Some(container) = extensions.task_listeners else { return Vec::new() };
    if extensions.user_task.is_none() {
        problems.add(
            container,
            "Task listeners are only allowed on user tasks with 'zeebe:userTask'. Add this extension element, or remove the \
             listeners.",
        );
        return Vec::new();
    }
    let headers = headers.cloned().unwrap_or_else(|| "{}".into());
    listeners::read(container, &TASK_LISTENER, &headers, problems)
}

/// Forms inside the process, for user tasks that are jobs, must say something; the task list looks for them by their ids.
pub(crate) fn check_embedded_forms(process: Node, problems: &mut Problems) {
    let containers = process.children().filter(|node| xml::is_bpmn(*node, "extensionElements"));
    let forms = containers
        .flat_map(|container| container.children())
        .filter(|node| xml::is_in(*node, ZEEBE_NAMESPACE) && node.tag_name().name() == "userTaskForm");
    for form in forms {
        if present(form, "id").is_none() {
            problems.add_for_new(form, "Element id must be present and not empty. Set the attribute 'id' of the form.");
        }
        if xml::trimmed_text(form).is_empty() {
            problems.add_for_new(
                form,
                "User task form text content has to be present and not empty. Write the form as JSON text inside the element.",
            );
        }
    }
}

/// An attribute that may be there; `None` after a problem.
fn text(node: Option<Node>, attribute: &str, problems: &mut Problems) -> Option<Option<StaticOrExpression>> {
    let Some((node, text)) = node.and_then(|node| Some((node, present(node, attribute)?))) else { return Some(None) };
    let value = static_or_expression(node, text, problems)?;
    names::check_static(node, attribute, &value, problems);
    Some(Some(value))
}

/// Names with commas between, or an expression.
fn candidates(node: Option<Node>, attribute: &str, problems: &mut Problems) -> Option<Option<Candidates>> {
    let Some((node, text)) = node.and_then(|node| Some((node, present(node, attribute)?))) else { return Some(None) };
    if text.starts_with('=') {
        return required_expression(node, text, problems).map(Candidates::Expression).map(Some);
    }
    let names: Vec<Arc<str>> = text.split(',').map(|name| Arc::from(name.trim())).collect();
    if names.iter().any(|name| name.is_empty()) {
        problems.add(
            node,
            format!(
                "Expected static value to be a list of comma-separated values, e.g. 'a,b,c', but found '{text}'. Write a name \
                 before and behind each comma of '{attribute}'."
            ),
        );
        return None;
    }
    names.iter().for_each(|name| names::check(node, attribute, name, problems));
    Some(Some(Candidates::Static(names)))
}

fn date(node: Option<Node>, attribute: &str, problems: &mut Problems) -> Option<Option<StaticOrExpression>> {
    let Some((node, text)) = node.and_then(|node| Some((node, present(node, attribute)?))) else { return Some(None) };
    match static_or_expression(node, text, problems)? {
        StaticOrExpression::Static(text) => {
            let date = timer::date_text(&text);
            if date.is_none() {
                problems.add(
                    node,
                    format!(
                        "Expected static value to be a valid DateTime String, e.g. '2023-03-02T15:35+02:00', but found \
                         '{text}'. Write the {attribute} with time and offset, or an expression that starts with '='."
                    ),
                );
            }
            Some(Some(StaticOrExpression::Static(Arc::from(date?))))
        }
        expression => Some(Some(expression)),
    }
}

fn priority(node: Option<Node>, problems: &mut Problems) -> Option<Option<Priority>> {
    let Some((node, text)) = node.and_then(|node| Some((node, present(node, "priority")?))) else { return Some(None) };
    if text.starts_with('=') {
        return required_expression(node, text, problems).map(Priority::Expression).map(Some);
    }
    match text.parse::<i32>() {
        Ok(priority) if (0..=PRIORITY_MAX).contains(&priority) => Some(Some(Priority::Static(priority))),
        Ok(priority) => {
            problems.add(
                node,
                format!(
                    "Priority must be a number between 0 and {PRIORITY_MAX}, but was '{priority}'. Choose one of them."
                ),
            );
            None
        }
        Err(_) => {
            problems.add(
                node,
                format!(
                    "Expected static value to be a valid Number between 0 and {PRIORITY_MAX}, but found '{text}'. Choose one of \
                     them, or write an expression that starts with '='."
                ),
            );
            None
        }
    }
}

/// A form is named in exactly one way; `None` after a problem.
fn form(node: Node, is_native: bool, problems: &mut Problems) -> Option<UserTaskForm> {
    let given = |attribute: &str| node.attribute(attribute).filter(|text| !text.trim().is_empty());
    let (other, elsewhere) =
        if is_native { ("externalReference", "formKey") } else { ("formKey", "externalReference") };
    match (given("formId"), given(other), given(elsewhere)) {
        (Some(id), None, _) => {
            let binding = binding(node, problems);
            let id = static_or_expression(node, id, problems)?;
            names::check_static(node, "formId", &id, problems);
            Some(UserTaskForm::Id { id, binding: binding? })
        }
        (None, Some(text), _) if is_native => {
            let reference = static_or_expression(node, text, problems)?;
            names::check_static(node, other, &reference, problems);
            Some(UserTaskForm::Reference(reference))
        }
        (None, Some(key), _) => {
            names::check(node, other, key, problems);
            Some(UserTaskForm::Key(Arc::from(key)))
        }
        (_, _, elsewhere_given) => {
            let what = if is_native { " for native user tasks" } else { "" };
            let listed = if is_native { "formId, externalReference" } else { "formId, formKey" };
            let hint = match elsewhere_given {
                Some(_) if is_native => "A 'formKey' is for user tasks without 'zeebe:userTask'.",
                Some(_) => "An 'externalReference' is for user tasks with 'zeebe:userTask'.",
                None => "Set one of them.",
            };
            problems.add(
                node,
                format!("Exactly one of the attributes '{listed}' must be present and not blank{what}. {hint}"),
            );
            None
        }
    }
}
