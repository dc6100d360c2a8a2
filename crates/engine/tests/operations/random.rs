//! Random operations on random models: any operation happens completely or not at all, the records alone rebuild the state,
//! every element instance ends once, and in the end nothing is left.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{EngineOptions, Limits};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use protocol::*;

use crate::random_model::{Block, Ends, Handler, Waits, block, called, model};
use crate::support::{self, Partition, TENANT};
use crate::tools::accepted;

/// Numbers choose among what is there; most choices are of what is no more, or cannot be, which is to be refused.
#[derive(Clone, Debug)]
enum Action {
    Create { at: Vec<u8>, until: Option<u8> },
    Complete(u8),
    Fail(u8),
    ThrowError(u8),
    Resolve(u8),
    Cancel(u8),
    Wait(u16),
    Publish(u8),
    Work,
    Modify { instance: u8, activate: Vec<(u8, Option<u8>)>, terminate: Vec<Terminate>, moves: Vec<(u8, u8, u8)> },
    Migrate { instance: u8, left_out: Vec<u8>, to: u8 },
    Delete(u8),
}

#[derive(Clone, Copy, Debug)]
enum Terminate {
    One(u8),
    All(u8),
}

fn action() -> impl Strategy<Value = Action> {
    let several = |max| prop::collection::vec(any::<u8>(), 0..max);
    let terminate = prop_oneof![3 => any::<u8>().prop_map(Terminate::One), 1 => any::<u8>().prop_map(Terminate::All)];
    let modify = (
        any::<u8>(),
        prop::collection::vec((any::<u8>(), prop::option::weighted(0.3, any::<u8>())), 0..3),
        prop::collection::vec(terminate, 0..3),
        prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 0..2),
    );
    prop_oneof![
        3 => Just(Action::Create { at: Vec::new(), until: None }),
        2 => (several(4), prop::option::weighted(0.3, any::<u8>())).prop_map(|(at, until)| Action::Create { at, until }),
        6 => any::<u8>().prop_map(Action::Complete),
        1 => any::<u8>().prop_map(Action::Fail),
        1 => any::<u8>().prop_map(Action::ThrowError),
        1 => any::<u8>().prop_map(Action::Resolve),
        1 => any::<u8>().prop_map(Action::Cancel),
        1 => (0..30_000_u16).prop_map(Action::Wait),
        1 => any::<u8>().prop_map(Action::Publish),
        4 => Just(Action::Work),
        8 => modify.prop_map(|(instance, activate, terminate, moves)| Action::Modify { instance, activate, terminate, moves }),
        4 => (any::<u8>(), several(2), any::<u8>()).prop_map(|(instance, left_out, to)| Action::Migrate { instance, left_out, to }),
        1 => any::<u8>().prop_map(Action::Delete),
    ]
}

/// Two versions of a model, the second with other ids, and what is known about their use.
struct World {
    partition: Partition,
    /// Elements and then sequence flows, in both versions.
    ids: Vec<[String; 2]>,
    /// Whether interrupted work waits until an action lets it continue.
    is_lazy: bool,
    requests: u64,
}

/// What the records tell of.
#[derive(Default)]
struct Seen {
    jobs: Vec<Key>,
    listeners: Vec<Key>,
    incidents: Vec<Key>,
    elements: Vec<Key>,
    instances: Vec<Key>,
    definitions: Vec<Key>,
}

impl World {
    fn new(block: &Block, steps_per_command_max: usize) -> World {
        let limits = Limits { steps_per_command_max, elements_per_operation_max: 40, ..Limits::default() };
        let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
        let first = model(block);
        let parsed = bpmn::parse("random.bpmn", first.as_bytes()).expect("a model");
        let elements = parsed[0].elements.iter().skip(1).map(|element| element.id.to_string());
        let ids: BTreeSet<String> = elements.chain(parsed[0].flows.iter().map(|flow| flow.id.to_string())).collect();
        let ids: Vec<[String; 2]> = ids.into_iter().map(|id| [id.clone(), format!("{id}-two")]).collect();
        let second = renamed(&first, &ids);
        for (name, content) in [("called.bpmn", &called()), ("random.bpmn", &first), ("random.bpmn", &second)] {
            accepted(&partition.deploy(name, content.as_bytes()));
        }
        World { partition, ids, is_lazy: steps_per_command_max < 10, requests: 1_000_000 }
    }

