//! From a command to its handler; atomicity, rejections and the banning of instances that cannot be processed.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use protocol::{
    AdHocSubProcessInstructionIntent, ClockIntent, ClusterIntent, Command, ConditionalEvaluationIntent,
    ConditionalSubscriptionIntent, DecisionEvaluationIntent, DeploymentIntent, ErrorIntent, ErrorValue,
    ExpressionIntent, FeatureLevelIntent, GlobalListenerBatchIntent, GlobalListenerIntent, IncarnationIntent,
    IncidentIntent, JobBatchIntent, JobIntent, JobPollIntent, JobStreamIntent, JobValue, Key, MessageBatchIntent,
    MessageCorrelationIntent, MessageIntent, MessageSubscriptionIntent, NodeIntent, OutboxIntent, Payload,
    ProcessInstanceCreationIntent, ProcessInstanceIntent, ProcessInstanceMigrationIntent,
    ProcessInstanceModificationIntent, ProcessMessageSubscriptionIntent, PurgeIntent, Rejection, RejectionType,
    ResourceDeletionIntent, ResourceIntent, SettingsIntent, SignalIntent, TimerIntent, Timestamp, UserTaskIntent,
    UserTaskValue, VariableDocumentIntent, WorkIntent, WorkValue,
};

use crate::apply::StateView;
use crate::distribution::{self, Arrival};
use crate::execution::step::{Step, instances_of_work, is_forgotten};
use crate::execution::{Execution, Failure, Outcome, Used};
use crate::feature_level::FeatureLevel;
use crate::message::{message_subscription, process_message_subscription};
use crate::output::{Output, Reply};
use crate::run::run_steps;
use crate::state::life::{comes_to_an_end, is_end_waited_for};
use crate::state::owning_instance::owning_instance;
use crate::state::{State, WorkRow};
use crate::watch::Decision;
use crate::{
    BrokenInvariant, EngineOptions, Fault, ad_hoc_sub_process, conditional, decision_evaluation, deployment,
    expression_evaluation, global_listener, incident, job, job_stream, message, partition, process_instance, refused,
    resource, resource_deletion, signal, timer, user_task, variable,
};

/// How much of the output belonged to the commands before.
struct Mark {
    records: usize,
    replies: usize,
    pushes: usize,
    available: usize,
    sends: usize,
    reply_bytes: u64,
}

impl Mark {
    fn of(output: &Output) -> Self {
        Mark {
            records: output.records.len(),
            replies: output.replies.len(),
            pushes: output.pushes.len(),
            available: output.available.len(),
            sends: output.sends.len(),
            reply_bytes: output.reply_bytes,
        }
    }

    fn reset(&self, output: &mut Output) {
        output.records.truncate(self.records);
        output.replies.truncate(self.replies);
        output.pushes.truncate(self.pushes);
        output.available.truncate(self.available);
        output.sends.truncate(self.sends);
        output.reply_bytes = self.reply_bytes;
    }
}

