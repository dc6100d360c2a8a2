//! Documents: JSON objects that are split into variables, or joined from them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bpmn::model::VariableEvent;
use protocol::{Key, Payload, ProcessInstanceValue, Rejection, Text, VariableIntent, VariableValue};

use crate::conditional::change::{self, Change};
use crate::execution::Execution;
use crate::name::{start_of, too_long};
use crate::state::{State, append_variable, variable_bytes};
use crate::usage;

/// The document of one variable; the value is a JSON text.
pub(crate) fn of_one(name: &str, value: &str) -> Text {
    let mut document = String::with_capacity(name.len() + value.len() + 5);
    document.push('{');
    feel::json::write_string(name, &mut document);
    document.push(':');
    document.push_str(value);
    document.push('}');
    Text::from(document)
}

/// One top-level entry of a document.
pub(crate) type Entry = (Arc<str>, Text);

/// Splits a document into variables. An empty text is an empty document.
pub(crate) fn split(document: &Text, name_bytes_max: usize) -> Result<Vec<Entry>, Rejection> {
    if document.is_empty() {
        return Ok(Vec::new());
    }
    let entries = feel::json::split_object(document).map_err(|error| {
        Rejection::invalid_argument(format!("Expected the variables to be a JSON object, but they are not: {error}"))
    })?;
    for (name, _) in &entries {
        if let Some(but) = too_long(name, name_bytes_max) {
            let start = start_of(name);
            return Err(Rejection::invalid_argument(format!(
                "Expected the names of variables to have {but}: '{start}…'; give the variable a shorter name"
            )));
        }
    }
    Ok(entries.into_iter().map(|(name, value)| (Arc::from(name.as_ref()), Text::from(&*value))).collect())
}

/// What is visible from a scope, nearest first.
pub(crate) fn entries_visible(state: &State, mut scope: Key) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut seen = Seen::default();
    while let Some(instance) = state.element_instance(scope) {
        let local = entries_local(state, scope);
        let visible = local.iter().filter(|(name, _)| !seen.contains(name)).cloned();
        entries.extend(visible);
        seen.add(local.into_iter().map(|(name, _)| name));
        scope = instance.value.flow_scope_key;
    }
    entries
}

/// Names that inner scopes have, in sorted lists: as many scopes may lie in each other as a model has levels, and a list for each
/// of them would have to be searched for every variable of the outer ones.
#[derive(Default)]
struct Seen(Vec<Vec<Arc<str>>>);

impl Seen {
    fn contains(&self, name: &Arc<str>) -> bool {
        self.0.iter().any(|names| names.binary_search(name).is_ok())
    }

    /// The names of one more scope, in the order of the table. Each list is at least twice as long as the next one, so that they
    /// are few.
    fn add(&mut self, names: impl Iterator<Item = Arc<str>>) {
        let mut names: Vec<Arc<str>> = names.collect();
        if names.is_empty() {
            return;
        }
        while let Some(before) = self.0.pop_if(|before| before.len() < 2 * names.len()) {
            names.extend(before);
            names.sort_unstable();
        }
        self.0.push(names);
    }
}

/// What a scope itself holds.
pub(crate) fn entries_local(state: &State, scope: Key) -> Vec<Entry> {
    state.variables_of(scope).map(|(name, row)| (name, row.value.clone())).collect()
}

/// Joins what a scope itself holds into one document.
pub(crate) fn of_local(state: &State, scope: Key) -> String {
    let mut joined = String::from("{");
    state.variables_of(scope).for_each(|(name, row)| append_variable(&mut joined, &name, &row.value));
    joined.push('}');
    joined
}

/// Joins what is visible from a scope, or only the wanted names, into one document.
pub(crate) fn collect(state: &State, scope: Key, wanted: &[Text]) -> String {
    collect_within(state, scope, wanted, usize::MAX, |_| {}).unwrap_or_default()
}