    fn submit(&mut self, key: Key, payload: Payload) {
        if !self.is_lazy {
            self.partition.submit(key, payload);
            return;
        }
        self.requests += 1;
        let request = Some(Request { node: 0, number: self.requests });
        self.partition.apply(vec![Command { request, ..Command::new(key, payload) }]);
    }

    fn seen(&self) -> Seen {
        let mut seen = Seen::default();
        for record in self.partition.records.iter().filter(|record| record.record_type == RecordType::Event) {
            match &record.payload {
                Payload::Job(JobIntent::Created, job) => {
                    seen.jobs.push(record.key);
                    if job.job_kind == JobKind::TaskListener {
                        seen.listeners.push(record.key);
                    }
                }
                Payload::Incident(IncidentIntent::Created, _) => seen.incidents.push(record.key),
                Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value) => {
                    seen.elements.push(record.key);
                    if value.bpmn_element_type == BpmnElementType::Process {
                        seen.instances.push(record.key);
                    }
                }
                Payload::Process(ProcessIntent::Created, _) => seen.definitions.push(record.key),
                _ => {}
            }
        }
        seen
    }

    /// An id of the version that was created last, mostly of an element.
    fn id(&self, number: u8) -> Text {
        let [first, second] = &self.ids[usize::from(number) % self.ids.len()];
        if number.is_multiple_of(4) { first.as_str().into() } else { second.as_str().into() }
    }

    fn act(&mut self, action: &Action) {
        let seen = self.seen();
        match action {
            Action::Create { at, until } => self.create(at, *until),
            Action::Complete(job) => {
                let variables = format!("{{\"choice\":{}}}", job % 4).as_str().into();
                let value = JobValue { variables, ..JobValue::default() };
                self.submit(pick(&seen.jobs, *job), Payload::Job(JobIntent::Complete, Arc::new(value)));
            }
            Action::Fail(job) => {
                self.submit(pick(&seen.jobs, *job), Payload::Job(JobIntent::Fail, Arc::default()));
            }
            Action::ThrowError(job) => {
                let value = JobValue { error_code: "E".into(), ..JobValue::default() };
                self.submit(pick(&seen.jobs, *job), Payload::Job(JobIntent::ThrowError, Arc::new(value)));
            }
            Action::Resolve(incident) => {
                let key = pick(&seen.incidents, *incident);
                self.submit(key, Payload::Incident(IncidentIntent::Resolve, Box::default()));
            }
            Action::Cancel(instance) => {
                let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
                self.submit(pick(&seen.instances, *instance), cancel);
            }
            Action::Wait(milliseconds) => {
                self.partition.advance(i64::from(*milliseconds));
            }
            Action::Publish(number) => self.publish(*number),
            Action::Work => {
                if let Some(command) = self.partition.engine.continuation() {
                    self.partition.apply(vec![command]);
                }
            }
            Action::Modify { instance, activate, terminate, moves } => {
                let key = pick(&seen.instances, *instance);
                self.modify(key, &seen, activate, terminate, moves);
            }
            Action::Migrate { instance, left_out, to } => {
                self.migrate(pick(&seen.instances, *instance), pick(&seen.definitions, *to % 2), left_out);
            }
            Action::Delete(definition) => {
                let value = ResourceDeletionValue {
                    resource_key: pick(&seen.definitions, *definition),
                    tenant_id: TENANT.into(),
                };
                self.submit(Key::NONE, Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value)));
            }
        }
    }

    fn create(&mut self, at: &[u8], until: Option<u8>) {
        let instruction =
            |number: u8| RuntimeInstruction { after_element_id: self.id(number), ..RuntimeInstruction::default() };
        let value = ProcessInstanceCreationValue {
            bpmn_process_id: "random".into(),
            version: -1,
            variables: "{\"choice\":1,\"key\":\"k\",\"items\":[1,2,3]}".into(),
            start_instructions: at.iter().map(|number| self.id(*number)).collect(),
            runtime_instructions: until.map(instruction).into_iter().collect(),
            tenant_id: TENANT.into(),
            ..ProcessInstanceCreationValue::default()
        };
        let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
        self.submit(Key::NONE, payload);
    }

    fn publish(&mut self, number: u8) {
        let value = MessageValue {
            name: "message".into(),
            correlation_key: "k".into(),
            time_to_live: i64::from(number % 2) * 10_000,
            tenant_id: TENANT.into(),
            ..MessageValue::default()
        };
        self.submit(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(value)));
    }

    fn modify(
        &mut self,
        instance: Key,
        seen: &Seen,
        activate: &[(u8, Option<u8>)],
        terminate: &[Terminate],
        moves: &[(u8, u8, u8)],
    ) {
        let activate = activate.iter().map(|(element, ancestor)| ModificationActivateInstruction {
            element_id: self.id(*element),
            ancestor_scope_key: match ancestor {
                None => Key::NONE,
                Some(number) if number % 2 == 0 => instance,
                Some(number) => pick(&seen.elements, *number),
            },
            variable_instructions: vec![
                ModificationVariableInstruction { variables: "{\"choice\":2}".into(), element_id: Text::default() },
                ModificationVariableInstruction { variables: "{\"local\":1}".into(), element_id: self.id(*element) },
            ],
        });
        let terminate = terminate.iter().map(|terminate| match terminate {
            Terminate::One(element) => ModificationTerminateInstruction {
                element_instance_key: pick(&seen.elements, *element),
                ..ModificationTerminateInstruction::default()
            },
            Terminate::All(element) => ModificationTerminateInstruction {
                element_id: self.id(*element),
                ..ModificationTerminateInstruction::default()
            },
        });
        let moves = moves.iter().map(|(source, target, how)| {
            let by_key = how % 2 == 0;
            ModificationMoveInstruction {
                source_element_id: if by_key { Text::default() } else { self.id(*source) },
                source_element_instance_key: if by_key { pick(&seen.elements, *source) } else { Key::NONE },
                target_element_id: self.id(*target),
                infer_ancestor_scope: how % 3 == 1,
                use_source_parent_as_ancestor: how % 3 == 2,
                ..ModificationMoveInstruction::default()
            }
        });
        let value = ProcessInstanceModificationValue {
            process_instance_key: instance,
            activate_instructions: activate.collect(),
            terminate_instructions: terminate.collect(),
            move_instructions: moves.collect(),
            ..ProcessInstanceModificationValue::default()
        };
        let intent = ProcessInstanceModificationIntent::Modify;
        self.submit(Key::NONE, Payload::ProcessInstanceModification(intent, Box::new(value)));
    }

    /// From one version to the other, whichever the instance has; what is not there refuses the plan.
    fn migrate(&mut self, instance: Key, target: Key, left_out: &[u8]) {
        for direction in [[0, 1], [1, 0]] {
            let is_left_out =
                |index: usize| left_out.iter().any(|number| usize::from(*number) % self.ids.len() == index);
            let pairs = self.ids.iter().enumerate().filter(|(index, _)| !is_left_out(*index));
            let instructions = pairs.map(|(_, pair)| MigrationMappingInstruction {
                source_element_id: pair[direction[0]].as_str().into(),
                target_element_id: pair[direction[1]].as_str().into(),
            });
            let value = ProcessInstanceMigrationValue {
                process_instance_key: instance,
                target_process_definition_key: target,
                mapping_instructions: instructions.collect(),
                tenant_id: TENANT.into(),
            };
            let intent = ProcessInstanceMigrationIntent::Migrate;
            self.submit(Key::NONE, Payload::ProcessInstanceMigration(intent, Box::new(value)));
        }
    }

    /// Lets everything continue for a while, and cancels the rest.
    fn drain(&mut self) {
        self.is_lazy = false;
        while let Some(command) = self.partition.engine.continuation() {
            self.partition.apply(vec![command]);
        }
        for _ in 0..4 {
            let seen = self.seen();
            for incident in seen.incidents {
                self.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
            }
            self.publish(0);
            self.partition.advance(30_000);
            for job in seen.jobs {
                self.submit(job, Payload::Job(JobIntent::Complete, Arc::default()));
            }
        }
        for instance in self.seen().instances {
            self.submit(instance, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default()));
        }
        self.end_listeners();
        self.partition.advance(600_000);
    }

    /// What is cancelled waits for the listeners of its user tasks.
    fn end_listeners(&mut self) {
        let events = |world: &World| {
            world.partition.records.iter().filter(|record| record.record_type == RecordType::Event).count()
        };
        for _ in 0..100 {
            let before = events(self);
            let seen = self.seen();
            for job in &seen.listeners {
                let value = JobValue { retries: 1, ..JobValue::default() };
                self.submit(*job, Payload::Job(JobIntent::UpdateRetries, Arc::new(value)));
            }
            for incident in seen.incidents {
                self.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
            }
            for job in seen.listeners {
                self.submit(job, Payload::Job(JobIntent::Complete, Arc::default()));
            }
            if events(self) == before {
                return;
            }
        }
        panic!("listeners come without end");
    }

    fn check_accounting(&self) {
        let (mut begun, mut ended, mut keys) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for record in self.partition.records.iter().filter(|record| record.record_type == RecordType::Event) {
            match &record.payload {
                Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, _) => {
                    assert!(begun.insert(record.key), "an element instance begins once");
                    assert!(keys.insert(record.key), "keys are unique");
                }
                Payload::ProcessInstance(
                    ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated,
                    _,
                ) => assert!(ended.insert(record.key), "an element instance ends once"),
                Payload::Job(JobIntent::Created, _)
                | Payload::Incident(IncidentIntent::Created, _)
                | Payload::Variable(VariableIntent::Created, _) => {
                    assert!(keys.insert(record.key), "keys are unique");
                }
                Payload::Error(_, error) => panic!("an instance was banned: {}", error.exception_message),
                _ => {}
            }
        }
        assert_eq!(begun, ended, "every element instance ends");
    }

    fn check_nothing_is_left(&self) {
        const STAYS: &[&str] = &[
            "Counters",
            "processes",
            "latest_processes",
            "process_versions",
            "processes_by_deployment",
            "deleted_versions",
        ];
        let mut dump = Vec::new();
        self.partition.engine.dump(&mut dump).expect("readable");
        let dump = String::from_utf8_lossy(&dump);
        let left: Vec<_> = dump
            .lines()
            .filter(|line| !STAYS.contains(&line.split(' ').next().unwrap_or("")))
            .map(|line| &line[..line.len().min(120)])
            .collect();
        assert!(left.is_empty(), "ended instances leave nothing: {left:#?}");
    }
}