/// Processes one command: all of it, or nothing but the note that it was refused.
pub(crate) fn process(
    state: &mut State,
    options: &EngineOptions,
    timestamp: Timestamp,
    command: &Command,
    decision: Decision<'_>,
    output: &mut Output,
) -> Result<(), Fault> {
    check_level(state, options, command)?;
    state.begin();
    state.counters.position += 1;
    let mut execution = execution(state, options, timestamp, command, output);
    let source_position = execution.source_position;
    if let Some(source) = command.source {
        // That it arrived stays true even if it is then refused, or it would be sent forever.
        let arrival = distribution::receive(&mut execution, source);
        if let Arrival::OfOldIncarnation(rejection) = &arrival {
            execution.emit_rejection(command.key, command.payload.clone(), rejection.clone());
        }
        commit(state)?;
        let Arrival::Next = arrival else { return Ok(()) };
        state.begin();
    }
    for attempt in 1.. {
        let mark = Mark::of(output);
        let mut execution = self::execution(state, options, timestamp, command, output);
        execution.source_position = source_position;
        let outcome = match decision {
            Decision::Process => attempt_to_run(&mut execution, command, options.broken_invariant),
            Decision::Refuse(reason) => Err(refusal(&execution.state, command, reason)),
        };
        execution.used.add_to(&mut execution.output.spent);
        let at = execution.at;
        let mut failure = match outcome {
            Ok(()) => match state.commit() {
                Ok(()) => return Ok(()),
                Err(error) if error.concerns_one_command() => {
                    Failure::Rejected(Rejection::invalid_argument(error.to_string()))
                }
                Err(source) => return Err(Fault::Store { partition: state.partition, source }),
            },
            Err(failure) => failure,
        };
        state.rollback();
        if let Failure::Broken { process_instance, .. } = &mut failure
            && process_instance.is_none()
        {
            // What the command was about may have ended in it, and is there again.
            let at = instance_of(state, at);
            *process_instance = if at.is_some() { at } else { owning_instance(state, command) };
        }
        mark.reset(output);
        state.begin();
        // The command keeps its position, and so does the note that it arrived from another partition.
        state.counters.position = state.counters.position.max(source_position);
        let mut execution = self::execution(state, options, timestamp, command, output);
        execution.source_position = source_position;
        if attempt == ATTEMPTS_MAX || !ban_bystander(&mut execution, command, &failure) {
            refuse(&mut execution, command, failure);
            break;
        }
        commit(state)?;
        state.begin();
    }
    commit(state)
}

/// Behind a command that raises the feature level to one that is not known here, others go on by rules that are not known either.
fn check_level(state: &State, options: &EngineOptions, command: &Command) -> Result<(), Fault> {
    match &command.payload {
        // What is no level at all is refused as lower than the present one.
        Payload::FeatureLevel(FeatureLevelIntent::Raise, value) if value.level > 0 => {
            FeatureLevel::known_to(value.level, options.newest_level)
                .map(drop)
                .map_err(|error| Fault::FeatureLevel { partition: state.partition, error })
        }
        _ => Ok(()),
    }
}

/// Keeps what was done outside of a command's own attempt. If that does not fit the state, nothing is left to try.
pub(crate) fn commit(state: &mut State) -> Result<(), Fault> {
    let partition = state.partition;
    if let Some(misfit) = state.misfit.take() {
        state.rollback();
        return Err(Fault::Misfit { partition, reason: misfit.to_string() });
    }
    state.commit().map_err(|source| Fault::Store { partition, source })
}

/// How often a command is tried. Before each time but the first, another instance than the command's own was banned.
const ATTEMPTS_MAX: u32 = 20;

/// The outcome of a command that must not be processed: as if it had failed, together with its instance if there is
/// one.
fn refusal(state: &State, command: &Command, reason: &str) -> Failure {
    let process_instance = owning_instance(state, command);
    // Refused work must leave the queue, whichever instance it belongs to.
    if state.element_instance(process_instance).is_some() || matches!(command.payload, Payload::Work(..)) {
        return Failure::Broken { process_instance, reason: reason.to_owned() };
    }
    let reason = format!("Expected to process the command, but {reason}");
    Failure::Rejected(Rejection::new(RejectionType::ProcessingError, reason))
}

/// Runs a command. A panic of its handler and an event that does not fit the state are broken invariants.
fn attempt_to_run(execution: &mut Execution<'_>, command: &Command, broken_invariant: BrokenInvariant) -> Outcome {
    let caught = catch_unwind(AssertUnwindSafe(|| run(execution, command)));
    let (outcome, reason) = match (&execution.state.misfit, caught) {
        (None, Ok(outcome)) => return outcome,
        (Some(misfit), caught) => (caught, misfit.to_string()),
        (None, Err(panic)) => {
            let reason = panic_text(&*panic);
            (Err(panic), reason)
        }
    };
    if broken_invariant == BrokenInvariant::Stops {
        match outcome {
            Ok(_) => panic!("{reason}"),
            Err(panic) => resume_unwind(panic),
        }
    }
    let process_instance = instance_of(&execution.state, execution.at);
    Err(Failure::Broken { process_instance, reason })
}