/// The same, as long as the document has at most so many bytes. What is looked at is charged on the way, in steps.
pub(crate) fn collect_within(
    state: &State,
    scope: Key,
    wanted: &[Text],
    bytes_max: usize,
    charge: impl Fn(u64),
) -> Option<String> {
    let mut joined = String::from("{");
    if wanted.is_empty() {
        collect_all(state, scope, &mut joined, bytes_max, charge);
    } else {
        let scopes = scopes_with_variables(state, scope, &charge);
        for name in wanted {
            let row = scopes.iter().find_map(|scope| {
                charge(LOOK_STEPS);
                state.tables.variables.get(&(*scope, name.shared().clone()))
            });
            if let Some(row) = row {
                charge(row.value.len() as u64 / BYTES_PER_STEP);
                append_variable(&mut joined, name, &row.value);
            }
            if joined.len() > bytes_max {
                return None;
            }
        }
    }
    joined.push('}');
    (joined.len() <= bytes_max).then_some(joined)
}

/// The scopes outwards that have variables.
fn scopes_with_variables(state: &State, mut scope: Key, charge: impl Fn(u64)) -> Vec<i64> {
    let mut scopes = Vec::new();
    while let Some(instance) = state.element_instance(scope) {
        charge(LOOK_STEPS);
        if instance.has_variables {
            scopes.push(scope.raw());
        }
        scope = instance.value.flow_scope_key;
    }
    scopes
}

/// What a look for a variable is charged.
const LOOK_STEPS: u64 = 25;
/// What it is charged to go on to the next variable of a scope.
const ENTRY_STEPS: u64 = 5;
/// Bytes of a variable that are copied in a step.
const BYTES_PER_STEP: u64 = 32;

/// Bytes of a document that are split into variables in a step.
const BYTES_SPLIT_PER_STEP: u64 = 8;

/// Variables of one document, and those of another that it does not have. What is split is charged before, in steps.
pub(crate) fn laid_over(over: &Text, under: &Text, wanted: &[Text], charge: impl Fn(u64)) -> Text {
    let entries = |document| feel::json::split_object(document).unwrap_or_default();
    charge(over.len() as u64 / BYTES_SPLIT_PER_STEP);
    let over = entries(over);
    if over.is_empty() {
        return under.clone();
    }
    charge(under.len() as u64 / BYTES_SPLIT_PER_STEP);
    charge((wanted.len() as u64).saturating_mul(ENTRY_STEPS));
    let wanted: BTreeSet<&str> = wanted.iter().map(|name| &**name).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.contains(name);
    let names: BTreeSet<&str> = over.iter().map(|(name, _)| name.as_ref()).collect();
    let mut joined = String::from("{");
    for (name, value) in over.iter().filter(|(name, _)| is_wanted(name)) {
        append_variable(&mut joined, name, value);
    }
    for (name, value) in entries(under).iter().filter(|(name, _)| !names.contains(name.as_ref())) {
        append_variable(&mut joined, name, value);
    }
    joined.push('}');
    joined.into()
}

/// Bytes that [`collect`] joins, at most: names that inner scopes hide are counted too.
pub(crate) fn bytes_of(state: &State, mut scope: Key, wanted: &[Text]) -> usize {
    const MARKS: usize = "\"\":,".len();
    let entry = |name: &str, value: &Text| name.len() + value.len() + MARKS;
    if !wanted.is_empty() {
        let found = wanted.iter().filter_map(|name| Some((name, super::find(state, scope, name.shared())?)));
        return found.map(|(name, row)| entry(name, &row.value)).sum();
    }
    let mut bytes = 0_usize;
    while let Some(instance) = state.element_instance(scope) {
        let local = state.variables_of(scope).map(|(name, row)| entry(&name, &row.value));
        bytes = bytes.saturating_add(local.sum());
        scope = instance.value.flow_scope_key;
    }
    bytes
}

/// Ends soon after the document has more bytes than it may.
fn collect_all(state: &State, mut scope: Key, joined: &mut String, bytes_max: usize, charge: impl Fn(u64)) {
    let mut seen = Seen::default();
    while let Some(instance) = state.element_instance(scope) {
        charge(LOOK_STEPS);
        if instance.has_variables {
            let mut names: Vec<Arc<str>> = Vec::new();
            for (name, row) in state.variables_of(scope) {
                charge(ENTRY_STEPS + row.value.len() as u64 / BYTES_PER_STEP);
                if !seen.contains(&name) {
                    append_variable(joined, &name, &row.value);
                }
                if joined.len() > bytes_max {
                    return;
                }
                names.push(name);
            }
            seen.add(names.into_iter());
        }
        scope = instance.value.flow_scope_key;
    }
}