/// The model with the second id of each pair in place of the first: where an element has it, and wherever it is referred to.
fn renamed(model: &str, ids: &[[String; 2]]) -> String {
    const ATTRIBUTES: [&str; 5] = ["id", "sourceRef", "targetRef", "default", "attachedToRef"];
    const ELEMENTS: [&str; 2] = ["bpmn:incoming", "bpmn:outgoing"];
    ids.iter().fold(model.to_owned(), |model, [first, second]| {
        let model = ATTRIBUTES.iter().fold(model, |model, name| {
            model.replace(&format!(" {name}=\"{first}\""), &format!(" {name}=\"{second}\""))
        });
        ELEMENTS
            .iter()
            .fold(model, |model, name| model.replace(&format!("<{name}>{first}</"), &format!("<{name}>{second}</")))
    })
}

fn pick(keys: &[Key], number: u8) -> Key {
    // Mostly something recent, which is likely to live.
    keys.iter().rev().nth(usize::from(number) % keys.len().clamp(1, 8)).copied().unwrap_or(Key::new(PartitionId(1), 7))
}

fn run(block: &Block, actions: &[Action], steps_per_command_max: usize) -> Vec<Record> {
    let mut world = World::new(block, steps_per_command_max);
    for action in actions {
        world.act(action);
    }
    world.partition.check();
    world.drain();
    world.partition.check();
    world.check_accounting();
    assert_eq!(world.partition.engine.statistics().incidents, 0, "nothing is left to resolve");
    world.check_nothing_is_left();
    world.partition.records
}

