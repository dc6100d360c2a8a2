//! What a single command may do.

/// Bounds of the engine. What happens at each is part of its behaviour, not an accident.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Element steps that one command takes at once; the rest waits its turn in the work queue.
    pub steps_per_command_max: usize,
    /// Records of one command, and steps that wait in it, after which the rest of its steps waits in the work queue.
    pub records_per_command: usize,
    /// Bytes of variables in the records of one command after which the rest of its steps waits in the work queue.
    pub bytes_per_command: u64,
    /// Nodes and items that the expressions of one command visit after which the rest of its steps waits in the work queue.
    pub evaluation_steps_per_command: u64,
    /// Nodes and items that the expressions of one command may visit at all; one more is an incident of its element.
    pub evaluation_steps_per_command_max: u64,
    /// Bytes of what all input or all output mappings of an element give; more are an incident of the element.
    pub mapping_bytes_max: usize,
    /// Bytes of all inputs and outputs that the evaluation of a decision tells: a client must be able to receive them.
    pub decision_evaluation_bytes_max: usize,
    /// How often interrupted work goes on without any wait between; an instance with more is put aside.
    pub continuations_max: u32,
    /// Entries of the work queue above which the instance that has more than half of them is put aside.
    pub work_entries_max: u64,
    /// Element instances that the creation of an instance or its modification begins and ends by instructions; a larger
    /// command is refused.
    pub elements_per_operation_max: usize,
    /// Items of a loop whose output collection is updated with every result; that of a longer one is written at the end.
    pub output_collection_updates_max: u32,
    /// Calls that lead to one another: how deep process instances can be nested.
    pub call_depth_max: u32,
    /// Bytes of one job with its variables; a larger one is an incident of its element.
    pub job_bytes_max: usize,
    /// Bytes of all jobs answered by one activation; the rest stays available.
    pub job_batch_bytes_max: usize,
    /// Jobs answered by one activation.
    pub job_batch_jobs_max: usize,
    /// Bytes of an incident's message; a longer one is cut.
    pub incident_message_bytes_max: usize,
    /// Bytes of a job type, a variable's name and other texts that tables are ordered by.
    pub name_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            steps_per_command_max: 1_000,
            records_per_command: 20_000,
            bytes_per_command: 16 << 20,
            evaluation_steps_per_command: 5_000_000,
            evaluation_steps_per_command_max: 20_000_000,
            mapping_bytes_max: 32 << 20,
            decision_evaluation_bytes_max: 3 << 20,
            continuations_max: 50_000,
            work_entries_max: 1_000,
            elements_per_operation_max: 10_000,
            output_collection_updates_max: 1_000,
            call_depth_max: 1_000,
            job_bytes_max: 4 << 20,
            job_batch_bytes_max: 4 << 20,
            job_batch_jobs_max: 10_000,
            incident_message_bytes_max: 10_000,
            name_bytes_max: 512,
        }
    }
}
