//! Decisions and what they came to.

use protocol::{DecisionEvaluationIntent, DecisionEvaluationValue, DecisionRequirementsValue, DecisionValue, Key};
use serde_json::json;

use super::{Fold, some_key, some_text};
use crate::batch::DecisionInstanceRow;
use crate::database::{Database, Result};
use crate::enumerations::{DECISION_TYPES, EVALUATION_STATES, number_of};

pub(super) fn write_requirements(database: &Database, value: &DecisionRequirementsValue) -> Result<()> {
    let metadata = &value.metadata;
    let insert = "INSERT INTO decision_requirements(key, id, name, version, resource_name, tenant_id, xml) \
                  VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET id = excluded.id, name = excluded.name, \
                  version = excluded.version, resource_name = excluded.resource_name, tenant_id = excluded.tenant_id, \
                  xml = excluded.xml";
    let values = [
        metadata.decision_requirements_key.raw().into(),
        (&*metadata.decision_requirements_id).into(),
        (&*metadata.decision_requirements_name).into(),
        metadata.decision_requirements_version.into(),
        (&*metadata.resource_name).into(),
        (&*metadata.tenant_id).into(),
        (&*value.resource).into(),
    ];
    database.execute(insert, &values)?;
    Ok(())
}

pub(super) fn write_decision(database: &Database, value: &DecisionValue) -> Result<()> {
    let insert = "INSERT INTO decision_definition(key, id, name, version, decision_requirements_key, \
                  decision_requirements_id, tenant_id) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET \
                  id = excluded.id, name = excluded.name, version = excluded.version, \
                  decision_requirements_key = excluded.decision_requirements_key, \
                  decision_requirements_id = excluded.decision_requirements_id, tenant_id = excluded.tenant_id";
    let values = [
        value.decision_key.raw().into(),
        (&*value.decision_id).into(),
        (&*value.decision_name).into(),
        value.version.into(),
        value.decision_requirements_key.raw().into(),
        (&*value.decision_requirements_id).into(),
        (&*value.tenant_id).into(),
    ];
    database.execute(insert, &values)?;
    Ok(())
}

/// A deleted decision is not found any more; what it came to stays.
pub(super) fn delete(database: &Database, table: &'static str, key: Key) -> Result<()> {
    database.execute(&format!("DELETE FROM {table} WHERE key = ?"), &[key.raw().into()])?;
    Ok(())
}

impl Fold {
    pub(super) fn decision_evaluation(
        &mut self,
        key: i64,
        timestamp: i64,
        intent: DecisionEvaluationIntent,
        value: &DecisionEvaluationValue,
    ) {
        if intent == DecisionEvaluationIntent::Evaluate {
            return;
        }
        let has_failed = intent == DecisionEvaluationIntent::Failed;
        self.use_decision(timestamp);
        for decision in &value.evaluated_decisions {
            // Those before it came to a result.
            let is_failed = has_failed && decision.decision_id == value.failed_decision_id;
            let state = if is_failed { "FAILED" } else { "EVALUATED" };
            let details = json!({"evaluatedInputs": decision.evaluated_inputs, "matchedRules": decision.matched_rules})
                .to_string();
            self.batch.bytes += details.len() + decision.decision_output.len();
            self.batch.decision_instances.push(DecisionInstanceRow {
                evaluation: key,
                instance_key: decision.decision_evaluation_instance_key.clone(),
                definition: decision.decision_key.raw(),
                id: decision.decision_id.clone(),
                name: decision.decision_name.clone(),
                version: decision.decision_version,
                decision_type: number_of(DECISION_TYPES, &decision.decision_type).unwrap_or(3),
                root_definition: value.decision_key.raw(),
                requirements: value.decision_requirements_key.raw(),
                state: number_of(EVALUATION_STATES, state).unwrap_or_default(),
                date: timestamp,
                failure: is_failed.then(|| value.evaluation_failure_message.clone()).and_then(|of| some_text(&of)),
                result: decision.decision_output.clone(),
                details,
                process_definition: some_key(value.process_definition_key),
                process_instance: some_key(value.process_instance_key),
                element_instance: some_key(value.element_instance_key),
                tenant: decision.tenant_id.clone(),
            });
        }
    }
}
