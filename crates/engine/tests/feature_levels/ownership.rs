//! What records say of resolved jobs, of deleted processes, and of whose a wait is.

use engine::FeatureLevel;
use model_builder::ProcessBuilder;
use protocol::*;

use super::{at, migrate, newest_definition};
use crate::support::{Partition, TENANT};

const DECISION: &str = "<definitions xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\" id=\"g\" name=\"G\" namespace=\"n\">\
     <decision id=\"d\" name=\"D\"><variable name=\"d\"/><literalExpression><text>1</text></literalExpression></decision>\
     </definitions>";

fn deploy(partition: &mut Partition, id: &str) -> Key {
    let model = ProcessBuilder::new(id).start("start").called_decision("decide", "d", "x");
    let model = model.service_task("work", "work").receive_task("wait", "m", "= \"k\"").end("end");
    partition.deploy("p.bpmn", model.to_xml().as_bytes());
    newest_definition(partition)
}

fn fails(partition: &mut Partition, retries: i32) {
    partition.activate("work", 1);
    let value = JobValue { retries, retry_backoff: 60_000, error_message: "broken".into(), ..JobValue::default() };
    partition.job(partition.jobs["work"], JobIntent::Fail, value);
}

fn create(partition: &mut Partition, process: &str) {
    let value = ProcessInstanceCreationValue {
        bpmn_process_id: process.into(),
        version: -1,
        tenant_id: TENANT.into(),
        business_id: "b-1".into(),
        ..ProcessInstanceCreationValue::default()
    };
    let create = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
    partition.submit(Key::NONE, create);
}

/// A job fails and its incident is resolved; its instance, with a business id, decides, waits for a message in one process and in
/// another one, and gets it; another job throws an error that
/// nobody catches; a version of a process goes.
pub(super) fn history(level: FeatureLevel) -> Partition {
    let mut partition = Partition::with_options(at(level));
    partition.deploy("d.dmn", DECISION.as_bytes());
    let before = deploy(&mut partition, "before");
    let after = deploy(&mut partition, "after");
    create(&mut partition, "before");
    let (instance, job) = (partition.instance, partition.jobs["work"]);
    fails(&mut partition, 0);
    partition.job(job, JobIntent::UpdateRetries, JobValue { retries: 2, ..JobValue::default() });
    let incident = partition.incidents["work"];
    partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    partition.activate("work", 1);
    partition.job(job, JobIntent::Complete, JobValue::default());
    migrate(&mut partition, instance, after, &[("wait", "wait")]);
    let message = MessageValue {
        name: "m".into(),
        correlation_key: "k".into(),
        tenant_id: TENANT.into(),
        ..MessageValue::default()
    };
    partition.submit(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(message)));
    create(&mut partition, "after");
    partition.activate("work", 1);
    let value = JobValue { error_code: "E".into(), ..JobValue::default() };
    partition.job(partition.jobs["work"], JobIntent::ThrowError, value);
    let incident = partition.incidents["work"];
    partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    let value = ResourceDeletionValue { resource_key: before, tenant_id: TENANT.into() };
    partition.submit(Key::NONE, Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value)));
    partition.check();
    partition
}

#[test]
fn records_tell_of_resolved_jobs_of_deleted_processes_and_whose_a_wait_is() {
    let partition = history(FeatureLevel::NEWEST);
    let records = |is: fn(&Payload) -> bool| partition.records.iter().filter(move |record| is(&record.payload));
    let [before, after] = [0, 1].map(|nth| {
        let created = records(|payload| matches!(payload, Payload::Process(ProcessIntent::Created, _)));
        created.map(|record| record.key).nth(nth).expect("both are deployed")
    });

    let resolved = records(|payload| matches!(payload, Payload::Incident(IncidentIntent::Resolved, _)));
    let numbers: Vec<u64> = resolved.map(|record| record.number).collect();
    for (number, retries) in numbers.into_iter().zip([2, 3]) {
        let follows = partition.records.iter().find(|record| record.number == number + 1).map(|record| &record.payload);
        let tells = matches!(follows, Some(Payload::Job(JobIntent::RecurredAfterBackoff, job))
        if job.retries == retries && job.deadline == -1 && job.recurring_time == -1);
        assert!(tells, "{follows:?}");
    }

    let deleted =
        records(|payload| matches!(payload, Payload::Process(ProcessIntent::Deleting | ProcessIntent::Deleted, _)));
    let keys: Vec<bool> = deleted.map(|record| record.key == before).collect();
    assert_eq!(keys, [true; 2]);

    let mut intents = Vec::new();
    for record in &partition.records {
        let (definition, business_id, is_migrated) = match &record.payload {
            Payload::MessageSubscription(intent, value) => {
                intents.push(intent.name());
                (value.process_definition_key, &value.business_id, &*value.bpmn_process_id == "after")
            }
            Payload::ProcessMessageSubscription(intent, value) => {
                intents.push(intent.name());
                (value.process_definition_key, &value.business_id, &*value.bpmn_process_id == "after")
            }
            Payload::DecisionEvaluation(_, value) => {
                assert_eq!(&*value.business_id, "b-1");
                continue;
            }
            _ => continue,
        };
        let expected = if is_migrated { after } else { before };
        assert_eq!((definition, &**business_id), (expected, "b-1"), "{record:?}");
    }
    intents.sort_unstable();
    let expected =
        ["CORRELATED", "CORRELATED", "CORRELATING", "CREATED", "CREATED", "CREATING", "MIGRATED", "MIGRATED"];
    assert_eq!(intents, expected);
}
