//! Repeated: a loop begins each of its items before it ends, and a timer that comes again comes as often as its model says.
//! Otherwise somebody is left out, without a word.

use std::collections::{BTreeMap, BTreeSet};

use protocol::{
    BpmnElementType, Key, Payload, ProcessInstanceIntent, ProcessInstanceValue, Record, RecordType, Text, TimerIntent,
    TimerValue, Timestamp,
};

use crate::model::{turns_of_cycle, turns_of_loop};

/// Where a timer waits: the element instance and the event.
type Waiting = (Key, Text);

/// How long a loop may take to begin its next item.
const IDLE_MILLISECONDS_MAX: i64 = 60_000;

/// What repeats itself.
#[derive(Default)]
pub struct Repeated {
    /// Of each loop that lives, how many items began.
    begun: BTreeMap<Key, u32>,
    /// How many of them live.
    living: BTreeMap<Key, u32>,
    /// Since when loops have none that lives, although the next is to begin, and their instances.
    idle: BTreeMap<Key, (Timestamp, Key)>,
    /// Timers that came, and with how many turns they are to come again.
    due_again: BTreeMap<Waiting, i32>,
    /// The turns that are left of each timer that waits.
    left: BTreeMap<Waiting, i32>,
    /// Element instances that are active, to which a timer can come.
    active: BTreeSet<Key>,
    /// What was done by hand in them, or failed, is not what the model says.
    changed: BTreeSet<Key>,
}

impl Repeated {
    /// A record that was not seen before.
    pub fn record(&mut self, record: &Record, now: Timestamp) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::ProcessInstance(intent, value) => self.element(record.key, *intent, value, now),
            Payload::Timer(intent, value) if value.element_instance_key.is_some() => self.timer(*intent, value),
            Payload::ProcessInstanceModification(_, value) => {
                self.changed.insert(value.process_instance_key);
            }
            Payload::Error(_, value) => {
                self.changed.insert(value.process_instance_key);
            }
            _ => {}
        }
    }

    fn element(&mut self, key: Key, intent: ProcessInstanceIntent, value: &ProcessInstanceValue, now: Timestamp) {
        let is_loop = value.bpmn_element_type == BpmnElementType::MultiInstanceBody;
        match intent {
            ProcessInstanceIntent::ElementActivating => {
                if is_loop {
                    self.begun.insert(key, 0);
                }
                if let Some(begun) = self.begun.get_mut(&value.flow_scope_key) {
                    *begun += 1;
                    *self.living.entry(value.flow_scope_key).or_default() += 1;
                    self.idle.remove(&value.flow_scope_key);
                }
            }
            ProcessInstanceIntent::ElementActivated => {
                self.active.insert(key);
            }
            ProcessInstanceIntent::ElementCompleting | ProcessInstanceIntent::ElementTerminating => {
                self.active.remove(&key);
                self.idle.remove(&key);
            }
            ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated => {
                self.active.remove(&key);
                self.idle.remove(&key);
                self.item_ended(value, now);
                self.living.remove(&key);
                let begun = self.begun.remove(&key);
                let ends_well = intent == ProcessInstanceIntent::ElementCompleted
                    && !self.changed.contains(&value.process_instance_key);
                if let Some(turns) = turns_of_loop(&value.element_id).filter(|_| is_loop && ends_well) {
                    assert!(
                        begun == Some(turns),
                        "the loop {key} of '{}' completed when {begun:?} of its {turns} items had begun",
                        value.element_id
                    );
                }
            }
            _ => {}
        }
    }

    fn item_ended(&mut self, value: &ProcessInstanceValue, now: Timestamp) {
        let of = value.flow_scope_key;
        let Some(living) = self.living.get_mut(&of) else { return };
        *living = living.saturating_sub(1);
        let is_over = self.begun.get(&of).copied() >= turns_of_loop(&value.element_id);
        if *living == 0 && !is_over && self.active.contains(&of) {
            self.idle.insert(of, (now, value.process_instance_key));
        }
    }

    fn timer(&mut self, intent: TimerIntent, value: &TimerValue) {
        let waiting = (value.element_instance_key, value.target_element_id.clone());
        match intent {
            TimerIntent::Created => {
                if let Some(turns) = self.due_again.remove(&waiting) {
                    assert!(
                        value.repetitions == turns,
                        "the timer {waiting:?} has {} turns left, not {turns}",
                        value.repetitions
                    );
                } else if let Some(turns) = turns_of_cycle(&value.target_element_id) {
                    assert!(
                        value.repetitions == turns || self.changed.contains(&value.process_instance_key),
                        "the timer {waiting:?} is to come {} times, not {turns}",
                        value.repetitions
                    );
                }
                self.left.insert(waiting, value.repetitions);
            }
            TimerIntent::Triggered => {
                self.left.remove(&waiting);
                if value.repetitions > 1 {
                    self.due_again.insert(waiting, value.repetitions - 1);
                }
            }
            TimerIntent::Canceled => {
                self.left.remove(&waiting);
                self.due_again.remove(&waiting);
            }
            _ => {}
        }
    }

    /// After a batch: what is to come again waits for that, where it still can.
    pub fn check(&mut self, now: Timestamp, has_faults: bool) {
        if has_faults {
            self.idle.values_mut().for_each(|(since, _)| *since = now);
        }
        let is_stuck = |(since, instance): &(Timestamp, Key)| {
            now - since > IDLE_MILLISECONDS_MAX && !self.changed.contains(instance)
        };
        let stuck = self.idle.iter().find(|(_, idle)| is_stuck(idle));
        assert!(stuck.is_none(), "a loop has items that have not begun, and goes on with none: {stuck:?}");
        let due_again = std::mem::take(&mut self.due_again);
        let lost = due_again.into_iter().find(|((element_instance, _), _)| self.active.contains(element_instance));
        if let Some((waiting, turns)) = lost {
            panic!("the timer {waiting:?} is to come {turns} more times, and does not");
        }
    }
}
