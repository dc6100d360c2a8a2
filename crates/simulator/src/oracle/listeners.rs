//! Listeners: what listens to an element or a user task is asked once for each of its transitions, one after the other in the
//! order of the model, global listeners before or behind them, and the transition goes on when all are done and not before. Otherwise an element does its work although
//! something that had to come first did not, or what comes with it is done twice.

use std::collections::BTreeMap;

use protocol::{
    BpmnElementType, JobIntent, JobKind, JobListenerEventType, JobValue, Key, PartitionId, Payload,
    ProcessInstanceIntent, ProcessInstanceModificationIntent, ProcessInstanceValue, Record, RecordType, UserTaskIntent,
    UserTaskValue,
};

use super::global_listeners::GlobalListeners;
use crate::model::{FIRST_RETRIES, Listened};

/// A transition that is listened to.
#[derive(Debug)]
struct Transition {
    event: JobListenerEventType,
    /// The retries of those that listen, in their order: these say who is asked.
    asked: Vec<i32>,
    done: usize,
    /// The job of the one that is asked.
    open: Option<Key>,
    /// One of them has denied it.
    is_denied: bool,
}

/// The transitions of everything that lives.
#[derive(Default)]
pub struct Listeners {
    /// Of element instances.
    elements: BTreeMap<Key, Transition>,
    /// Of user tasks, by their element instance.
    tasks: BTreeMap<Key, Transition>,
    /// What began or ended in this batch although not all had been asked: nobody asks them when an operator modifies an instance.
    unasked: Vec<String>,
    /// An operator modified something in this batch.
    is_modified: bool,
}

