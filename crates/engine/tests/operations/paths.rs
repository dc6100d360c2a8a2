//! Where an element instance is: its beginning and its incidents say it, as records of the reference do.

use model_builder::ProcessBuilder;
use protocol::*;

use crate::support::Partition;
use crate::tools::{deploy, start};

/// Ids of the elements on the way, definitions, and places of call activities; the process itself for the first of each list.
fn described(partition: &Partition, path: &ElementPath) -> (Vec<Vec<String>>, Vec<Key>, Vec<u32>) {
    let name = |key: &Key| {
        let activating = partition.records.iter().find_map(|record| match &record.payload {
            Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value) if record.key == *key => {
                Some(value.element_id.to_string())
            }
            _ => None,
        });
        activating.expect("it began")
    };
    let instances = path.element_instance_path.iter().map(|keys| keys.iter().map(name).collect()).collect();
    (instances, path.process_definition_path.clone(), path.calling_element_path.clone())
}

#[test]
fn paths_lead_through_scopes_and_calls() {
    let mut partition = Partition::new();
    let task = |builder: ProcessBuilder| builder.service_task("task", "= 1 + null").end("e");
    let child = deploy(&mut partition, &task(ProcessBuilder::new("child").start("s")));
    let parent = ProcessBuilder::new("parent")
        .start("s")
        .sub_process("scope")
        .start("t")
        .call_activity("zeta", "child")
        .end("u")
        .end_sub_process()
        .call_activity("alpha", "child")
        .end("e");
    let parent = deploy(&mut partition, &parent);
    start(&mut partition, "parent", "");
    let path_of = |wanted: &dyn Fn(&Payload) -> bool| {
        let record = partition.records.iter().find(|record| wanted(&record.payload)).expect("it happened");
        record.path.as_deref().map(|path| described(&partition, path))
    };
    let begins = |id: &'static str| move |payload: &Payload| matches!(payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value) if value.element_id == *id);
    let lists =
        |lists: &[&[&str]]| lists.iter().map(|ids| ids.iter().map(|id| (*id).to_owned()).collect()).collect::<Vec<_>>();
    // What is directly in a root process follows from the record.
    assert_eq!(path_of(&begins("parent")), None);
    assert_eq!(path_of(&begins("scope")), None);
    assert_eq!(path_of(&begins("zeta")), Some((lists(&[&["parent", "scope", "zeta"]]), vec![parent], vec![])));
    let before: &[&str] = &["parent", "scope", "zeta"];
    // Of "alpha" and "zeta", the latter is the second.
    let called = |ids: &[&str]| Some((lists(&[before, ids]), vec![parent, child], vec![1]));
    assert_eq!(path_of(&begins("child")), called(&["child"]));
    assert_eq!(path_of(&begins("task")), called(&["child", "task"]));
    let incident = |payload: &Payload| matches!(payload, Payload::Incident(IncidentIntent::Created, _));
    assert_eq!(path_of(&incident), called(&["child", "task"]));
    let activated = |payload: &Payload| matches!(payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivated, value) if value.element_id == *"zeta");
    assert_eq!(path_of(&activated), None, "the reference says it once");
}

#[test]
fn the_end_of_an_incident_says_where_it_was_although_its_element_ended_before() {
    let mut partition = Partition::new();
    let child = ProcessBuilder::new("child").start("s").sub_process("scope").start("t");
    let child = child.signal_throw("throw", "=missing").end("u").end_sub_process().end("e");
    deploy(&mut partition, &child);
    deploy(&mut partition, &ProcessBuilder::new("parent").start("s").call_activity("call", "child").end("e"));
    let instance = start(&mut partition, "parent", "");
    let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, ProcessInstanceValue::default().into());
    partition.submit(instance, cancel);
    let place = |intent: IncidentIntent| {
        let is_meant = |record: &&Record| matches!(&record.payload, Payload::Incident(of, _) if *of == intent);
        partition.records.iter().find(is_meant).expect("it happened")
    };
    let (created, resolved) = (place(IncidentIntent::Created), place(IncidentIntent::Resolved));
    let path = created.path.as_deref().map(|path| described(&partition, path).0);
    let names = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(path, Some(vec![names(&["parent", "call"]), names(&["child", "scope", "throw"])]));
    assert_eq!(resolved.path, created.path);
    let ended = |payload: &Payload| matches!(payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementTerminated, value) if value.element_id == *"throw");
    let end = partition.records.iter().find(|record| ended(&record.payload)).expect("it ended");
    assert!(end.number < resolved.number, "in the order of the reference");
}
