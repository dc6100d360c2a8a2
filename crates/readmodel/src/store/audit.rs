//! Who did what, and how much was used.

use std::sync::LazyLock;

use crate::batch::Batch;
use crate::database::Of::{Integer, Text};
use crate::database::{Bound, Database, Result, Write};

static AUDITS: LazyLock<Write<24>> = LazyLock::new(|| {
    Write::insert(
        [
            Integer, Integer, Integer, Integer, Integer, Integer, Integer, Integer, Text, Integer, Integer, Integer, Integer,
            Integer, Integer, Integer, Text, Integer, Text, Integer, Integer, Integer, Text, Text,
        ],
        "INSERT INTO audit_log(key, entity_key, entity_type, operation_type, result, category, time, actor_type, actor_id,
             process_definition_key, process_instance_key, element_instance_key, user_task_key, batch_operation_key,
             job_key, decision_definition_key, decision_definition_id, decision_requirements_key, decision_requirements_id,
             deployment_key, form_key, resource_key, description, tenant_id)",
        "{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}, {16}, {17}, {18}, {19}, {20},
             {21}, {22}, {23}, {24}",
        "ON CONFLICT DO NOTHING",
    )
});

static USAGE: LazyLock<Write<3>> = LazyLock::new(|| {
    Write::insert(
        [Integer; 3],
        "INSERT INTO usage_count(time, instances, decisions)",
        "{1}, {2}, {3}",
        "ON CONFLICT(time) DO UPDATE SET instances = usage_count.instances + excluded.instances,
             decisions = usage_count.decisions + excluded.decisions",
    )
});

static ASSIGNEES: LazyLock<Write<2>> = LazyLock::new(|| {
    Write::insert([Integer; 2], "INSERT INTO usage_assignee(time, assignee)", "{1}, {2}", "ON CONFLICT DO NOTHING")
});

pub(super) fn write(database: &Database, batch: &Batch) -> Result<()> {
    let audits = batch.audits.iter().map(|(key, row)| {
        [
            (*key).into(),
            row.entity.into(),
            row.entity_type.into(),
            row.operation.into(),
            row.result.into(),
            row.category.into(),
            row.time.into(),
            row.actor_type.into(),
            row.actor_id.as_deref().into(),
            row.definition.into(),
            row.instance.into(),
            row.element_instance.into(),
            row.user_task.into(),
            row.batch_operation.into(),
            row.job.into(),
            row.decision.into(),
            row.decision_id.as_deref().into(),
            row.requirements.into(),
            row.requirements_id.as_deref().into(),
            row.deployment.into(),
            row.form.into(),
            row.resource.into(),
            row.description.as_deref().into(),
            row.tenant.as_deref().into(),
        ]
    });
    database.write(&AUDITS, audits)?;
    let usage = batch.usage.iter().map(|(time, (instances, decisions))| [*time, *instances, *decisions]);
    database.write(&USAGE, usage.map(|row| row.map(Bound::Integer)))?;
    let assignees = batch.assignees.iter().map(|(time, assignee)| [*time, *assignee].map(Bound::Integer));
    database.write(&ASSIGNEES, assignees)
}