/// Where variables are to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// In the scope itself, see [`set_local`].
    Local,
    /// Where they are found, see [`propagate`].
    Outwards,
}

/// Checks that the root process instance has room for variables before they are set.
pub(crate) fn check_room(execution: &Execution<'_>, scope: Key, entries: &[Entry], reach: Reach) -> Result<(), String> {
    let state = &execution.state;
    let Some(instance) = state.element_instance(scope) else { return Ok(()) };
    let of = instance.value.process_instance_key;
    let charge = |steps| execution.used.count_reads(steps);
    let holders = match reach {
        Reach::Local => Holders { inner: Vec::new(), root: scope },
        Reach::Outwards => Holders::of(state, scope, charge),
    };
    check_looks(execution, &holders, entries.len())?;
    let more: u64 = entries.iter().map(|(name, value)| variable_bytes(name, value)).sum();
    let bytes_max = execution.root_variable_bytes_max();
    if state.usage_of(of).bytes.saturating_add(more) <= bytes_max {
        return Ok(());
    }
    // What they replace counts only here, where it matters.
    let replaced = entries.iter().filter_map(|(name, value)| {
        let holder = holders.of_one(state, name, value, charge);
        let row = state.tables.variables.get(&(holder.raw(), name.clone()))?;
        Some(variable_bytes(name, &row.value))
    });
    let replaced: u64 = replaced.sum();
    usage::check_bytes(execution, of, more.saturating_sub(replaced))
}

/// Each variable is looked for in each scope outwards that has some: their product is what clients can make large.
fn check_looks(execution: &Execution<'_>, holders: &Holders, variables: usize) -> Result<(), String> {
    if variables < VARIABLES_UNCOUNTED {
        return Ok(());
    }
    let scopes = holders.inner.len() + 1;
    let (looks, looks_max) = (variables.saturating_mul(scopes), execution.limits.variable_looks_max);
    if looks <= looks_max {
        return Ok(());
    }
    Err(format!(
        "Expected to look for variables in at most {looks_max} places, but each of {variables} variables is looked for in {scopes} \
         scopes. Set fewer variables at once, or set them in an outer scope."
    ))
}

/// With fewer variables their looks are not counted: no model nests so deep.
const VARIABLES_UNCOUNTED: usize = 1_000;

/// Sets variables, if the root process instance has room for them.
pub(crate) fn set_if_room(
    execution: &mut Execution<'_>,
    scope: Key,
    entries: Vec<Entry>,
    reach: Reach,
) -> Result<(), String> {
    check_room(execution, scope, &entries, reach)?;
    match reach {
        Reach::Local => set_local(execution, scope, entries),
        Reach::Outwards => propagate(execution, scope, entries),
    }
    Ok(())
}

/// Sets variables where they are found with another value, looking outwards from `scope`, else at the root. A variable
/// that already has the value hides nothing: as on the reference engine, the search continues outwards.
pub(crate) fn propagate(execution: &mut Execution<'_>, scope: Key, entries: Vec<Entry>) {
    let mut changes = Vec::new();
    let holders = Holders::of(&execution.state, scope, |steps| execution.used.count_reads(steps));
    for (name, value) in entries {
        let charge = |steps| execution.used.count_reads(steps);
        let holder = holders.of_one(&execution.state, &name, &value, charge);
        if let Some(instance) = execution.state.element_instance(holder) {
            changes.extend(set_one(execution, &instance.value, holder, (name, value)));
        }
    }
    if let Some(instance) = execution.state.element_instance(scope) {
        change::evaluate(execution, instance.value.process_instance_key, &changes);
    }
}

/// The scopes in which variables are looked for that are set from a scope outwards. They are found once for a whole document: a
/// model may have hundreds of scopes in each other, and most of them have no variables.
struct Holders {
    /// Those that have variables, nearest first, without the root.
    inner: Vec<Key>,
    root: Key,
}