/// The random operations are worth something only if many of them can be done.
#[test]
fn random_operations_happen() {
    let mut runner = TestRunner::deterministic();
    let strategy = (block(false), prop::collection::vec(action(), 10..40));
    let mut seen = BTreeSet::new();
    for case in 0..3_000 {
        let (block, actions) = strategy.new_tree(&mut runner).expect("a case").current();
        for record in run(&block, &actions, if case % 2 == 0 { 1_000 } else { 3 }) {
            if let RecordType::Rejection(rejection) = &record.record_type {
                if let Some(cause) = cause_of(&rejection.reason) {
                    seen.insert(format!("{} {cause}", record.payload.value_type().name()));
                }
                continue;
            }
            let what = match &record.payload {
                Payload::ProcessInstance(_, value) => value.bpmn_element_type.name(),
                payload => payload.value_type().name(),
            };
            seen.insert(format!("{what} {}", record.payload.intent_name()));
        }
    }
    let expected = [
        "PROCESS_INSTANCE_MODIFICATION MODIFIED",
        "PROCESS_INSTANCE_MODIFICATION more than one active instance",
        "PROCESS_INSTANCE_MODIFICATION being terminated",
        "PROCESS_INSTANCE_MODIFICATION call activity",
        "PROCESS_INSTANCE_MIGRATION MIGRATED",
        "PROCESS_INSTANCE_MIGRATION no mapping instruction",
        "PROCESS_INSTANCE_MIGRATION concurrent command",
        "RUNTIME_INSTRUCTION INTERRUPTED",
        "RESOURCE_DELETION DELETED",
        "RESOURCE_DELETION still running instances",
        "MULTI_INSTANCE_BODY ELEMENT_MIGRATED",
        "CALL_ACTIVITY ELEMENT_MIGRATED",
        "EVENT_SUB_PROCESS ELEMENT_MIGRATED",
        "SEQUENCE_FLOW SEQUENCE_FLOW_DELETED",
        "TIMER MIGRATED",
        "JOB MIGRATED",
        "INCIDENT MIGRATED",
        "MESSAGE_SUBSCRIPTION MIGRATED",
        "PROCESS_MESSAGE_SUBSCRIPTION MIGRATED",
    ];
    let missing: Vec<_> = expected.into_iter().filter(|expected| !seen.contains(*expected)).collect();
    assert!(missing.is_empty(), "no history has any of {missing:?}");
}

