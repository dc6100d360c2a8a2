//! What a root process instance takes with all processes that it called. It is counted with every event, so that a limit can
//! be kept without a look at everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use minicbor::{Decode, Encode};
use protocol::{BpmnElementType, Key, ProcessInstanceValue};

use super::State;

/// What instances take together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Usage {
    /// Living element instances, tokens on sequence flows, items of loops, and activities that may be undone. What is still to begin is counted with what it
    /// begins by: an inner instance with its item, a called process with its call activity.
    #[n(0)]
    pub living: u64,
    /// Bytes of variables, of items of loops and of results that wait for the end of their loop.
    #[n(1)]
    pub bytes: u64,
}

impl Usage {
    /// What an activity takes that was completed and may be undone.
    pub const OF_COMPENSATION_SUBSCRIPTION: Usage = Usage { living: 1, bytes: 0 };

    #[inline]
    pub fn add(&mut self, more: Usage) {
        self.living = self.living.saturating_add(more.living);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }

    /// Takes away what went. What began under a version that did not count is not counted.
    #[inline]
    pub fn take(&mut self, less: Usage) {
        self.living = self.living.saturating_sub(less.living);
        self.bytes = self.bytes.saturating_sub(less.bytes);
    }
}

/// What an element instance counts for that is no inner instance of a loop.
pub(crate) fn living_of(value: &ProcessInstanceValue) -> u64 {
    match value.bpmn_element_type {
        BpmnElementType::CallActivity => 2,
        BpmnElementType::Process if value.parent_element_instance_key.is_some() => 0,
        _ => 1,
    }
}

/// About what a row takes besides its texts.
const ROW_BYTES: u64 = 100;

/// What a variable takes.
#[inline]
pub(crate) fn variable_bytes(name: &str, value: &str) -> u64 {
    ROW_BYTES + name.len() as u64 + value.len() as u64
}

/// What an item of a loop takes.
pub(crate) fn item_bytes(item: &str) -> u64 {
    ROW_BYTES + item.len() as u64
}

/// Variables that are there before their scope is: what they take is known while the command goes on that made both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EarlyVariables {
    /// There are none of scopes whose keys were given in this command.
    #[default]
    None,
    /// All that there are belong to this scope, and take so many bytes.
    Of(Key, u64),
    /// They are to be looked for.
    Unknown,
}

impl State {
    /// A variable was made whose scope is not there yet.
    pub fn note_early_variable(&mut self, scope: Key, bytes: u64) {
        self.early_variables = match self.early_variables {
            EarlyVariables::None if self.is_of_this_command(scope) => EarlyVariables::Of(scope, bytes),
            EarlyVariables::Of(before, sum) if before == scope => EarlyVariables::Of(scope, sum + bytes),
            _ => EarlyVariables::Unknown,
        };
    }

    /// A variable whose scope is not there yet got another value.
    pub fn note_changed_early_variable(&mut self, scope: Key, bytes_before: u64, bytes: u64) {
        self.early_variables = match self.early_variables {
            EarlyVariables::Of(before, sum) if before == scope => {
                EarlyVariables::Of(scope, (sum + bytes).saturating_sub(bytes_before))
            }
            // Unless they are looked for anyway.
            _ => EarlyVariables::Unknown,
        };
    }

    /// What the variables of a scope take that is about to begin.
    pub fn early_variable_bytes(&self, scope: Key) -> u64 {
        match self.early_variables {
            EarlyVariables::None if self.is_of_this_command(scope) => 0,
            EarlyVariables::Of(before, bytes) if before == scope => bytes,
            _ => self.variables_of(scope).map(|(name, row)| variable_bytes(&name, &row.value)).sum(),
        }
    }

    /// The root of the calls that led to a process instance; itself if it was not called.
    pub fn root_of(&self, process_instance: Key) -> Key {
        let root = self.element_instance(process_instance).map_or(Key::NONE, |process| process.root);
        if root.is_some() { root } else { process_instance }
    }

    /// What the root of a process instance takes with all that it called.
    pub fn usage_of(&self, process_instance: Key) -> Usage {
        self.element_instance(self.root_of(process_instance)).map(|root| root.usage).unwrap_or_default()
    }

    /// Compares what is counted of every root process instance with what is there.
    pub fn audit_usage(&self) -> Result<(), String> {
        let mut found: BTreeMap<Key, Usage> = BTreeMap::new();
        for (key, instance) in self.tables.element_instances.iter() {
            let in_loop = self.element_instance(instance.value.flow_scope_key);
            let in_loop =
                in_loop.is_some_and(|scope| scope.value.bpmn_element_type == BpmnElementType::MultiInstanceBody);
            let variables = self.variables_of(Key::from_raw(key));
            let items: Vec<Arc<Arc<str>>> = self.tables.loop_items.prefix(&key).map(|(_, item)| item).collect();
            let bytes = variables.map(|(name, row)| variable_bytes(&name, &row.value)).sum::<u64>()
                + items.iter().map(|item| item_bytes(item)).sum::<u64>();
            let own = if in_loop { 0 } else { living_of(&instance.value) };
            let living = own + u64::from(instance.tokens) + items.len() as u64;
            let usage = found.entry(self.root_of(instance.value.process_instance_key)).or_default();
            usage.add(Usage { living, bytes: bytes + instance.output_bytes });
        }
        for ((process_instance, _), _) in self.tables.compensation_subscriptions.entries() {
            let usage = found.entry(self.root_of(Key::from_raw(process_instance))).or_default();
            usage.add(Usage::OF_COMPENSATION_SUBSCRIPTION);
        }
        for (root, found) in found {
            let counted = self.usage_of(root);
            if counted != found && self.element_instance(root).is_some() {
                return Err(format!("root process instance {root} takes {found:?}, but {counted:?} is counted"));
            }
        }
        Ok(())
    }
}