fn instance_of(state: &State, element_instance: Key) -> Key {
    state.element_instance(element_instance).map_or(Key::NONE, |instance| instance.value.process_instance_key)
}

/// Bans an instance that a command happened to meet, such as one that the command's message was correlated to, so that
/// the command can be tried again without it. Returns whether it did.
fn ban_bystander(execution: &mut Execution<'_>, command: &Command, failure: &Failure) -> bool {
    let Failure::Broken { process_instance, reason } = failure else { return false };
    // These have other work to do even if the instance that they name is banned.
    let is_shared = matches!(command.payload, Payload::Work(..) | Payload::ProcessMessageSubscription(..));
    let is_own = *process_instance == owning_instance(&execution.state, command) && !is_shared;
    let is_living = execution.state.element_instance(*process_instance).is_some();
    if is_own || !is_living || execution.state.is_banned(*process_instance) {
        return false;
    }
    ban(execution, *process_instance, reason);
    true
}

fn execution<'a>(
    state: &'a mut State,
    options: &'a EngineOptions,
    timestamp: Timestamp,
    command: &Command,
    output: &'a mut Output,
) -> Execution<'a> {
    let limits = options.limits.as_ref().unwrap_or(state.rules().limits);
    Execution {
        source_position: state.counters.position,
        state: StateView::new(state),
        output,
        limits,
        first_partition_count: options.first_partition_count,
        timestamp,
        origin: command.origin(),
        request: command.request,
        at: Key::NONE,
        steps: VecDeque::new(),
        steps_max: limits.steps_per_command_max,
        rounds: 0,
        used: Used::of(limits),
        waiting_joins: Default::default(),
        last_path: Default::default(),
    }
}

/// Processes a command of this partition to itself as part of the one that caused it. Its handler refuses before it changes
/// anything, so a refusal is only noted.
pub(crate) fn follow_up(execution: &mut Execution<'_>, command: &Command) -> Outcome {
    match handle(execution, command) {
        Err(Failure::Rejected(rejection)) => {
            execution.emit_rejection(command.key, command.payload.clone(), rejection);
            Ok(())
        }
        outcome => outcome,
    }
}

fn run(execution: &mut Execution<'_>, command: &Command) -> Outcome {
    handle(execution, command)?;
    execution.check_excess()?;
    run_steps(execution, follow_up)?;
    execution.check_excess()?;
    resource_deletion::finish_unused(execution);
    Ok(())
}

