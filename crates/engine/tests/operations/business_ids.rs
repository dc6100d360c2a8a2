//! Business ids: who has which, and that no two instances of a process have the same when that is wanted.

use model_builder::ProcessBuilder;
use protocol::*;

use crate::support::{Partition, TENANT};
use crate::tools::*;

fn order() -> ProcessBuilder {
    ProcessBuilder::new("order").start("start").service_task("work", "work").call_activity("call", "called").end("end")
}

fn called() -> ProcessBuilder {
    ProcessBuilder::new("called").start("start").service_task("inner", "work").end("end")
}

fn named(id: &str, business_id: &str) -> ProcessInstanceCreationValue {
    ProcessInstanceCreationValue { business_id: business_id.into(), ..creation(id) }
}

fn instance_of(output: &engine::Output) -> Key {
    match &accepted(output).payload {
        Payload::ProcessInstanceCreation(_, creation) => creation.process_instance_key,
        payload => panic!("a creation, not {payload:?}"),
    }
}

fn unique(partition: &mut Partition, are_unique: bool) {
    let settings = SettingsValue { business_ids_are_unique: Some(are_unique), ..SettingsValue::default() };
    accepted(&partition.submit(Key::NONE, Payload::Settings(SettingsIntent::Change, settings)));
    assert_eq!(partition.engine.settings_command(settings), None, "it is so now");
}

fn cancel(partition: &mut Partition, instance: Key) {
    let value = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
    accepted(&partition.submit(instance, value));
}

const ALREADY: &str = "but an instance with this business id already exists for process definition 'order'";

#[test]
fn all_of_an_instance_and_what_it_calls_have_its_business_id() {
    let mut partition = partition(&[order(), called()]);
    let value = ProcessInstanceCreationValue { fetch_variables: Vec::new(), ..named("order", "b-1") };
    let intent = ProcessInstanceCreationIntent::CreateWithAwaitingResult;
    partition.submit(Key::NONE, Payload::ProcessInstanceCreation(intent, Box::new(value)));
    complete(&mut partition, "work");
    let output = complete(&mut partition, "inner");
    let (mut elements, mut jobs) = (0, 0);
    for record in &partition.records {
        match &record.payload {
            Payload::ProcessInstance(_, value) => {
                assert_eq!(&*value.business_id, "b-1", "{record:?}");
                elements += 1;
            }
            Payload::Job(JobIntent::Created, value) => {
                assert_eq!(&*value.business_id, "b-1", "{record:?}");
                jobs += 1;
            }
            _ => {}
        }
    }
    assert!(elements > 20 && jobs == 2, "{elements} and {jobs} were looked at");
    let result = output.replies.iter().find_map(|reply| match &reply.payload {
        Payload::ProcessInstanceResult(_, result) => Some(result.business_id.to_string()),
        _ => None,
    });
    assert_eq!(result.as_deref(), Some("b-1"), "who waits for the end is told");
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn a_business_id_has_at_most_256_characters() {
    let mut partition = partition(&[called()]);
    instance_of(&create(&mut partition, named("called", &"ß".repeat(256))));
    let output = create(&mut partition, named("called", &"b".repeat(257)));
    refused(&output, RejectionType::InvalidArgument, &["exceeds the max length of 256: it has 257 characters"]);
    partition.check();
}

#[test]
fn several_instances_have_the_same_unless_that_is_refused() {
    let mut partition = partition(&[order(), called()]);
    let first = instance_of(&create(&mut partition, named("order", "b-1")));
    let second = instance_of(&create(&mut partition, named("order", "b-1")));
    unique(&mut partition, true);
    // What was there before counts.
    refused(&create(&mut partition, named("order", "b-1")), RejectionType::AlreadyExists, &["'b-1'", ALREADY]);
    let third = instance_of(&create(&mut partition, named("order", "b-2")));
    instance_of(&create(&mut partition, named("called", "b-1")));
    for _ in 0..2 {
        instance_of(&create(&mut partition, creation("order")));
    }
    cancel(&mut partition, first);
    refused(&create(&mut partition, named("order", "b-1")), RejectionType::AlreadyExists, &[&second.to_string()]);
    cancel(&mut partition, second);
    let fourth = instance_of(&create(&mut partition, named("order", "b-1")));
    unique(&mut partition, false);
    instance_of(&create(&mut partition, named("order", "b-1")));
    cancel(&mut partition, third);
    cancel(&mut partition, fourth);
    partition.check();
}

#[test]
fn called_instances_do_not_count() {
    let mut partition = partition(&[order(), called()]);
    unique(&mut partition, true);
    create(&mut partition, named("order", "b-1"));
    complete(&mut partition, "work");
    assert_eq!(living(&partition).len(), 4, "it has called the other process");
    instance_of(&create(&mut partition, named("called", "b-1")));
    partition.check();
}

#[test]
fn a_migrated_instance_takes_its_business_id_along() {
    let other = ProcessBuilder::new("other").start("start").service_task("inner", "work").end("end");
    let mut partition = partition(&[called()]);
    unique(&mut partition, true);
    let instance = instance_of(&create(&mut partition, named("called", "b-1")));
    let target = deploy(&mut partition, &other);
    let value = ProcessInstanceMigrationValue {
        process_instance_key: instance,
        target_process_definition_key: target,
        mapping_instructions: vec![MigrationMappingInstruction {
            source_element_id: "inner".into(),
            target_element_id: "inner".into(),
        }],
        tenant_id: TENANT.into(),
    };
    let payload = Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value));
    accepted(&partition.submit(instance, payload));
    let output = create(&mut partition, named("other", "b-1"));
    refused(&output, RejectionType::AlreadyExists, &["for process definition 'other'"]);
    instance_of(&create(&mut partition, named("called", "b-1")));
    complete(&mut partition, "inner");
    partition.check();
}
