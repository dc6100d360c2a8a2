//! Lives: an element begins only in a scope that is active, takes its steps in their order, and a scope ends only when nothing
//! lives in it any more. Otherwise work goes on in an instance that its users were told is over, or holds it for ever.

use std::collections::{BTreeMap, BTreeSet};

use protocol::{Key, Payload, ProcessInstanceIntent, ProcessInstanceValue, Record, RecordType, VariableIntent};

/// All element instances that live, those of processes among them.
#[derive(Default)]
pub struct Lives {
    alive: BTreeMap<Key, Life>,
    /// What has variables and has not begun: its activation was interrupted, and its scope may end before it goes on. Then it
    /// begins and ends at once.
    prepared: BTreeSet<Key>,
}

struct Life {
    is: ProcessInstanceIntent,
    scope: Key,
    children: u64,
}

impl Lives {
    /// A record that was not seen before.
    pub fn record(&mut self, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        if let Payload::Variable(VariableIntent::Created, variable) = &record.payload
            && !self.alive.contains_key(&variable.scope_key)
        {
            self.prepared.insert(variable.scope_key);
        }
        let Payload::ProcessInstance(intent, value) = &record.payload else { return };
        let key = record.key;
        match intent {
            ProcessInstanceIntent::ElementActivating => self.begins(key, value),
            ProcessInstanceIntent::ElementActivated => {
                self.goes_on(key, *intent, &[ProcessInstanceIntent::ElementActivating])
            }
            ProcessInstanceIntent::ElementCompleting => {
                self.goes_on(key, *intent, &[ProcessInstanceIntent::ElementActivated])
            }
            ProcessInstanceIntent::ElementTerminating => {
                use ProcessInstanceIntent::{ElementActivated, ElementActivating, ElementCompleting};
                self.goes_on(key, *intent, &[ElementActivating, ElementActivated, ElementCompleting]);
            }
            ProcessInstanceIntent::ElementCompleted => {
                self.ends(key, *intent, ProcessInstanceIntent::ElementCompleting)
            }
            ProcessInstanceIntent::ElementTerminated => {
                self.ends(key, *intent, ProcessInstanceIntent::ElementTerminating);
            }
            _ => {}
        }
    }

    fn begins(&mut self, key: Key, value: &ProcessInstanceValue) {
        let (scope, id) = (value.flow_scope_key, &value.element_id);
        let was_prepared = self.prepared.remove(&key);
        if let Some(around) = self.alive.get_mut(&scope) {
            let is_open = around.is == ProcessInstanceIntent::ElementActivated || was_prepared;
            assert!(is_open, "'{id}' {key} begins in {scope}, which is {}", around.is.name());
            around.children += 1;
        } else {
            assert!(scope == Key::NONE || was_prepared, "'{id}' {key} begins, and its scope {scope} is gone");
        }
        let life = Life { is: ProcessInstanceIntent::ElementActivating, scope, children: 0 };
        assert!(self.alive.insert(key, life).is_none(), "'{id}' {key} begins twice");
    }

    fn goes_on(&mut self, key: Key, to: ProcessInstanceIntent, from: &[ProcessInstanceIntent]) {
        let Some(life) = self.alive.get_mut(&key) else { panic!("{key} is {}, and it is not there", to.name()) };
        assert!(from.contains(&life.is), "{key} is {} after it was {}", to.name(), life.is.name());
        life.is = to;
    }

    fn ends(&mut self, key: Key, to: ProcessInstanceIntent, from: ProcessInstanceIntent) {
        self.goes_on(key, to, &[from]);
        let Some(life) = self.alive.remove(&key) else { return };
        assert!(life.children == 0, "{key} is {} with {} element instances in it", to.name(), life.children);
        if let Some(around) = self.alive.get_mut(&life.scope) {
            around.children -= 1;
        }
    }
}
