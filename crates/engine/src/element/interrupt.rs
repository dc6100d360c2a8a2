//! The children of a scope end because of an event.

use protocol::Key;

use crate::execution::Execution;
use crate::execution::step::Step;
use crate::state::{ElementInstance, Lifecycle};

/// Children that an interrupting event tells to end at once.
const INTERRUPTED_CHILDREN_AT_ONCE_MAX: usize = 50;

/// What is already ending is not told again, except in a banned instance: there the first command may have been lost in
/// the failure.
pub(super) fn can_begin(execution: &Execution<'_>, instance: &ElementInstance) -> bool {
    instance.lifecycle != Lifecycle::Terminating || execution.state.is_banned(instance.value.process_instance_key)
}

/// The children of a scope end because an event interrupts it: all at once, as on the reference engine, unless they are
/// many.
pub(crate) fn interrupt_children(execution: &mut Execution<'_>, scope: Key) {
    interrupt(execution, scope, None);
}

/// The children of a scope end that are there now, in the same way. What begins while they end goes on.
pub(crate) fn interrupt_present_children(execution: &mut Execution<'_>, scope: Key) {
    let last = Key::new(execution.state.partition, execution.state.counters.key);
    interrupt(execution, scope, Some(last));
}

fn interrupt(execution: &mut Execution<'_>, scope: Key, up_to: Option<Key>) {
    let at_once = execution.at_once(INTERRUPTED_CHILDREN_AT_ONCE_MAX);
    let children = children_after(execution, scope, Key::NONE, up_to, at_once);
    execution.steps.extend(children.iter().map(|child| Step::Terminate { key: *child }));
    if let Some(last) = children.last()
        && children.len() == at_once
    {
        execution.steps.push_back(Step::TerminateChildren { scope, after: *last, up_to });
    }
}

pub(super) fn children_after(
    execution: &Execution<'_>,
    scope: Key,
    after: Key,
    up_to: Option<Key>,
    count_max: usize,
) -> Vec<Key> {
    let end = up_to.map_or(i64::MAX, |last| last.raw().saturating_add(1));
    let begin = after.raw().saturating_add(1).max(0);
    if begin >= end {
        return Vec::new();
    }
    let children = execution.state.tables.children.range((scope.raw(), begin)..(scope.raw(), end));
    let children = children.map(|((_, child), _)| Key::from_raw(child));
    let can_end =
        |child: &Key| execution.state.element_instance(*child).is_some_and(|child| can_begin(execution, &child));
    children.filter(can_end).take(count_max).collect()
}
