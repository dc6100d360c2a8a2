//! Conditions: what waits for a condition goes on when a change of variables makes it hold, or when it holds already, once for each
//! change; and neither before nor for what it does not see. Otherwise an instance misses what it waits for, or acts on what nobody
//! said.

use std::collections::{BTreeMap, BTreeSet};

use engine::Engine;
use protocol::{
    ConditionalEvaluationIntent, ConditionalEvaluationValue, ConditionalSubscriptionIntent,
    ConditionalSubscriptionValue, Key, PartitionId, Payload, Record, RecordType, VariableIntent, VariableValue,
};

use super::variables::Variables;

struct Waiting {
    value: ConditionalSubscriptionValue,
    /// How often it may be triggered.
    allowed: u64,
    /// Whether it is to be triggered, because of a change after which it held.
    is_owed: bool,
}

/// Everything that waits for conditions.
#[derive(Default)]
pub struct Conditions {
    /// What element instances wait for.
    waiting: BTreeMap<Key, Waiting>,
    /// By their process instances.
    of_instances: BTreeMap<Key, BTreeSet<Key>>,
    /// What start events wait for.
    starts: BTreeMap<Key, ConditionalSubscriptionValue>,
    /// What is to be looked at on each partition when the variables of a command are set.
    touched: BTreeMap<PartitionId, BTreeSet<Key>>,
}

impl Conditions {
    /// A record that was not seen before; what it says of variables is in `variables` already.
    pub fn record(&mut self, partition: PartitionId, record: &Record, variables: &Variables) {
        if record.record_type != RecordType::Event {
            return;
        }
        if let Payload::Variable(intent, value) = &record.payload {
            return self.variable(partition, *intent, value, variables);
        }
        self.look(partition, variables);
        match &record.payload {
            Payload::ConditionalSubscription(intent, value) if value.scope_key.is_none() => match intent {
                ConditionalSubscriptionIntent::Created => drop(self.starts.insert(record.key, (**value).clone())),
                _ => drop(self.starts.remove(&record.key)),
            },
            Payload::ConditionalSubscription(intent, value) => {
                self.subscription(*intent, record, value, variables);
            }
            Payload::ConditionalEvaluation(ConditionalEvaluationIntent::Evaluated, value) => {
                self.evaluated(partition, value);
            }
            _ => {}
        }
    }

    fn variable(
        &mut self,
        partition: PartitionId,
        intent: VariableIntent,
        value: &VariableValue,
        variables: &Variables,
    ) {
        let event = match intent {
            VariableIntent::Created => "create",
            VariableIntent::Updated => "update",
            _ => return,
        };
        for key in self.of_instances.get(&value.process_instance_key).into_iter().flatten() {
            let Some(waiting) = self.waiting.get_mut(key) else { continue };
            let of = &waiting.value;
            let reads = of.variable_names.contains(&value.name);
            let is_wanted = of.variable_events.is_empty() || of.variable_events.iter().any(|wanted| **wanted == *event);
            if reads && is_wanted && variables.sees(of.scope_key, value.scope_key) {
                waiting.allowed += u64::from(holds(&of.condition, |name| variables.visible(of.scope_key, name)));
                self.touched.entry(partition).or_default().insert(*key);
            }
        }
    }

    /// The variables of a command are set: what sees a change is to be triggered if it holds now.
    fn look(&mut self, partition: PartitionId, variables: &Variables) {
        for key in self.touched.remove(&partition).unwrap_or_default() {
            let Some(waiting) = self.waiting.get_mut(&key) else { continue };
            let of = &waiting.value;
            let holds = holds(&of.condition, |name| variables.visible(of.scope_key, name));
            waiting.is_owed |= holds;
            // Another variable of the same command, whose change alone nobody waits for, may have made it hold.
            waiting.allowed = waiting.allowed.max(holds.into());
        }
    }