/// The table of commands.
fn handle(execution: &mut Execution<'_>, command: &Command) -> Outcome {
    let key = command.key;
    match &command.payload {
        Payload::Deployment(DeploymentIntent::Create, value) => deployment::create(execution, command, value),
        Payload::ProcessInstanceCreation(
            intent @ (ProcessInstanceCreationIntent::Create | ProcessInstanceCreationIntent::CreateWithAwaitingResult),
            value,
        ) => process_instance::create::create(execution, *intent, value),
        Payload::ProcessInstance(ProcessInstanceIntent::Cancel, _) => process_instance::cancel::cancel(execution, key),
        Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, value) => {
            process_instance::migration::migrate(execution, value)
        }
        Payload::AdHocSubProcessInstruction(AdHocSubProcessInstructionIntent::Activate, value) => {
            ad_hoc_sub_process::activate(execution, value)
        }
        Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, value) => {
            process_instance::modification::modify(execution, value)
        }
        Payload::Job(intent, value) => handle_job(execution, command, *intent, value),
        Payload::JobBatch(JobBatchIntent::Activate, value) => job::activate_batch::activate(execution, value),
        Payload::JobStream(intent, value) => match intent {
            JobStreamIntent::Add => job_stream::add(execution, value),
            JobStreamIntent::Remove => job_stream::remove(execution, value),
            JobStreamIntent::Grant => job_stream::grant(execution, value),
            JobStreamIntent::Yield => job_stream::r#yield(execution, value),
            _ => not_a_command(command),
        },
        Payload::JobPoll(JobPollIntent::Yield, value) => job::poll::r#yield(execution, value),
        Payload::JobPoll(JobPollIntent::Acknowledge, value) => job::poll::acknowledge(execution, value),
        Payload::UserTask(intent, value) => handle_user_task(execution, command, *intent, value),
        Payload::VariableDocument(VariableDocumentIntent::Update, value) => {
            variable::update_document::update(execution, value)
        }
        Payload::DecisionEvaluation(DecisionEvaluationIntent::Evaluate, value) => {
            decision_evaluation::evaluate(execution, value)
        }
        Payload::Timer(TimerIntent::Trigger, _) => timer::trigger::trigger(execution, key),
        Payload::Incident(IncidentIntent::Resolve, _) => incident::resolve_command(execution, key),
        Payload::Message(MessageIntent::Publish, value) => message::publish::publish(execution, value),
        Payload::MessageCorrelation(MessageCorrelationIntent::Correlate, value) => {
            message::correlation::correlate(execution, value)
        }
        Payload::MessageBatch(MessageBatchIntent::Expire, value) => message::expire::expire(execution, value),
        Payload::MessageSubscription(..) | Payload::ProcessMessageSubscription(..) => {
            handle_subscription(execution, command)
        }
        Payload::Signal(SignalIntent::Broadcast, value) => signal::broadcast::broadcast(execution, command, value),
        Payload::ConditionalSubscription(..) | Payload::ConditionalEvaluation(..) => {
            handle_condition(execution, command)
        }
        Payload::Resource(ResourceIntent::Fetch, value) => resource::fetch(execution, value),
        Payload::ResourceDeletion(ResourceDeletionIntent::Delete, value) => {
            resource_deletion::delete(execution, command, value)
        }
        Payload::Outbox(OutboxIntent::Acknowledge, value) => distribution::acknowledged(execution, value),
        Payload::Work(WorkIntent::Continue, value) => continue_work(execution, value),
        Payload::FeatureLevel(..)
        | Payload::Incarnation(..)
        | Payload::Settings(..)
        | Payload::Node(..)
        | Payload::Cluster(..)
        | Payload::Clock(..) => handle_partition(execution, command),
        Payload::Purge(PurgeIntent::Purge, value) => partition::purge::purge(execution, *value),
        Payload::Expression(ExpressionIntent::Evaluate, value) => expression_evaluation::evaluate(execution, value),
        Payload::GlobalListener(..) | Payload::GlobalListenerBatch(..) => handle_global_listener(execution, command),
        _ => not_a_command(command),
    }
}

/// What is done with the partition itself.
fn handle_partition(execution: &mut Execution<'_>, command: &Command) -> Outcome {
    match &command.payload {
        Payload::FeatureLevel(FeatureLevelIntent::Raise, value) => {
            partition::raise_feature_level::raise(execution, *value)
        }
        Payload::Incarnation(IncarnationIntent::Raise, value) => partition::raise_incarnation::raise(execution, value),
        Payload::Settings(SettingsIntent::Change, value) => partition::change_settings::change(execution, *value),
        Payload::Node(NodeIntent::Start, value) => partition::start_node::start(execution, *value),
        Payload::Cluster(ClusterIntent::Bootstrap, value) => {
            partition::bootstrap_cluster::bootstrap(execution, command, value)
        }
        Payload::Clock(ClockIntent::Pin, value) => partition::pin_clock::pin(execution, *value),
        Payload::Clock(ClockIntent::Reset, _) => partition::reset_clock::reset(execution),
        _ => not_a_command(command),
    }
}

/// What is done with conditions that element instances and start events wait for.
fn handle_condition(execution: &mut Execution<'_>, command: &Command) -> Outcome {
    match &command.payload {
        Payload::ConditionalSubscription(ConditionalSubscriptionIntent::Trigger, value) => {
            conditional::trigger::trigger(execution, command.key, value)
        }
        Payload::ConditionalSubscription(ConditionalSubscriptionIntent::Evaluate, value) => {
            conditional::change::go_on(execution, command.key, value)
        }
        Payload::ConditionalEvaluation(ConditionalEvaluationIntent::Evaluate, value) => {
            conditional::evaluation::evaluate(execution, value)
        }
        _ => not_a_command(command),
    }
}

