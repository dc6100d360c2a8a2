//! What a single command may do.

/// Bounds of the engine. What happens at each is part of its behaviour, not an accident.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Element steps that one command takes at once; the rest waits its turn in the work queue.
    pub steps_per_command_max: usize,
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
