//! PROCESS_INSTANCE_MIGRATION MIGRATE: a running instance continues with another definition, completely or not at all.

mod catch_events;
mod element;
mod gateways;
mod preconditions;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bpmn::model::{Behavior, ElementType, ExecutableProcess};
use protocol::{
    BpmnElementType, Key, Payload, ProcessInstanceMigrationIntent, ProcessInstanceMigrationValue, ProcessMetadata,
    Rejection, Text,
};

use crate::compensation;
use crate::element::look_again_at_joins;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};

/// What goes where.
pub(super) struct Migration {
    /// The instance.
    pub key: Key,
    /// The process that it leaves.
    pub source: Arc<ExecutableProcess>,
    /// The process that it continues with.
    pub target: Arc<ExecutableProcess>,
    pub target_metadata: ProcessMetadata,
    /// BPMN ids of elements and sequence flows in the target, by those in the source.
    pub mapping: BTreeMap<Arc<str>, Text>,
    /// The ids in the target.
    targets: BTreeSet<Text>,
}

impl Migration {
    /// The id in the target, if the plan says one.
    pub fn mapped(&self, source_id: &str) -> Option<&Text> {
        self.mapping.get(source_id)
    }

    /// Whether the plan maps something of the source to this.
    pub fn is_target(&self, target_id: &Arc<str>) -> bool {
        self.targets.contains(&Text::from(target_id))
    }

    fn text(&self, reason: &str) -> String {
        format!("Expected to migrate process instance '{}' but {reason}", self.key)
    }

    /// A refusal because of what is running.
    pub fn invalid_state(&self, reason: &str) -> Rejection {
        Rejection::invalid_state(self.text(reason))
    }

    /// A refusal because of what the plan says.
    pub fn invalid_argument(&self, reason: &str) -> Rejection {
        Rejection::invalid_argument(self.text(reason))
    }
}

pub(crate) fn migrate(execution: &mut Execution<'_>, value: &ProcessInstanceMigrationValue) -> Outcome {
    let key = value.process_instance_key;
    let token = Token::find(execution, key)?;
    let Some(token) = token.filter(|token| token.value().bpmn_element_type == BpmnElementType::Process) else {
        return Err(Rejection::not_found(format!(
            "Expected to migrate process instance but no process instance found with key '{key}'"
        ))
        .into());
    };
    execution.check_not_banned(key)?;
    let migration = plan(execution, &token, value)?;
    preconditions::check_instance(execution, &migration, &token)?;
    let elements_max = execution.limits.elements_per_operation_max;
    let to = compensation::Destination {
        source: &migration.source,
        target: &migration.target,
        target_key: migration.target_metadata.process_definition_key,
        mapping: &migration.mapping,
    };
    let mut migrated = compensation::migrate(execution, key, &to, elements_max)?;
    let mut joins = Vec::new();
    let mut open = VecDeque::from([key]);
    while let Some(key) = open.pop_front() {
        migrated += 1;
        if migrated > elements_max {
            return Err(migration
                .invalid_argument(&format!(
                    "it has more than {elements_max} element instances, which exceeds the maximum batch size. Migrate it when \
                     fewer of them are active."
                ))
                .into());
        }
        if element::migrate(execution, &migration, key)? {
            joins.push(key);
        }
        let children = execution.state.tables.children.prefix_keys(&key.raw()).take(elements_max.saturating_add(1));
        open.extend(children.map(|(_, child)| Key::from_raw(child)));
    }
    let payload = Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrated, Box::new(value.clone()));
    execution.emit(key, payload.clone());
    execution.reply(key, payload);
    for scope in joins {
        // Where they are now, gateways may wait for what cannot come any more.
        if let Some(instance) = execution.state.element_instance(scope) {
            look_again_at_joins(execution, scope, &instance.value)?;
        }
    }
    Ok(())
}

/// Reads the plan, and checks that it speaks of what there is.
fn plan(
    execution: &Execution<'_>,
    token: &Token,
    value: &ProcessInstanceMigrationValue,
) -> Result<Migration, Rejection> {
    let duplicates = preconditions::duplicate_sources(&value.mapping_instructions);
    if !duplicates.is_empty() {
        return Err(Rejection::invalid_argument(format!(
            "Expected to migrate process instance '{}' but the mapping instructions contain duplicate source element ids \
             '[{}]'. Map each of them once.",
            token.key,
            duplicates.join(", ")
        )));
    }
    let definition = value.target_process_definition_key;
    let (target, target_metadata) = find_target(execution, token, definition).ok_or_else(|| {
        Rejection::not_found(format!(
            "Expected to migrate process instance to process definition but no process definition found with key \
             '{definition}'"
        ))
    })?;
    let instructions = value.mapping_instructions.iter();
    let mut mapping: BTreeMap<Arc<str>, Text> = instructions
        .map(|instruction| (instruction.source_element_id.shared().clone(), instruction.target_element_id.clone()))
        .collect();
    map_inner_instances(&token.process, &target, &mut mapping);
    mapping.insert(token.value().bpmn_process_id.shared().clone(), target_metadata.bpmn_process_id.clone());
    let targets = mapping.values().cloned().collect();
    Ok(Migration { key: token.key, source: token.process.clone(), target, target_metadata, mapping, targets })
}

/// The inner instances of an ad-hoc sub-process go where it goes, unless the plan says so itself: no file shows them.
fn map_inner_instances(source: &ExecutableProcess, target: &ExecutableProcess, mapping: &mut BTreeMap<Arc<str>, Text>) {
    let inner = mapping.iter().filter_map(|(from, to)| {
        let (from, to) = (inner_instance_of(source, from)?, inner_instance_of(target, to)?);
        Some((from.clone(), Text::from(to)))
    });
    for (from, to) in inner.collect::<Vec<_>>() {
        mapping.entry(from).or_insert(to);
    }
}

/// The id of the inner instances of an ad-hoc sub-process with this id.
fn inner_instance_of<'a>(process: &'a ExecutableProcess, id: &str) -> Option<&'a Arc<str>> {
    let element = process.find(id, ElementType::AdHocSubProcess)?;
    match &process.element(element).behavior {
        Behavior::AdHocSubProcess(ad_hoc) => Some(&process.element(ad_hoc.inner_instance).id),
        _ => None,
    }
}

fn find_target(
    execution: &Execution<'_>,
    token: &Token,
    definition: Key,
) -> Option<(Arc<ExecutableProcess>, ProcessMetadata)> {
    let row = execution.state.tables.processes.get(&definition.raw())?;
    if row.metadata.tenant_id != token.value().tenant_id || execution.state.is_deleting(definition) {
        return None;
    }
    Some((execution.state.process(definition)?, row.metadata.clone()))
}
