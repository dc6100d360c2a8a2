//! User tasks: each is done or canceled once and then for ever, with its element and not without it; who has it and what it
//! says changes only by what somebody did or a listener wants, and not when a listener denies it. Otherwise two people do the same, or one does what is long over.

use std::collections::BTreeMap;

use protocol::{
    JobIntent, JobKind, JobValue, Key, PartitionId, Payload, ProcessInstanceIntent, Record, RecordType, Text,
    UserTaskIntent, UserTaskValue,
};

/// A task that is not done.
struct Task {
    /// As it was when nothing was about to happen to it.
    resting: UserTaskValue,
    /// As it was last, or as a listener wants it to be.
    last: UserTaskValue,
}

/// All user tasks that there ever were.
#[derive(Default)]
pub struct UserTasks {
    /// What is not done.
    open: BTreeMap<Key, Task>,
    ended: BTreeMap<Key, UserTaskIntent>,
    /// The open task of an element instance.
    of_elements: BTreeMap<Key, Key>,
}

impl UserTasks {
    /// A record that was not seen before.
    pub fn record(&mut self, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::UserTask(intent, task) => self.task(*intent, record.key, task),
            Payload::Job(JobIntent::Completed, job) if job.job_kind == JobKind::TaskListener => self.corrected(job),
            Payload::ProcessInstance(
                intent @ (ProcessInstanceIntent::ElementCompleting | ProcessInstanceIntent::ElementTerminated),
                _,
            ) => {
                let task = self.of_elements.get(&record.key);
                assert!(task.is_none(), "{} is {} with the open user task {task:?}", record.key, intent.name());
            }
            _ => {}
        }
    }

    /// A listener says how the task is to be.
    fn corrected(&mut self, job: &JobValue) {
        let corrections = job.result.as_ref().and_then(|result| result.corrections.as_ref());
        let task = self.of_elements.get(&job.element_instance_key).and_then(|key| self.open.get_mut(key));
        let Some((corrections, task)) = corrections.zip(task) else { return };
        for attribute in &corrections.corrected_attributes {
            match attribute.as_str() {
                "assignee" => task.last.assignee = corrections.assignee.clone(),
                "candidateUsersList" => task.last.candidate_users_list = corrections.candidate_users_list.clone(),
                "priority" => task.last.priority = corrections.priority,
                other => panic!("nobody corrects '{other}'"),
            }
        }
    }

    fn task(&mut self, intent: UserTaskIntent, key: Key, task: &UserTaskValue) {
        use UserTaskIntent::{Assigned, AssignmentDenied, Canceling, CompletionDenied, Created, UpdateDenied, Updated};
        let ended = self.ended.get(&key);
        assert!(ended.is_none(), "the user task {key} is {}, and was {ended:?} before", intent.name());
        if intent == UserTaskIntent::Creating {
            // Nobody has it before it is assigned.
            let resting = UserTaskValue { assignee: Text::default(), ..task.clone() };
            let before = self.open.insert(key, Task { resting, last: task.clone() });
            assert!(before.is_none(), "the user task {key} was created twice");
            let before = self.of_elements.insert(task.element_instance_key, key);
            assert!(before.is_none(), "{} has the user tasks {before:?} and {key}", task.element_instance_key);
            return;
        }
        let Some(before) = self.open.get(&key) else { panic!("the user task {key} is {} and unknown", intent.name()) };
        // What is denied or given up leaves nothing behind.
        let is_undone = matches!(intent, AssignmentDenied | UpdateDenied | CompletionDenied | Canceling);
        check_change(intent, key, if is_undone { &before.resting } else { &before.last }, task);
        let rests = is_undone || matches!(intent, Created | Assigned | Updated);
        let resting = if rests { task.clone() } else { before.resting.clone() };
        self.open.insert(key, Task { resting, last: task.clone() });
        if matches!(intent, UserTaskIntent::Completed | UserTaskIntent::Canceled) {
            self.open.remove(&key);
            self.ended.insert(key, intent);
            self.of_elements.remove(&task.element_instance_key);
        }
    }

    /// At the end: the state of a partition has the same open tasks.
    pub fn check_rows(&self, partition: PartitionId, rows: &[String]) {
        let here = self.open.keys().filter(|key| key.partition() == Some(partition)).count();
        let there = rows.iter().filter(|row| row.starts_with("user_tasks ")).count();
        assert!(here == there, "{partition} has {there} user tasks in its state and {here} by its records");
    }
}

/// What may differ from before is what the event is about.
fn check_change(intent: UserTaskIntent, key: Key, before: &UserTaskValue, now: &UserTaskValue) {
    use UserTaskIntent::{Assigning, Claiming, Created, Updating};
    if intent == Claiming {
        let had = &before.assignee;
        assert!(had.is_empty() || *had == now.assignee, "'{}' took the user task {key} that '{had}' has", now.assignee);
    }
    // What is given when it is created is said, taken back, and then said once more.
    let may_assign = matches!(intent, Created | Assigning | Claiming);
    let may_update = intent == Updating;
    assert!(
        may_assign || before.assignee == now.assignee,
        "the user task {key} is {} and goes from '{}' to '{}'",
        intent.name(),
        before.assignee,
        now.assignee
    );
    let what = |task: &UserTaskValue| (task.priority, task.candidate_users_list.clone(), task.creation_timestamp);
    let (was, is) = (what(before), what(now));
    assert!(may_update || was == is, "the user task {key} is {} and becomes {is:?}, which was {was:?}", intent.name());
    assert!(before.element_instance_key == now.element_instance_key, "the user task {key} moves to another element");
}