/// The causes of refusals that histories should meet.
fn cause_of(reason: &str) -> Option<&'static str> {
    let causes = [
        "more than one active instance",
        "being terminated",
        "call activity",
        "no mapping instruction",
        "concurrent command",
        "sequence flow taken",
        "still running instances",
    ];
    causes.into_iter().find(|cause| reason.contains(cause))
}

/// `PROPTEST_CASES` runs more than the usual ones.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_operations_on_any_model(block in block(false), actions in prop::collection::vec(action(), 1..40)) {
        run(&block, &actions, Limits::default().steps_per_command_max);
    }

    /// Operations come between the slices of work.
    #[test]
    fn operations_between_slices_of_work(block in block(false), actions in prop::collection::vec(action(), 1..40)) {
        run(&block, &actions, 2);
    }
}

/// The scope is opened again by a modification when an event sub-process has interrupted it, but what its tokens were to
/// begin waits in the queue.
#[test]
fn a_modification_between_an_interruption_and_the_work_it_overtook() {
    let handler = Handler { event: Waits::Timer, is_interrupting: true, then: Box::new(Block::Task), inside: None };
    let block = Block::SubProcess { inside: Box::new(Block::Task), ends: Ends::Plainly, handler: Some(handler) };
    let create = || Action::Create { at: Vec::new(), until: None };
    let modify = Action::Modify { instance: 23, activate: vec![(30, None)], terminate: Vec::new(), moves: Vec::new() };
    let actions = [
        Action::Create { at: vec![243, 93], until: None },
        Action::Work,
        Action::Complete(0),
        create(),
        Action::Work,
        Action::Work,
        create(),
        create(),
        create(),
        Action::Work,
        Action::Wait(20_000),
        modify,
    ];
    run(&block, &actions, 2);
}
