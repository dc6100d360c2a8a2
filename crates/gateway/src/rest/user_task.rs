//! User tasks in JSON.

use protocol::Text;
use readmodel::query::moment;

use super::object::{Object, Violations, invalid, path_key};
use crate::request::user_task::{AssignTask, CompleteTask, UpdateTask};
use crate::rest::no_answer::NoAnswer;
use crate::validation::excerpt;

/// The highest priority.
const PRIORITY_MAX: i32 = 100;

pub(super) fn completion(user_task_key: &str, body: &[u8]) -> Result<CompleteTask, NoAnswer> {
    let mut object = Object::read(body)?;
    let request = CompleteTask {
        user_task_key: path_key("userTaskKey", user_task_key)?,
        variables: object.take("variables")?.unwrap_or_default(),
        action: object.take("action")?,
    };
    object.finish()?;
    Ok(request)
}

pub(super) fn assignment(user_task_key: &str, body: &[u8]) -> Result<AssignTask, NoAnswer> {
    let mut object = Object::read(body)?;
    let mut violations = Violations::default();
    let assignee = object.take("assignee")?;
    let request = AssignTask {
        user_task_key: path_key("userTaskKey", user_task_key)?,
        assignee: violations.require_text("assignee", assignee),
        allows_override: object.take("allowOverride")?.unwrap_or(true),
        action: object.take("action")?,
    };
    object.finish()?;
    violations.check()?;
    Ok(request)
}

/// Nobody is to do it any more.
pub(super) fn unassignment(user_task_key: &str, body: &[u8]) -> Result<AssignTask, NoAnswer> {
    Object::read(body)?.finish()?;
    let user_task_key = path_key("userTaskKey", user_task_key)?;
    Ok(AssignTask { user_task_key, allows_override: true, ..AssignTask::default() })
}

/// What is null stays as it is; an empty text or list takes away what there is.
pub(super) fn update(user_task_key: &str, body: &[u8]) -> Result<UpdateTask, NoAnswer> {
    let mut object = Object::read(body)?;
    let changeset: Option<Object<'_>> = object.take("changeset")?;
    let action = object.take("action")?;
    object.finish()?;
    let user_task_key = path_key("userTaskKey", user_task_key)?;
    let mut request = UpdateTask { user_task_key, action, ..UpdateTask::default() };
    let mut violations = Violations::default();
    if let Some(mut changeset) = changeset {
        request.candidate_groups = changeset.take("candidateGroups")?;
        request.candidate_users = changeset.take("candidateUsers")?;
        request.due_date = date("dueDate", changeset.take("dueDate")?, &mut violations);
        request.follow_up_date = date("followUpDate", changeset.take("followUpDate")?, &mut violations);
        request.priority = changeset.take("priority")?;
        changeset.finish()?;
    }
    if let Some(priority) = request.priority.filter(|priority| !(0..=PRIORITY_MAX).contains(priority)) {
        violations.add(format!("The value for priority is '{priority}' but must be within the [0,100] range."));
    }
    violations.check()?;
    let UpdateTask { candidate_groups, candidate_users, due_date, follow_up_date, priority, .. } = &request;
    let is_given = candidate_groups.is_some() || candidate_users.is_some() || priority.is_some();
    if !is_given && due_date.is_none() && follow_up_date.is_none() && request.action.is_none() {
        return Err(invalid(
            "No update data provided. Provide at least an \"action\" or a non-null value for a supported attribute in the \
             \"changeset\".",
        )
        .into());
    }
    Ok(request)
}

fn date(name: &str, given: Option<Text>, violations: &mut Violations) -> Option<Text> {
    let text = given?;
    if !text.is_empty() && moment(&text).is_none() {
        violations.add(format!(
            "The provided {name} '{}' cannot be parsed as a date according to RFC 3339, section 5.6.",
            excerpt(&text)
        ));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail<T: std::fmt::Debug>(read: Result<T, NoAnswer>) -> String {
        match read.expect_err("it is refused") {
            NoAnswer::Problem(problem) => format!("{} {}", problem.status.as_u16(), problem.detail),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_assignment_names_somebody() {
        let request = assignment("7", br#"{"assignee":"ann","action":"take","allowOverride":false}"#).expect("valid");
        assert_eq!((request.user_task_key, &*request.assignee, request.allows_override), (7, "ann", false));
        assert!(assignment("7", br#"{"assignee":"ann"}"#).expect("valid").allows_override);
        for body in ["", "{}", r#"{"assignee":""}"#, r#"{"assignee":null}"#, r#"{"assignee":" "}"#] {
            assert_eq!(detail(assignment("7", body.as_bytes())), "400 No assignee provided.", "{body}");
        }
        assert!(detail(assignment("x", br#"{"assignee":"a"}"#)).starts_with("400 Expected userTaskKey"));
        let nobody = unassignment("7", b"").expect("valid");
        assert!(nobody.assignee.is_empty() && nobody.allows_override);
    }

    #[test]
    fn null_changes_nothing_and_what_is_empty_takes_away() {
        let body = br#"{"changeset":{"candidateGroups":[],"candidateUsers":["u"],"dueDate":"","followUpDate":null}}"#;
        let request = update("7", body).expect("valid");
        assert_eq!(request.candidate_groups, Some(Vec::new()));
        assert_eq!(request.candidate_users, Some(vec!["u".into()]));
        assert_eq!((request.due_date, request.follow_up_date, request.priority), (Some("".into()), None, None));
        assert!(update("7", br#"{"action":"escalate"}"#).is_ok(), "an action is enough");
        let nothing = "400 No update data provided. Provide at least an \"action\"";
        for body in ["", "{}", r#"{"changeset":{}}"#, r#"{"changeset":{"dueDate":null}}"#] {
            assert!(detail(update("7", body.as_bytes())).starts_with(nothing), "{body}");
        }
        for (body, expected) in [
            (r#"{"changeset":{"dueDate":"soon"}}"#, "The provided dueDate 'soon' cannot be parsed as a date"),
            (
                r#"{"changeset":{"priority":101}}"#,
                "The value for priority is '101' but must be within the [0,100] range.",
            ),
            (r#"{"changeset":{"priority":-1}}"#, "The value for priority is '-1' but must be within"),
            (r#"{"changeset":{"assignee":"ann"}}"#, "Request property [assignee] cannot be parsed"),
        ] {
            let found = detail(update("7", body.as_bytes()));
            assert!(found.starts_with(&format!("400 {expected}")), "{body}: {found}");
        }
    }

    #[test]
    fn a_completion_may_say_nothing() {
        for body in ["", "{}", r#"{"variables":null,"action":null}"#] {
            assert_eq!(completion("7", body.as_bytes()).expect("valid").action, None);
        }
        assert!(detail(completion("7", br#"{"variables":[]}"#)).contains("[variables]"));
    }
}
