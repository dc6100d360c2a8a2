//! Assigning, changing and completing user tasks.

use protocol::{Key, Payload, Text, UserTaskIntent, UserTaskValue};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::validation::{Target, Variables};

/// The work of a task is done.
#[derive(Debug, Default)]
pub(crate) struct CompleteTask {
    pub user_task_key: i64,
    pub variables: Variables,
    /// What the person did, in the words of the application.
    pub action: Option<Text>,
}

/// Gives a task to somebody, or to nobody.
#[derive(Debug, Default)]
pub(crate) struct AssignTask {
    pub user_task_key: i64,
    /// Empty for nobody.
    pub assignee: Text,
    /// Whether it may be taken from somebody else.
    pub allows_override: bool,
    pub action: Option<Text>,
}

/// Changes what is said of a task.
#[derive(Debug, Default)]
pub(crate) struct UpdateTask {
    pub user_task_key: i64,
    pub candidate_groups: Option<Vec<Text>>,
    pub candidate_users: Option<Vec<Text>>,
    /// Empty to have none any more.
    pub due_date: Option<Text>,
    pub follow_up_date: Option<Text>,
    pub priority: Option<i32>,
    pub action: Option<Text>,
}

fn submission(
    router: &Router<'_>,
    (intent, verb): (UserTaskIntent, &'static str),
    key: i64,
    value: UserTaskValue,
) -> Result<Submission, Failure> {
    let target = Target { intent: intent.name(), action: verb, kind: "user task" };
    let payload = |key| Payload::UserTask(intent, Box::new(UserTaskValue { user_task_key: key, ..value }));
    Submission::by_key(router, target, key, None, payload)
}

/// What is said of an action when the client says nothing.
fn action(given: Option<Text>, usual: &str) -> Text {
    given.filter(|action| !action.is_empty()).unwrap_or_else(|| usual.into())
}

impl Request for CompleteTask {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let value = UserTaskValue {
            variables: self.variables.check()?,
            action: action(self.action, "complete"),
            ..UserTaskValue::default()
        };
        submission(router, (UserTaskIntent::Complete, "complete user task"), self.user_task_key, value)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}

impl Request for AssignTask {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let is_taken_away = self.assignee.is_empty();
        let (intent, usual) = match self.allows_override {
            true if is_taken_away => (UserTaskIntent::Assign, "unassign"),
            true => (UserTaskIntent::Assign, "assign"),
            false => (UserTaskIntent::Claim, "claim"),
        };
        let verb = if is_taken_away { "unassign user task" } else { "assign user task" };
        let value =
            UserTaskValue { assignee: self.assignee, action: action(self.action, usual), ..UserTaskValue::default() };
        submission(router, (intent, verb), self.user_task_key, value)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}

impl Request for UpdateTask {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let changed = [
            ("candidateGroupsList", self.candidate_groups.is_some()),
            ("candidateUsersList", self.candidate_users.is_some()),
            ("dueDate", self.due_date.is_some()),
            ("followUpDate", self.follow_up_date.is_some()),
            ("priority", self.priority.is_some()),
        ];
        let changed = changed.iter().filter(|(_, is_given)| *is_given);
        let value = UserTaskValue {
            changed_attributes: changed.map(|(name, _)| Text::from(*name)).collect(),
            candidate_groups_list: self.candidate_groups.unwrap_or_default(),
            candidate_users_list: self.candidate_users.unwrap_or_default(),
            due_date: self.due_date.unwrap_or_default(),
            follow_up_date: self.follow_up_date.unwrap_or_default(),
            priority: self.priority.unwrap_or(UserTaskValue::DEFAULT_PRIORITY),
            action: action(self.action, "update"),
            ..UserTaskValue::default()
        };
        submission(router, (UserTaskIntent::Update, "update user task"), self.user_task_key, value)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}
