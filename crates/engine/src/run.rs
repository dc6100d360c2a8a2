//! Takes the steps of a command, one after the other.

use bpmn::model::Behavior;
use protocol::{Command, Key};

use crate::compensation;
use crate::element::{activate, ad_hoc_sub_process, complete, multi_instance, terminate};
use crate::execution::step::Step;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::state::{Lifecycle, State};

/// Carries out a command of this partition to itself as a part of the one that caused it.
pub(crate) type FollowUp = fn(&mut Execution<'_>, &Command) -> Outcome;

/// Takes the steps that the command caused, up to the limits; the rest waits in the work queue.
pub(crate) fn run_steps(execution: &mut Execution<'_>, follow_up: FollowUp) -> Outcome {
    for _ in 0..execution.steps_max {
        let Some(step) = execution.steps.pop_front() else { return Ok(()) };
        execution.at = step.element_instance();
        take_step(execution, step, follow_up)?;
        execution.check_step()?;
        if execution.is_over_budget() {
            break;
        }
    }
    execution.enqueue_remaining_steps()
}

/// Takes one step. A step whose instance is gone or has ended meanwhile has nothing to do.
fn take_step(execution: &mut Execution<'_>, step: Step, follow_up: FollowUp) -> Outcome {
    if is_of_banned(&execution.state, &step) {
        return Ok(());
    }
    match step {
        Step::Activate { key, value } => activate::activate(execution, key, value),
        Step::ContinueActivation { key } => activate::resume(execution, key),
        Step::Complete { key } => complete::complete(execution, key),
        Step::Terminate { key } => terminate::terminate(execution, key),
        Step::TerminateChildren { scope, after, up_to } => {
            terminate::terminate_children(execution, scope, after, up_to)
        }
        Step::ActivateBatch { of } => activate_batch(execution, of),
        Step::BeginAdHocElements { ad_hoc, value } => ad_hoc_sub_process::continue_elements(execution, ad_hoc, *value),
        Step::Command(command) => follow_up(execution, &command),
    }
}

fn activate_batch(execution: &mut Execution<'_>, of: Key) -> Outcome {
    match Token::find(execution, of)? {
        Some(token) if matches!(token.element().behavior, Behavior::CompensationThrowEvent { .. }) => {
            compensation::go_on(execution, &token)
        }
        _ => multi_instance::activate_inner_instances(execution, of),
    }
}

/// Whether the step belongs to a banned instance and is not taken, whatever caused it. Such an instance does nothing any
/// more but end, when itself or what called it is cancelled. What comes from another partition or goes there is always done.
fn is_of_banned(state: &State, step: &Step) -> bool {
    if state.counters.banned_instances == 0 || matches!(step, Step::Command(_)) {
        return false;
    }
    let process_instance = step.process_instance(state);
    if !state.is_banned(process_instance) {
        return false;
    }
    match step {
        Step::Terminate { key } if *key == process_instance => false,
        Step::Terminate { .. } | Step::TerminateChildren { .. } => {
            let process = state.element_instance(process_instance);
            process.is_none_or(|process| process.lifecycle != Lifecycle::Terminating)
        }
        _ => true,
    }
}
