//! What the records of a partition say about jobs, instances and incidents.

use std::collections::HashMap;

use metrics::{Counter, Histogram, counter, histogram};
use protocol::{
    BpmnElementType, DecisionEvaluationIntent, IncidentIntent, JobBatchIntent, JobIntent, PartitionId, Payload,
    ProcessInstanceCreationIntent, ProcessInstanceIntent, Record, RecordType, Text,
};

use super::life_times::LifeTimes;

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
    decisions: Counter,
    failed_decisions: Counter,
    job_lives: LifeTimes,
    job_activation: Histogram,
    instance_lives: LifeTimes,
}

impl RecordMetrics {
    pub fn new(partition: PartitionId) -> Self {
        let partition = partition.to_string();
        let creations = counter!(
            "zeebe_process_instance_creations_total",
            "partition" => partition.clone(), "creation_mode" => "creation_at_default_start_event"
        );
        let decisions = |action: &'static str| counter!("zeebe_evaluated_dmn_elements_total", "partition" => partition.clone(), "action" => action);
        RecordMetrics {
            decisions: decisions("evaluated_successfully"),
            failed_decisions: decisions("evaluated_failed"),
            job_lives: LifeTimes::new("zeebe_job_life_time_seconds", "jobs", &partition),
            job_activation: histogram!("zeebe_job_activation_time_seconds", "partition" => partition.clone()),
            instance_lives: LifeTimes::new(
                "zeebe_process_instance_execution_time_seconds",
                "processInstances",
                &partition,
            ),
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
                    match intent {
                        JobIntent::Created => self.job_lives.begin(record.key, record.timestamp),
                        JobIntent::Completed => self.job_lives.complete(record.key, record.timestamp),
                        JobIntent::Canceled | JobIntent::ErrorThrown => self.job_lives.end(record.key),
                        _ => {}
                    }
                }
                Payload::JobBatch(JobBatchIntent::Activated, batch) => {
                    self.job(&batch.job_type, "activated", batch.job_keys.len());
                    let ages = batch.job_keys.iter().filter_map(|key| self.job_lives.age(*key, record.timestamp));
                    ages.for_each(|seconds| self.job_activation.record(seconds));
                }
                Payload::ProcessInstance(intent, value) => {
                    self.element(*intent, value.bpmn_element_type, || value.parent_process_instance_key.is_some());
                    if value.bpmn_element_type == BpmnElementType::Process {
                        self.instance(*intent, record);
                    }
                }
                Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Created, _) => {
                    self.creations.increment(1);
                }
                Payload::Incident(intent, _) => self.incident(*intent),
                Payload::DecisionEvaluation(intent, value) => {
                    let evaluated = value.evaluated_decisions.len() as u64;
                    match intent {
                        DecisionEvaluationIntent::Evaluated => self.decisions.increment(evaluated),
                        DecisionEvaluationIntent::Failed => self.failed_decisions.increment(evaluated),
                        DecisionEvaluationIntent::Evaluate => {}
                    }
                }
                _ => {}
            }
        }
    }

    /// What is not counted but looked up about once a second.
    pub fn publish(&self) {
        self.job_lives.publish();
        self.instance_lives.publish();
    }

    fn instance(&mut self, intent: ProcessInstanceIntent, record: &Record) {
        match intent {
            ProcessInstanceIntent::ElementActivated => self.instance_lives.begin(record.key, record.timestamp),
            ProcessInstanceIntent::ElementCompleted => self.instance_lives.complete(record.key, record.timestamp),
            ProcessInstanceIntent::ElementTerminated => self.instance_lives.end(record.key),
            _ => {}
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
