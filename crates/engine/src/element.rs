//! The life of element instances, step by step.

pub(crate) mod activate;
mod activate_at;
pub(crate) mod ad_hoc_sub_process;
mod bound_version;
mod business_rule_task;
mod call_activity;
pub(crate) mod complete;
mod exclusive_gateway;
mod inclusive_gateway;
pub(crate) mod interrupt;
mod job_worker_task;
mod linked_resources;
pub(crate) mod multi_instance;
mod output_collection;
mod runtime_instruction;
mod script_task;
pub(crate) mod stop;
pub(crate) mod terminate;
mod terminate_at_once;
mod throw_event;
mod user_task;

pub(crate) use activate_at::{ActivateInstruction, Activations, ScopeVariables, scopes_of};
pub(crate) use ad_hoc_sub_process::renew_choices;
pub(crate) use job_worker_task::{create_job, evaluate as evaluate_job, job_of};
pub(crate) use terminate::{begin as begin_termination, cancel_job, finish_termination};
pub(crate) use terminate_at_once::Terminations;
pub(crate) use user_task::{continue_as_user_task, list_text};

use protocol::{Key, ProcessInstanceValue};

use crate::execution::{Execution, Outcome};

/// Joining gateways of a scope begin if what they wait for can no longer come.
pub(crate) fn look_again_at_joins(execution: &mut Execution<'_>, scope: Key, of: &ProcessInstanceValue) -> Outcome {
    inclusive_gateway::look_again(execution, scope, of)
}
