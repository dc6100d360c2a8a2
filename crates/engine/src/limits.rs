//! What a single command may do.

use crate::feature_level::FeatureLevel;
use feel::Environment;
use protocol::Timestamp;

/// Bounds of the engine. What happens at each is part of its behaviour, not an accident.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Element steps that one command takes at once; the rest waits its turn in the work queue.
    pub steps_per_command_max: usize,
    /// Records of one command, and steps that wait in it, after which the rest of its steps waits in the work queue.
    pub records_per_command: usize,
    /// Bytes of variables in the records of one command after which the rest of its steps waits in the work queue.
    pub bytes_per_command: u64,
    /// Steps that the expressions and decisions of one command take after which the rest of its steps waits in the work queue.
    pub evaluation_steps_per_command: u64,
    /// Steps that the expressions and decisions of one command may take at all, about 20 nanoseconds of a processor each; one
    /// more is an incident of its element.
    pub evaluation_steps_per_command_max: u64,
    /// Bytes of variables that the expressions and decisions of one command may read; more are an incident of its element.
    pub evaluation_bytes_read_per_command_max: usize,
    /// Bytes of values and texts that the expressions and decisions of one command may build; more are an incident of its
    /// element.
    pub evaluation_bytes_built_per_command_max: usize,
    /// Bytes of one record: a command that makes a larger one is refused, or puts the instance aside that made it.
    pub record_bytes_max: u64,
    /// Bytes of a command for another partition, deployments to all of them included: it must fit an entry of their log.
    pub outbox_command_bytes_max: u64,
    /// Deployments and deletions that not every partition has acknowledged; a further one is refused.
    pub pending_distributions_max: usize,
    /// Commands for one other partition that it has not acknowledged; with more, no further message subscriptions are opened
    /// there, and the elements that would are incidents.
    pub outbox_commands_max: u64,
    /// Bytes that the variables of a message take in all those together to whom publishing brings them at once.
    pub message_correlations_bytes_max: usize,
    /// Bytes of what all input or all output mappings of an element give; more are an incident of the element.
    pub mapping_bytes_max: usize,
    /// Bytes of all inputs and outputs that the evaluation of a decision reports: a client must be able to receive
    /// them.
    pub decision_evaluation_bytes_max: usize,
    /// How often interrupted work continues without waiting for anything; an instance that exceeds this is banned.
    pub continuations_max: u32,
    /// Entries of the work queue above which the instance that has more than half of them is banned.
    pub work_entries_max: u64,
    /// Element instances that the creation of an instance or its modification begins and ends by instructions; a larger
    /// command is refused.
    pub elements_per_operation_max: usize,
    /// Items of a loop whose output collection is updated with every result; that of a longer one is written at the end. Results of
    /// an ad-hoc sub-process after so many wait for its end.
    pub output_collection_updates_max: u32,
    /// Bytes that an output collection may reach by such an update; further results of the loop are written at its end.
    pub output_collection_update_bytes_max: usize,
    /// Bytes of all results of a loop; more are an incident of the inner instance that adds them.
    pub output_collection_bytes_max: usize,
    /// Variables that are set together, times the scopes in which each of them is looked for; more are an incident, or refused.
    pub variable_looks_max: usize,
    /// Bytes of the variables that go to a called process, and of those that come back; more are an incident.
    pub called_variables_bytes_max: usize,
    /// Bytes of the variables of a root process instance and of all processes that it called, about; more are an incident of the
    /// element that makes them, or the refusal of the command.
    pub root_variable_bytes_max: u64,
    /// Living element instances, tokens and items of loops of a root process instance and of all processes that it called; one
    /// more is an incident of the element that begins or would multiply them.
    pub root_element_instances_max: u64,
    /// Conditions that one process instance waits for at once; an element that would wait for more is an incident.
    pub conditional_subscriptions_max: usize,
    /// Calls that lead to one another: how deep process instances can be nested.
    pub call_depth_max: u32,
    /// Bytes of one job with its variables; a larger one is an incident of its element.
    pub job_bytes_max: usize,
    /// Bytes of all jobs answered by one activation; the rest stays available.
    pub job_batch_bytes_max: usize,
    /// Bytes of the variables with which the creation of an instance is answered when it has completed: they must fit a message.
    pub result_bytes_max: usize,
    /// Bytes of all answers to the commands of one batch, which are kept until its records are written: with more, no jobs are
    /// activated for polls, no decisions are evaluated for clients, and results of instances are not told.
    pub reply_bytes_per_batch: u64,
    /// Jobs answered by one activation.
    pub job_batch_jobs_max: usize,
    /// Jobs of polls that are kept by their poll because no gateway has acknowledged them; with more, the oldest polls of the gateway
    /// that polls count as delivered.
    pub polled_jobs_max: u64,
    /// Bytes of an incident's message; a longer one is cut.
    pub incident_message_bytes_max: usize,
    /// Bytes of the message with which a job fails or throws an error; a longer one is cut.
    pub job_error_message_bytes_max: usize,
    /// Bytes of a job type, a variable's name and other texts that tables are ordered by.
    pub name_bytes_max: usize,
    /// Characters of a business id; a creation with a longer one is refused.
    pub business_id_characters_max: usize,
    /// Listeners that the user tasks of all processes have; one more is refused.
    pub global_listeners_max: usize,
}

