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

/// Counters of one thing by the place of what happened to it; each begins to exist, and to be shown, when that happens first.
type ByAction<const ACTIONS: usize> = [Option<Counter>; ACTIONS];
type JobCounters = ByAction<{ JobAction::ErrorThrown as usize + 1 }>;
type ElementCounters = ByAction<{ ElementAction::Terminated as usize + 1 }>;

/// What is counted of jobs.
#[derive(Clone, Copy)]
enum JobAction {
    Created,
    Activated,
    Completed,
    Failed,
    TimedOut,
    Canceled,
    ErrorThrown,
}

impl JobAction {
    const fn of(intent: JobIntent) -> Option<JobAction> {
        match intent {
            JobIntent::Created => Some(Self::Created),
            JobIntent::Completed => Some(Self::Completed),
            JobIntent::Failed => Some(Self::Failed),
            JobIntent::TimedOut => Some(Self::TimedOut),
            JobIntent::Canceled => Some(Self::Canceled),
            JobIntent::ErrorThrown => Some(Self::ErrorThrown),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Activated => "activated",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Canceled => "canceled",
            Self::ErrorThrown => "error thrown",
        }
    }
}

/// What is counted of element instances.
#[derive(Clone, Copy)]
enum ElementAction {
    Activated,
    Completed,
    Terminated,
}

impl ElementAction {
    const fn of(intent: ProcessInstanceIntent) -> Option<ElementAction> {
        match intent {
            ProcessInstanceIntent::ElementActivated => Some(Self::Activated),
            ProcessInstanceIntent::ElementCompleted => Some(Self::Completed),
            ProcessInstanceIntent::ElementTerminated => Some(Self::Terminated),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Activated => "activated",
            Self::Completed => "completed",
            Self::Terminated => "terminated",
        }
    }
}

/// Counts events by what they are about. It is done for each record, so counters are found by place and not by name.
pub(crate) struct RecordMetrics {
    partition: String,
    jobs: HashMap<Text, JobCounters>,
    /// By the type of the element.
    elements: Vec<ElementCounters>,
    root_instances: ElementCounters,
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
            elements: Vec::new(),
            root_instances: ElementCounters::default(),
            incidents: HashMap::new(),
            creations,
        }
    }

    /// Counts the events among the records.
    pub fn count(&mut self, records: &[Record]) {
        for record in records.iter().filter(|record| record.record_type == RecordType::Event) {
            match &record.payload {
                Payload::Job(intent, job) => {
                    if let Some(action) = JobAction::of(*intent) {
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
                    self.job(&batch.job_type, JobAction::Activated, batch.job_keys.len());
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

    fn job(&mut self, job_type: &Text, action: JobAction, count: usize) {
        if let Some(counter) = self.jobs.get(job_type).and_then(|counters| counters[action as usize].as_ref()) {
            return counter.increment(count as u64);
        }
        let known = self.jobs.contains_key(job_type) || self.jobs.len() < JOB_TYPES_LIMIT;
        let name = if known { job_type.clone() } else { FURTHER_JOB_TYPES.into() };
        let (partition, label) = (self.partition.clone(), name.to_string());
        let counter = self.jobs.entry(name).or_default()[action as usize].get_or_insert_with(|| {
            let action = action.name();
            counter!("zeebe_job_events_total", "partition" => partition, "type" => label, "action" => action)
        });
        counter.increment(count as u64);
    }

    fn element(&mut self, intent: ProcessInstanceIntent, element: BpmnElementType, is_called: impl FnOnce() -> bool) {
        let Some(action) = ElementAction::of(intent) else { return };
        let place = element as usize;
        if place >= self.elements.len() {
            self.elements.resize_with(place + 1, ElementCounters::default);
        }
        let partition = &self.partition;
        let new_counter = |name: &'static str, kind: &'static str| {
            let partition = partition.clone();
            counter!(name, "partition" => partition, "action" => action.name(), "type" => kind)
        };
        self.elements[place][action as usize]
            .get_or_insert_with(|| new_counter("zeebe_element_instance_events_total", element.name()))
            .increment(1);
        if element == BpmnElementType::Process && !is_called() {
            self.root_instances[action as usize]
                .get_or_insert_with(|| new_counter("zeebe_executed_instances_total", "ROOT_PROCESS_INSTANCE"))
                .increment(1);
        }
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