    fn subscription(
        &mut self,
        intent: ConditionalSubscriptionIntent,
        record: &Record,
        value: &ConditionalSubscriptionValue,
        variables: &Variables,
    ) {
        let (key, id) = (record.key, &value.catch_event_id);
        match intent {
            ConditionalSubscriptionIntent::Created => {
                let holds = holds(&value.condition, |name| variables.visible(value.scope_key, name));
                let waiting = Waiting { value: value.clone(), allowed: holds.into(), is_owed: holds };
                assert!(self.waiting.insert(key, waiting).is_none(), "'{id}' {key} begins to wait twice");
                self.of_instances.entry(value.process_instance_key).or_default().insert(key);
            }
            ConditionalSubscriptionIntent::Triggered => {
                let Some(waiting) = self.waiting.get_mut(&key) else { panic!("'{id}' {key} is triggered and unknown") };
                assert!(
                    waiting.allowed > 0,
                    "'{id}' {key} is triggered, and no change made '{}' hold: level is {:?}",
                    value.condition,
                    variables.visible(value.scope_key, "level")
                );
                waiting.allowed -= 1;
                waiting.is_owed = false;
                if value.interrupting {
                    self.remove(key);
                    self.interrupted(value, variables);
                }
            }
            ConditionalSubscriptionIntent::Deleted => self.remove(key),
            ConditionalSubscriptionIntent::Migrated => {
                if let Some(waiting) = self.waiting.get_mut(&key) {
                    waiting.value = value.clone();
                }
            }
            _ => {}
        }
    }

    /// What is inside of a scope that an event interrupts may end unseen.
    fn interrupted(&mut self, value: &ConditionalSubscriptionValue, variables: &Variables) {
        for key in self.of_instances.get(&value.process_instance_key).into_iter().flatten() {
            if let Some(waiting) = self.waiting.get_mut(key)
                && variables.sees(waiting.value.scope_key, value.scope_key)
            {
                waiting.is_owed = false;
            }
        }
    }

    fn remove(&mut self, key: Key) {
        let Some(waiting) = self.waiting.remove(&key) else { panic!("{key} is to wait no more, and does not wait") };
        let instance = waiting.value.process_instance_key;
        if let Some(keys) = self.of_instances.get_mut(&instance) {
            keys.remove(&key);
            if keys.is_empty() {
                self.of_instances.remove(&instance);
            }
        }
    }

    /// Each start event whose condition holds starts one instance, and no other does.
    fn evaluated(&self, partition: PartitionId, value: &ConditionalEvaluationValue) {
        let given: BTreeMap<String, i64> = serde_json::from_str(&value.variables).expect("a client gave numbers");
        let of = |(key, start): &(&Key, &ConditionalSubscriptionValue)| {
            let definition = value.process_definition_key;
            key.partition() == Some(partition)
                && (definition.is_none() || definition == start.process_definition_key)
                && holds(&start.condition, |name| given.get(name).copied())
        };
        let expected: Vec<Key> = self.starts.iter().filter(of).map(|(_, start)| start.process_definition_key).collect();
        let started: Vec<Key> =
            value.started_process_instances.iter().map(|started| started.process_definition_key).collect();
        assert!(started == expected, "{} started {started:?} on {partition} and not {expected:?}", value.variables);
    }

    /// After a batch: when no work waits on a partition, everything was triggered that was to be.
    pub fn check(&mut self, partition: PartitionId, engine: &Engine, variables: &Variables) {
        self.look(partition, variables);
        if engine.statistics().work_entries > 0 {
            return;
        }
        let is_missed = |(key, of): &(&Key, &Waiting)| of.is_owed && key.partition() == Some(partition);
        if let Some((key, Waiting { value, .. })) = self.waiting.iter().find(is_missed) {
            panic!("'{}' {key} still waits, and a change made '{}' hold", value.catch_event_id, value.condition);
        }
    }

    /// At the end: the state of a partition has the same subscriptions.
    pub fn check_rows(&self, partition: PartitionId, rows: &[String]) {
        let all = self.waiting.keys().chain(self.starts.keys());
        let here = all.filter(|key| key.partition() == Some(partition)).count();
        let there = rows.iter().filter(|row| row.starts_with("conditional_subscriptions ")).count();
        assert!(here == there, "{partition} waits for {there} conditions in its state and for {here} by its records");
    }
}

/// Whether a condition holds, which is made of comparisons like `level >= 3` with `and` between them.
fn holds(condition: &str, value_of: impl Fn(&str) -> Option<i64>) -> bool {
    condition.trim_start_matches('=').split(" and ").all(|comparison| {
        let parts: Vec<&str> = comparison.split(' ').collect();
        let [name, sign, number] = parts[..] else { panic!("'{comparison}' is no comparison") };
        let number: i64 = number.parse().expect("a number");
        value_of(name).is_some_and(|value| if sign == "<" { value < number } else { value >= number })
    })
}