impl Limits {
    /// Those of level 1.
    pub(crate) const OF_LEVEL_1: Limits = Limits {
        steps_per_command_max: 1_000,
        records_per_command: 10_000,
        bytes_per_command: 16 << 20,
        evaluation_steps_per_command: 625_000,
        evaluation_steps_per_command_max: 2_500_000,
        evaluation_bytes_read_per_command_max: 64 << 20,
        evaluation_bytes_built_per_command_max: 160 << 20,
        record_bytes_max: 64 << 20,
        outbox_command_bytes_max: 12 << 20,
        pending_distributions_max: 100,
        outbox_commands_max: 100_000,
        message_correlations_bytes_max: 32 << 20,
        mapping_bytes_max: 32 << 20,
        decision_evaluation_bytes_max: 3 << 20,
        continuations_max: 50_000,
        work_entries_max: 1_000,
        elements_per_operation_max: 10_000,
        output_collection_updates_max: 1_000,
        output_collection_update_bytes_max: 16 << 10,
        output_collection_bytes_max: 16 << 20,
        variable_looks_max: 250_000,
        called_variables_bytes_max: 32 << 20,
        root_variable_bytes_max: 512 << 20,
        root_element_instances_max: 1_000_000,
        conditional_subscriptions_max: 10_000,
        call_depth_max: 1_000,
        job_bytes_max: 4 << 20,
        job_batch_bytes_max: 4 << 20,
        result_bytes_max: 4_190_000,
        reply_bytes_per_batch: 64 << 20,
        job_batch_jobs_max: 10_000,
        polled_jobs_max: 20_000,
        incident_message_bytes_max: 10_000,
        job_error_message_bytes_max: 10_000,
        name_bytes_max: 512,
        business_id_characters_max: 256,
        global_listeners_max: 100,
    };
}

/// Those of the newest feature level, for tests that change one.
impl Default for Limits {
    fn default() -> Self {
        *FeatureLevel::NEWEST.rules().limits
    }
}

/// The limits of one command.
pub(crate) fn environment_at(timestamp: Timestamp, limits: &Limits) -> Environment {
    Environment {
        step_limit: u32::try_from(limits.evaluation_steps_per_command_max).unwrap_or(u32::MAX),
        read_limit_bytes: limits.evaluation_bytes_read_per_command_max,
        memory_limit_bytes: limits.evaluation_bytes_built_per_command_max,
        ..Environment::at(timestamp)
    }
}