impl Listeners {
    /// A record that was not seen before.
    pub fn record(&mut self, partition: PartitionId, record: &Record, global: &GlobalListeners) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::ProcessInstance(intent, value) => self.element(*intent, record.key, value),
            Payload::UserTask(intent, task) => self.task(*intent, task, (partition, global)),
            Payload::Job(intent, job) => self.job(*intent, record.key, job),
            Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modified, _) => {
                self.is_modified = true;
            }
            _ => {}
        }
    }

    /// After a batch.
    pub fn check(&mut self) {
        let unasked = std::mem::take(&mut self.unasked);
        assert!(unasked.is_empty() || std::mem::take(&mut self.is_modified), "not all have been asked: {unasked:?}");
        self.is_modified = false;
    }

    fn element(&mut self, intent: ProcessInstanceIntent, key: Key, value: &ProcessInstanceValue) {
        use ProcessInstanceIntent::{
            ElementActivated, ElementActivating, ElementCompleted, ElementCompleting, ElementTerminated,
            ElementTerminating,
        };
        let transition = |event| {
            // Nothing listens to what is around the inner instances of a loop, nor to what is around a choice.
            let is_around = matches!(
                value.bpmn_element_type,
                BpmnElementType::MultiInstanceBody | BpmnElementType::AdHocSubProcessInnerInstance
            );
            let asked = if is_around { Vec::new() } else { of_model(&value.element_id, event) };
            Transition { event, asked, done: 0, open: None, is_denied: false }
        };
        match intent {
            ElementActivating => drop(self.elements.insert(key, transition(JobListenerEventType::Start))),
            ElementCompleting => {
                self.elements.insert(key, transition(JobListenerEventType::End));
            }
            ElementActivated | ElementCompleted => {
                let Some(transition) = self.elements.remove(&key) else { return };
                let what = format!("'{}' {key} is {}", value.element_id, intent.name());
                if intent == ElementActivated
                    && transition.done == 0
                    && transition.open.is_none()
                    && !transition.asked.is_empty()
                {
                    // What a modification begins around the element that it is about has no listeners.
                    self.unasked.push(format!("{what} after {transition:?}"));
                } else {
                    transition.ends(&what);
                }
            }
            ElementTerminating => {
                // Its listeners are asked no more, and the job of one is canceled before anything else.
                if let Some(transition) = self.elements.get_mut(&key) {
                    transition.asked.truncate(transition.done);
                }
            }
            ElementTerminated => {
                let open = self.elements.remove(&key).and_then(|transition| transition.open);
                assert!(open.is_none(), "'{}' {key} ended, and its listener {open:?} is asked", value.element_id);
            }
            _ => {}
        }
    }

    fn task(
        &mut self,
        intent: UserTaskIntent,
        task: &UserTaskValue,
        (partition, global): (PartitionId, &GlobalListeners),
    ) {
        use JobListenerEventType as Event;
        let element = task.element_instance_key;
        let event = match intent {
            UserTaskIntent::Creating => Event::Creating,
            UserTaskIntent::Assigning | UserTaskIntent::Claiming => Event::Assigning,
            UserTaskIntent::Updating => Event::Updating,
            UserTaskIntent::Completing => Event::Completing,
            UserTaskIntent::Canceling => Event::Canceling,
            _ => return self.task_goes_on(intent, task),
        };
        let [before, behind] = global.listening(partition, event);
        let asked = [before, of_model(&task.element_id, event), behind].concat();
        let transition = Transition { event, asked, done: 0, open: None, is_denied: false };
        let open = self.tasks.insert(element, transition).and_then(|before| before.open);
        assert!(open.is_none(), "the user task at {element} is {}, and {open:?} is asked", intent.name());
    }

    fn task_goes_on(&mut self, intent: UserTaskIntent, task: &UserTaskValue) {
        let (element, name) = (task.element_instance_key, intent.name());
        if matches!(intent, UserTaskIntent::Corrected | UserTaskIntent::Migrated) {
            return;
        }
        let Some(transition) = self.tasks.remove(&element) else {
            panic!("the user task at {element} is {name}, and was not about to be")
        };
        let is_denied = matches!(
            intent,
            UserTaskIntent::AssignmentDenied | UserTaskIntent::UpdateDenied | UserTaskIntent::CompletionDenied
        );
        assert!(transition.is_denied == is_denied, "the user task at {element} is {name} after {transition:?}");
        if intent == UserTaskIntent::Canceled && transition.done < transition.asked.len() {
            self.unasked.push(format!("the user task at {element} is {name} after {transition:?}"));
        } else if !is_denied {
            transition.ends(&format!("the user task at {element} is {name}"));
        }
    }

    fn job(&mut self, intent: JobIntent, key: Key, job: &JobValue) {
        let transitions = match job.job_kind {
            JobKind::ExecutionListener => &mut self.elements,
            JobKind::TaskListener => &mut self.tasks,
            _ => return,
        };
        let element = job.element_instance_key;
        let Some(transition) = transitions.get_mut(&element) else {
            panic!(
                "the listener {key} of '{}' {element} is {}, and nothing happens there",
                job.element_id,
                intent.name()
            )
        };
        match intent {
            JobIntent::Created => transition.asks(key, job),
            JobIntent::Completed => {
                assert!(
                    transition.open == Some(key),
                    "the listener {key} is done, and {transition:?} waits for another"
                );
                transition.open = None;
                transition.done += 1;
                transition.is_denied = job.result.as_ref().is_some_and(|result| result.denied);
            }
            JobIntent::Canceled => transition.open = None,
            JobIntent::ErrorThrown => panic!("the listener {key} of {element} threw an error"),
            _ => {}
        }
    }
}

/// The retries of those in the model that listen to an event of an element.
fn of_model(element_id: &str, event: JobListenerEventType) -> Vec<i32> {
    (FIRST_RETRIES..).take(Listened::read(element_id).count(event)).collect()
}

impl Transition {
    fn asks(&mut self, key: Key, job: &JobValue) {
        let (element, event) = (job.element_instance_key, job.job_listener_event_type);
        let is_next = self.asked.get(self.done) == Some(&job.retries);
        assert!(
            event == self.event && is_next && self.open.is_none() && !self.is_denied,
            "the listener {key} with {} retries to {} is asked of {element} in {self:?}",
            job.retries,
            event.name()
        );
        self.open = Some(key);
    }

    fn ends(&self, what: &str) {
        assert!(self.done == self.asked.len() && self.open.is_none(), "{what}, and not all have been asked: {self:?}");
    }
}
