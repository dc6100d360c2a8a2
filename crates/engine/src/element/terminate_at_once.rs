//! Element instances that end by the modification of their instance: at once, all or none, and without what otherwise
//! follows the end of an element.

use std::collections::BTreeSet;

use protocol::{BpmnElementType, Key, ProcessInstanceIntent, Rejection};

use super::{inclusive_gateway, terminate};
use crate::compensation;
use crate::event;
use crate::execution::step::Step;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::message;
use crate::state::Lifecycle;
use crate::user_task;

/// Terminations that belong together.
pub(crate) struct Terminations {
    /// How many element instances may still end.
    left: usize,
    /// Scopes that something left and that continue.
    scopes: BTreeSet<Key>,
    /// Scopes that are kept, because something begins in them.
    kept: BTreeSet<Key>,
    /// The refusal when there are too many.
    too_many: Rejection,
}

impl Terminations {
    pub fn new(elements_max: usize, kept: BTreeSet<Key>, too_many: Rejection) -> Self {
        Terminations { left: elements_max, scopes: BTreeSet::new(), kept, too_many }
    }

    /// Ends an element instance with everything in it, and then the enclosing instances in which nothing is left.
    /// `called_process` refuses the end of a process that another one called.
    pub fn end(
        &mut self,
        execution: &mut Execution<'_>,
        key: Key,
        called_process: impl Fn(&Token) -> Rejection,
    ) -> Outcome {
        let Some(mut token) = Token::find(execution, key)? else { return Ok(()) };
        loop {
            let value = token.value();
            if value.bpmn_element_type == BpmnElementType::Process && value.parent_process_instance_key.is_some() {
                return Err(called_process(&token).into());
            }
            self.end_tree(execution, token.key)?;
            let Some(scope) = Token::find(execution, token.value().flow_scope_key)? else { return Ok(()) };
            let is_ending = scope.instance.lifecycle == Lifecycle::Terminating;
            let lives = scope.instance.is_held_open();
            if lives || is_ending || self.kept.contains(&scope.key) {
                self.scopes.insert(scope.key);
                return Ok(());
            }
            token = scope;
        }
    }

    fn end_tree(&mut self, execution: &mut Execution<'_>, key: Key) -> Outcome {
        let mut open = vec![key];
        let mut ending = Vec::new();
        while let Some(key) = open.pop() {
            let Some(token) = Token::find(execution, key)? else { continue };
            self.left = self.left.checked_sub(1).ok_or_else(|| self.too_many.clone())?;
            begin(execution, &token);
            if token.value().bpmn_element_type == BpmnElementType::Process {
                let deleted = compensation::delete_all_of_process(execution, key, self.left);
                self.left -= deleted.ok_or_else(|| self.too_many.clone())?;
            }
            open.extend(execution.state.tables.children.prefix(&key.raw()).map(|((_, child), _)| Key::from_raw(child)));
            if token.instance.called_instance.is_some() {
                open.push(token.instance.called_instance);
            }
            ending.push(token);
        }
        for token in ending.iter().rev() {
            finish(execution, token);
        }
        Ok(())
    }

    /// Called when all have ended: a path that ended may have been the last one that a joining gateway of a surviving
    /// scope waited for.
    pub fn finish(self, execution: &mut Execution<'_>) -> Outcome {
        for scope in self.scopes {
            let Some(instance) = execution.state.element_instance(scope) else { continue };
            if instance.lifecycle == Lifecycle::Terminating {
                // What ended here was perhaps the last that it waited for; then it goes on as it would have.
                execution.steps.push_back(Step::TerminateChildren { scope, after: Key::NONE, up_to: None });
            } else {
                inclusive_gateway::look_again(execution, scope, &instance.value)?;
            }
        }
        Ok(())
    }
}

/// Already terminating: its queued step will find nothing to do.
fn begin(execution: &mut Execution<'_>, token: &Token) {
    if token.instance.lifecycle != Lifecycle::Terminating {
        token.transition(execution, ProcessInstanceIntent::ElementTerminating);
    }
    terminate::cancel_job(execution, &token.instance);
    terminate::resolve_incident(execution, &token.instance);
    event::unsubscribe(execution, token.key);
    user_task::cancel_at_once(execution, &token.instance);
}

fn finish(execution: &mut Execution<'_>, token: &Token) {
    let terminated = |execution: &mut Execution<'_>| {
        token.transition(execution, ProcessInstanceIntent::ElementTerminated);
    };
    if token.value().bpmn_element_type == BpmnElementType::Process {
        message::start_event::release_after(execution, token.key, token.value(), terminated);
    } else {
        terminated(execution);
    }
}