/// What is done with the listeners of all user tasks.
fn handle_global_listener(execution: &mut Execution<'_>, command: &Command) -> Outcome {
    match &command.payload {
        Payload::GlobalListener(
            intent @ (GlobalListenerIntent::Create | GlobalListenerIntent::Update | GlobalListenerIntent::Delete),
            value,
        ) => global_listener::change(execution, command, *intent, value),
        Payload::GlobalListenerBatch(GlobalListenerBatchIntent::Configure, value) => {
            global_listener::configure(execution, command, value)
        }
        _ => not_a_command(command),
    }
}

/// What is done with jobs.
fn handle_job(execution: &mut Execution<'_>, command: &Command, intent: JobIntent, value: &JobValue) -> Outcome {
    let key = command.key;
    match intent {
        JobIntent::Complete => job::complete::complete(execution, key, value),
        JobIntent::Fail => job::fail::fail(execution, key, value),
        JobIntent::ThrowError => job::throw_error::throw_error(execution, key, value),
        JobIntent::TimeOut => job::time_out::time_out(execution, key),
        JobIntent::RecurAfterBackoff => job::recur_after_backoff::recur(execution, key),
        JobIntent::UpdateRetries => job::update::update_retries(execution, key, value),
        JobIntent::UpdateTimeout => job::update::update_timeout(execution, key, value),
        JobIntent::Update => job::update::update(execution, key, value),
        JobIntent::Yield => job::r#yield::r#yield(execution, key),
        _ => not_a_command(command),
    }
}

/// What is done with user tasks.
fn handle_user_task(
    execution: &mut Execution<'_>,
    command: &Command,
    intent: UserTaskIntent,
    value: &UserTaskValue,
) -> Outcome {
    let key = command.key;
    match intent {
        UserTaskIntent::Assign => user_task::assign::assign(execution, key, value),
        UserTaskIntent::Claim => user_task::claim::claim(execution, key, value),
        UserTaskIntent::Update => user_task::update::update(execution, key, value),
        UserTaskIntent::Complete => user_task::complete::complete(execution, key, value),
        _ => not_a_command(command),
    }
}

/// What the partitions of a message and of an instance tell each other.
fn handle_subscription(execution: &mut Execution<'_>, command: &Command) -> Outcome {
    match &command.payload {
        Payload::MessageSubscription(intent, value) => match intent {
            MessageSubscriptionIntent::Create => message_subscription::create(execution, command, value),
            MessageSubscriptionIntent::Correlate => message_subscription::correlate(execution, command, value),
            MessageSubscriptionIntent::Reject => message_subscription::reject(execution, value),
            MessageSubscriptionIntent::Delete => message_subscription::delete(execution, command, value),
            MessageSubscriptionIntent::Migrate => message_subscription::migrate(execution, value),
            _ => not_a_command(command),
        },
        Payload::ProcessMessageSubscription(intent, value) => match intent {
            ProcessMessageSubscriptionIntent::Create => process_message_subscription::create(execution, value),
            ProcessMessageSubscriptionIntent::Correlate => {
                process_message_subscription::correlate(execution, command, value)
            }
            ProcessMessageSubscriptionIntent::Delete => process_message_subscription::delete(execution, value),
            _ => not_a_command(command),
        },
        _ => not_a_command(command),
    }
}

fn not_a_command(command: &Command) -> Outcome {
    Err(Rejection::invalid_argument(format!(
        "Expected a command, but {} {} is none that this version processes",
        command.payload.value_type().name(),
        command.payload.intent_name()
    ))
    .into())
}