impl Holders {
    fn of(state: &State, mut scope: Key, charge: impl Fn(u64)) -> Holders {
        let mut inner = Vec::new();
        while let Some(instance) = state.element_instance(scope) {
            charge(LOOK_STEPS);
            let enclosing = instance.value.flow_scope_key;
            if enclosing.is_none() {
                break;
            }
            if instance.has_variables {
                inner.push(scope);
            }
            scope = enclosing;
        }
        Holders { inner, root: scope }
    }

    /// The nearest scope that has another value for the variable, or the root. Each look is charged, also when the variable has
    /// its value already and leaves no record.
    fn of_one(&self, state: &State, name: &Arc<str>, value: &Text, charge: impl Fn(u64)) -> Key {
        let has_another_value = |scope: &&Key| {
            charge(LOOK_STEPS);
            let row = state.tables.variables.get(&(scope.raw(), name.clone()));
            row.is_some_and(|row| row.value != *value)
        };
        self.inner.iter().find(has_another_value).copied().unwrap_or(self.root)
    }
}

/// Sets variables in `scope` itself.
pub(crate) fn set_local(execution: &mut Execution<'_>, scope: Key, entries: Vec<Entry>) {
    if let Some(instance) = execution.state.element_instance(scope) {
        set_in(execution, &instance.value, scope, entries);
    }
}

/// Sets variables in a scope that has this value, or will have it when it begins.
pub(crate) fn set_in(execution: &mut Execution<'_>, of: &ProcessInstanceValue, scope: Key, entries: Vec<Entry>) {
    let entries = entries.into_iter();
    let changes: Vec<Change> = entries.filter_map(|entry| set_one(execution, of, scope, entry)).collect();
    change::evaluate(execution, of.process_instance_key, &changes);
}

/// Sets a variable; nothing changes when it has the value already.
fn set_one(execution: &mut Execution<'_>, of: &ProcessInstanceValue, scope: Key, entry: Entry) -> Option<Change> {
    let (name, value) = entry;
    execution.used.count_reads(LOOK_STEPS);
    let (key, intent, event) = match execution.state.tables.variables.get(&(scope.raw(), name.clone())) {
        Some(row) if row.value == value => return None,
        Some(row) => (row.key, VariableIntent::Updated, VariableEvent::Update),
        None => (execution.state.next_key(), VariableIntent::Created, VariableEvent::Create),
    };
    emit(execution, of, scope, intent, key, (name.clone(), value));
    Some(Change { scope, name, event })
}

/// Sets the first variables of a process that is about to start.
pub(crate) fn set_initial(execution: &mut Execution<'_>, process: &ProcessInstanceValue, entries: Vec<Entry>) {
    for (name, value) in entries {
        let key = execution.state.next_key();
        emit(execution, process, process.process_instance_key, VariableIntent::Created, key, (name, value));
    }
}

fn emit(
    execution: &mut Execution<'_>,
    of: &ProcessInstanceValue,
    scope_key: Key,
    intent: VariableIntent,
    key: Key,
    (name, value): Entry,
) {
    let variable = VariableValue {
        name: name.into(),
        value,
        scope_key,
        process_instance_key: of.process_instance_key,
        process_definition_key: of.process_definition_key,
        bpmn_process_id: of.bpmn_process_id.clone(),
        tenant_id: of.tenant_id.clone(),
    };
    execution.emit(key, Payload::Variable(intent, Box::new(variable)));
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn wanted_variables_of_a_change_hide_those_of_the_document_under_them() {
        let (over, under) = (Text::from(r#"{"a":1,"b":2,"c":3}"#), Text::from(r#"{"b":0,"d":4}"#));
        let steps = Cell::new(0);
        let charge = |more| steps.set(steps.get() + more);
        let wanted: Vec<Text> = vec!["d".into(), "b".into(), "x".into()];
        assert_eq!(laid_over(&over, &under, &wanted, charge), *r#"{"b":2,"d":4}"#);
        assert_eq!(steps.get(), 19 / 8 + 13 / 8 + 3 * ENTRY_STEPS);
        assert_eq!(laid_over(&over, &under, &[], charge), *r#"{"a":1,"b":2,"c":3,"d":4}"#);
    }
}
