//! What listeners of user tasks do, and what makes conditions hold.

use std::sync::Arc;

use protocol::*;

use super::{Ask, Clients, Kind, TENANT};
use crate::oracle::Accounting;

/// Whether something listens to what happens to a user task.
pub(super) fn is_of_task(event: JobListenerEventType) -> bool {
    use JobListenerEventType::{End, Start, Unspecified};
    !matches!(event, Unspecified | Start | End)
}

impl Clients {
    /// What a listener of a user task does: it agrees, corrects, denies, fails, says what it may not say, or nothing.
    pub(super) fn hear(&mut self, job: Key, event: JobListenerEventType) -> Option<Ask> {
        use JobListenerEventType::{Assigning, Completing, Updating};
        let result = |result| JobValue { result: Some(Box::new(result)), ..JobValue::default() };
        let of_task = || JobResult { result_type: JobResultType::UserTask, ..JobResult::default() };
        let (kind, intent, value) = match if self.is_finishing { 9 } else { self.chance.below(10) } {
            0 => return None,
            1 => {
                let retries = i32::try_from(self.chance.below(3)).unwrap_or(0);
                ("fail a listener", JobIntent::Fail, JobValue { retries, ..JobValue::default() })
            }
            2 => {
                let variables = r#"{"back":0}"#.into();
                ("give variables", JobIntent::Complete, JobValue { variables, ..JobValue::default() })
            }
            3 if matches!(event, Assigning | Updating | Completing) => {
                let denied = JobResult { denied: true, denied_reason: "no".into(), ..of_task() };
                ("deny", JobIntent::Complete, result(denied))
            }
            3..=5 => {
                let corrections = Some(Box::new(self.corrections()));
                ("correct", JobIntent::Complete, result(JobResult { corrections, ..of_task() }))
            }
            _ => ("agree", JobIntent::Complete, JobValue::default()),
        };
        Some(self.ask(Kind::Other(kind), job.partition()?, job, Payload::Job(intent, Arc::new(value))))
    }

    fn corrections(&mut self) -> JobResultCorrections {
        let priority = i32::try_from(self.chance.below(101)).unwrap_or(0);
        let person = *self.chance.choose(&["ada", "ben", ""]);
        let all = ["assignee", "candidateUsersList", "priority"];
        let corrected_attributes = all.into_iter().filter(|_| self.chance.one_in(2)).map(Text::from).collect();
        JobResultCorrections {
            assignee: person.into(),
            candidate_users_list: vec![person.into(), "kim".into()],
            priority,
            corrected_attributes,
            ..JobResultCorrections::default()
        }
    }

    /// Another level, of which conditions are about: in an instance or a scope of it, at the end where something waits for it.
    pub(super) fn change_level(&mut self, accounting: &Accounting) -> Option<Ask> {
        let waiting: Vec<Key> = accounting.waits_for_conditions().collect();
        let scope = if !waiting.is_empty() && (self.is_finishing || self.chance.one_in(2)) {
            *self.chance.choose(&waiting)
        } else if self.is_finishing {
            return None;
        } else {
            self.any_instance()?
        };
        let variables = if self.is_finishing {
            // Another value each time, because only a change is looked at.
            self.payloads += 1;
            format!(r#"{{"level":{},"done":99}}"#, 9 + self.payloads)
        } else {
            format!(r#"{{"level":{}}}"#, self.chance.below(8))
        };
        let semantics = [VariableDocumentUpdateSemantics::Local, VariableDocumentUpdateSemantics::Propagate];
        let semantics = if self.is_finishing { &semantics[..1] } else { &semantics[..] };
        let value = VariableDocumentValue {
            scope_key: scope,
            update_semantics: *self.chance.choose(semantics),
            variables: variables.as_str().into(),
            tenant_id: TENANT.into(),
        };
        let payload = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
        Some(self.ask(Kind::Other("change the level"), scope.partition()?, Key::NONE, payload))
    }

    /// Has the conditions of start events evaluated, of all definitions or of one.
    pub(super) fn evaluate_conditions(&mut self, accounting: &Accounting) -> Ask {
        let definitions = accounting.definitions(crate::model::CONDITIONED);
        let process_definition_key = match definitions.first() {
            Some(definition) if self.chance.one_in(2) => *definition,
            _ => Key::NONE,
        };
        let (level, choice) = (self.chance.below(8), self.chance.below(4));
        let names = *self.chance.choose(&["level choice", "level choice", "level", "choice"]);
        let given = [("level", level), ("choice", choice)].into_iter().filter(|(name, _)| names.contains(name));
        let given: Vec<String> = given.map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let value = ConditionalEvaluationValue {
            process_definition_key,
            variables: format!("{{{}}}", given.join(",")).into(),
            tenant_id: TENANT.into(),
            started_process_instances: Vec::new(),
        };
        let partition = self.any_partition();
        let payload = Payload::ConditionalEvaluation(ConditionalEvaluationIntent::Evaluate, Box::new(value));
        self.ask(Kind::Other("evaluate conditions"), partition, Key::NONE, payload)
    }
}
