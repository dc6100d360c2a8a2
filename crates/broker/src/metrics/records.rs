//! What the records of a partition say about jobs, instances and incidents.

use std::collections::HashMap;

use metrics::{Counter, counter};
use protocol::{
    BpmnElementType, IncidentIntent, JobBatchIntent, JobIntent, PartitionId, Payload, ProcessInstanceCreationIntent,
    ProcessInstanceIntent, Record, RecordType, Text,
};

/// Job types that are counted by name; further ones are counted together, so that users cannot fill the memory.
const JOB_TYPES_LIMIT: usize = 1_000;
const FURTHER_JOB_TYPES: &str = "(further types)";

/// Counts events by what they are about.
pub(crate) struct RecordMetrics {
    partition: String,
    jobs: HashMap<Text, HashMap<&'static str, Counter>>,
    elements: HashMap<(&'static str, &'static str), Counter>,
    incidents: HashMap<&'static str, Counter>,
    creations: Counter,
}

impl RecordMetrics {
    pub fn new(partition: PartitionId) -> Self {
        let partition = partition.to_string();
        let creations = counter!(
            "zeebe_process_instance_creations_total",
            "partition" => partition.clone(), "creation_mode" => "creation_at_default_start_event"
        );
        RecordMetrics {
            partition,
            jobs: HashMap::new(),
            elements: HashMap::new(),
            incidents: HashMap::new(),
            creations,
        }
    }

    /// Counts the events among the records.
    pub fn count(&mut self, records: &[Record]) {
        for record in records.iter().filter(|record| record.record_type == RecordType::Event) {
            match &record.payload {
                Payload::Job(intent, job) => {
                    if let Some(action) = job_action(*intent) {
                        self.job(&job.job_type, action, 1);
                    }
                }
                Payload::JobBatch(JobBatchIntent::Activated, batch) => {
                    self.job(&batch.job_type, "activated", batch.job_keys.len());
                }
                Payload::ProcessInstance(intent, value) => {
                    self.element(*intent, value.bpmn_element_type, || value.parent_process_instance_key.is_some())
                }
                Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Created, _) => {
                    self.creations.increment(1);
                }
                Payload::Incident(intent, _) => self.incident(*intent),
                _ => {}
            }
        }
    }

    fn job(&mut self, job_type: &Text, action: &'static str, count: usize) {
        if let Some(counter) = self.jobs.get(job_type).and_then(|actions| actions.get(action)) {
            return counter.increment(count as u64);
        }
        let known = self.jobs.contains_key(job_type) || self.jobs.len() < JOB_TYPES_LIMIT;
        let name = if known { job_type.clone() } else { FURTHER_JOB_TYPES.into() };
        let (partition, label) = (self.partition.clone(), name.to_string());
        let counter = self.jobs.entry(name).or_default().entry(action).or_insert_with(
            || counter!("zeebe_job_events_total", "partition" => partition, "type" => label, "action" => action),
        );
        counter.increment(count as u64);
    }

    fn element(&mut self, intent: ProcessInstanceIntent, element: BpmnElementType, is_called: impl FnOnce() -> bool) {
        let action = match intent {
            ProcessInstanceIntent::ElementActivated => "activated",
            ProcessInstanceIntent::ElementCompleted => "completed",
            ProcessInstanceIntent::ElementTerminated => "terminated",
            _ => return,
        };
        self.element_counter("zeebe_element_instance_events_total", action, element.name()).increment(1);
        if element == BpmnElementType::Process && !is_called() {
            self.element_counter("zeebe_executed_instances_total", action, "ROOT_PROCESS_INSTANCE").increment(1);
        }
    }

    fn element_counter(&mut self, name: &'static str, action: &'static str, kind: &'static str) -> &Counter {
        let partition = &self.partition;
        self.elements
            .entry((action, kind))
            .or_insert_with(|| counter!(name, "partition" => partition.clone(), "action" => action, "type" => kind))
    }

    fn incident(&mut self, intent: IncidentIntent) {
        let action = match intent {
            IncidentIntent::Created => "created",
            IncidentIntent::Resolved => "resolved",
            _ => return,
        };
        let partition = &self.partition;
        let counter = self.incidents.entry(action).or_insert_with(
            || counter!("zeebe_incident_events_total", "partition" => partition.clone(), "action" => action),
        );
        counter.increment(1);
    }
}

const fn job_action(intent: JobIntent) -> Option<&'static str> {
    match intent {
        JobIntent::Created => Some("created"),
        JobIntent::Completed => Some("completed"),
        JobIntent::Failed => Some("failed"),
        JobIntent::TimedOut => Some("timed out"),
        JobIntent::Canceled => Some("canceled"),
        JobIntent::ErrorThrown => Some("error thrown"),
        _ => None,
    }
}