/// Continues interrupted work: the oldest entry of the queue.
fn continue_work(execution: &mut Execution<'_>, value: &WorkValue) -> Outcome {
    let Some(row) = execution.state.tables.work.get(&value.sequence) else {
        return Err(Rejection::not_found(format!(
            "Expected to continue work {}, but it is done already",
            value.sequence
        ))
        .into());
    };
    let dequeued =
        WorkValue { sequence: value.sequence, process_instance_key: row.process_instance_key, ..WorkValue::default() };
    execution.emit(Key::NONE, Payload::Work(WorkIntent::Dequeued, Box::new(dequeued)));
    let steps = row.commands.iter().cloned().map(Step::from_command);
    let steps = steps.filter(|step| !is_forgotten(&execution.state, step, value.sequence)).collect();
    if row.rounds >= execution.limits.continuations_max {
        ban_endless(execution, &row);
    }
    // What is left of a command is still that command's.
    execution.origin = row.commands.first().map(Command::origin).unwrap_or_default();
    execution.steps = steps;
    execution.rounds = row.rounds;
    if row.is_part {
        // What these steps cause comes after the other entries that these were enqueued with.
        execution.steps_max = execution.steps.len();
    }
    Ok(())
}

/// Bans instances that keep taking steps without waiting for anything: they would never end.
fn ban_endless(execution: &mut Execution<'_>, row: &WorkRow) {
    for instance in instances_of_work(&execution.state, row) {
        if comes_to_an_end(&execution.state, instance) {
            continue;
        }
        let steps = u64::from(row.rounds).saturating_mul(execution.limits.steps_per_command_max as u64);
        let reason = format!(
            "Expected process instance '{instance}' to wait for something or to end some time, but it took about {steps} \
             steps in a row. Look for a loop without an element that waits, for example event sub-processes that trigger \
             each other or a loop around a call activity."
        );
        ban(execution, instance, &reason);
    }
}

/// Notes why a command came to nothing, and answers its request.
fn refuse(execution: &mut Execution<'_>, command: &Command, failure: Failure) {
    let is_noted = matches!(failure, Failure::Broken { .. });
    let rejection = match failure {
        Failure::Rejected(rejection) => rejection,
        Failure::Broken { process_instance, reason } => {
            if let Payload::Work(WorkIntent::Continue, value) = &command.payload {
                // The work that failed must not be tried again and again.
                let dequeued = WorkValue { commands: Vec::new(), ..(**value).clone() };
                execution.emit(Key::NONE, Payload::Work(WorkIntent::Dequeued, Box::new(dequeued)));
            }
            if !execution.state.is_banned(process_instance) {
                // What the command itself began is gone again, and its key goes to whatever begins next.
                let is_living = execution.state.element_instance(process_instance).is_some();
                ban(execution, if is_living { process_instance } else { Key::NONE }, &reason);
            }
            Rejection::new(
                RejectionType::ProcessingError,
                format!("Expected to process the command without errors, but this happened: {reason}"),
            )
        }
    };
    refused::take_off(execution, command, is_noted, &rejection.reason);
    execution.emit_rejection(command.key, command.payload.clone(), rejection.clone());
    if let Some(request) = command.request {
        execution.output.replies.push(Reply {
            request,
            key: command.key,
            payload: command.payload.clone(),
            rejection: Some(rejection),
            position: None,
        });
    }
}

/// Bans the instance with the reason; everything else continues. Without an instance, only the reason is recorded.
pub(crate) fn ban(execution: &mut Execution<'_>, process_instance: Key, reason: &str) {
    let value = ErrorValue {
        exception_message: reason.into(),
        stacktrace: Default::default(),
        error_event_position: execution.source_position,
        process_instance_key: process_instance,
    };
    execution.emit(Key::NONE, Payload::Error(ErrorIntent::Created, Box::new(value)));
    if is_end_waited_for(&execution.state, process_instance) {
        // The ban has forgotten the rest of the end, and what failed may have been a part of it.
        let end = Step::Terminate { key: process_instance }.into_command().following(&execution.origin);
        let entry = WorkValue { process_instance_key: process_instance, commands: vec![end], ..WorkValue::default() };
        execution.enqueue(entry);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "an unexpected failure without a message".to_owned())
}
