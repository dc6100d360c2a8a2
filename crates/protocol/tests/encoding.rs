//! What is written today must be read tomorrow, and nonsense must be refused.

use std::sync::Arc;

use protocol::*;

fn command(key: i64) -> Command {
    let value = JobValue { variables: "{\"a\":1}".into(), ..JobValue::default() };
    Command {
        request: Some(Request { node: 1, number: 9 }),
        operation_reference: Some(u64::MAX),
        ..Command::new(Key::from_raw(key), Payload::Job(JobIntent::Complete, Arc::new(value)))
    }
}

fn batch() -> (CommandBatch, Vec<u8>) {
    let batch = CommandBatch { timestamp: 1_700_000_000_000, commands: vec![command(7), command(Key::NONE.raw())] };
    let encoded: Vec<Vec<u8>> = batch.commands.iter().map(encode_to_vec).collect();
    let bytes = encode_batch(batch.timestamp, encoded.iter().map(Vec::as_slice));
    (batch, bytes)
}

#[test]
fn a_batch_reads_back() {
    let (batch, bytes) = batch();
    assert_eq!(decode_batch(&bytes).expect("readable"), batch);
}

#[test]
fn who_sent_a_command_reads_back_and_nobody_takes_no_byte() {
    let identity = Identity::new("demo", Some([7; 32])).expect("short");
    let without_claims = Identity::new("", None).expect("short");
    let longest = Identity::new("x".repeat(ACTOR_ID_BYTES_MAX), None).expect("just short enough");
    let actors = [Actor::System, Actor::User(identity), Actor::Client(without_claims), Actor::Client(longest)];
    for actor in actors {
        let sent = Command { actor, batch_operation_reference: Some(Key::from_raw(5)), ..command(7) };
        assert_eq!(decode::<Command>(&encode_to_vec(&sent)).expect("readable"), sent);
        let Command { actor, payload, .. } = sent;
        let record = Record { actor, ..Record::event(1, 2, Key::NONE, payload) };
        assert_eq!(decode::<Record>(&encode_to_vec(&record)).expect("readable"), record);
    }
    assert!(Identity::new("x".repeat(ACTOR_ID_BYTES_MAX + 1), None).is_err());
    let anonymous = encode_to_vec(&command(7));
    assert_eq!(anonymous[0], 0x84, "a command of nobody has four fields: {anonymous:x?}");
    let record = encode_to_vec(&Record::event(1, 2, Key::NONE, command(7).payload));
    assert_eq!(record[0], 0x88, "a record of nobody has eight fields: {record:x?}");
}

/// What a later version wrote must not be read as absent.
#[test]
fn an_actor_of_an_unknown_kind_is_an_error() {
    let mut bytes = encode_to_vec(&Command { actor: Actor::System, ..command(7) });
    assert_eq!(bytes.pop(), Some(1), "the kind comes last");
    bytes.push(9);
    let error = decode::<Command>(&bytes).expect_err("unknown").to_string();
    assert!(error.contains("an actor of kind 9 is not known"), "{error}");
}

#[test]
fn a_batch_that_is_cut_or_longer_is_refused() {
    let (_, bytes) = batch();
    for length in 0..bytes.len() {
        assert!(decode_batch(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(decode_batch(&longer).expect_err("too long").to_string().contains("1 bytes follow its end"));
}

#[test]
fn another_format_is_refused_by_name() {
    let (_, mut bytes) = batch();
    // A newer format that older programs may read.
    bytes[0] = 9;
    decode_batch(&bytes).expect("its reader may be as old as this one");
    bytes[1] = 8;
    let error = decode_batch(&bytes).expect_err("unknown format").to_string();
    assert!(
        error.contains("its format is 9, for programs that know 8 or a later one, and this version reads 1"),
        "{error}"
    );
}

#[test]
fn a_count_that_cannot_be_reserves_no_memory() {
    let (_, mut bytes) = batch();
    bytes[10..14].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(decode_batch(&bytes).is_err());
}

/// The number of a payload in the encoding is the code of its value type in the record schema.
#[test]
fn payloads_are_numbered_like_their_value_types() {
    let payloads = [
        Payload::Job(JobIntent::Created, Arc::default()),
        Payload::Deployment(DeploymentIntent::Create, Box::default()),
        Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default()),
        Payload::Incident(IncidentIntent::Resolve, Box::default()),
        Payload::JobBatch(JobBatchIntent::Activate, Box::default()),
        Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::default()),
        Payload::JobStream(JobStreamIntent::Add, Box::default()),
        Payload::Message(MessageIntent::Publish, Box::default()),
        Payload::MessageSubscription(MessageSubscriptionIntent::Create, Box::default()),
        Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Create, Box::default()),
        Payload::Timer(TimerIntent::Trigger, Box::default()),
        Payload::MessageStartEventSubscription(MessageStartEventSubscriptionIntent::Created, Box::default()),
        Payload::ProcessEvent(ProcessEventIntent::Triggering, Box::default()),
        Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, Box::default()),
        Payload::Escalation(EscalationIntent::Escalated, Box::default()),
        Payload::SignalSubscription(SignalSubscriptionIntent::Created, Box::default()),
        Payload::Signal(SignalIntent::Broadcast, Box::default()),
        Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::default()),
        Payload::MessageBatch(MessageBatchIntent::Expire, Box::default()),
        Payload::UserTask(UserTaskIntent::Claim, Box::default()),
        Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::default()),
        Payload::RuntimeInstruction(RuntimeInstructionIntent::Interrupted, Box::default()),
        Payload::CompensationSubscription(CompensationSubscriptionIntent::Created, Box::default()),
        Payload::GlobalListener(GlobalListenerIntent::Create, Box::default()),
        Payload::ConditionalSubscription(ConditionalSubscriptionIntent::Created, Box::default()),
        Payload::ConditionalEvaluation(ConditionalEvaluationIntent::Evaluate, Box::default()),
    ];
    for payload in payloads {
        let bytes = encode_to_vec(&payload);
        let mut decoder = minicbor::Decoder::new(&bytes);
        decoder.array().expect("a variant is an array");
        assert_eq!(decoder.u8().expect("its number"), payload.value_type() as u8, "{payload:?}");
        assert_eq!(decode::<Payload>(&bytes).expect("readable"), payload);
    }
}

/// The layout of what is in logs and files must not change: these bytes were written by the first version.
#[test]
fn stored_bytes_stay_readable() {
    let value = VariableValue {
        name: "a".into(),
        value: "1".into(),
        scope_key: Key::new(PartitionId(1), 1),
        process_instance_key: Key::new(PartitionId(1), 2),
        process_definition_key: Key::NONE,
        bpmn_process_id: "p".into(),
        tenant_id: DEFAULT_TENANT.into(),
    };
    let payload = Payload::Variable(VariableIntent::Created, Box::new(value));
    let stored = "8211820087616161311b00080000000000011b0008000000000002206170693c64656661756c743e";
    let hexadecimal: String = encode_to_vec(&payload).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hexadecimal, stored);
}

#[test]
fn instructions_are_exported_as_objects() {
    let value = ProcessInstanceCreationValue {
        start_instructions: vec!["a".into(), "b".into()],
        runtime_instructions: vec![RuntimeInstruction {
            after_element_id: "c".into(),
            ..RuntimeInstruction::default()
        }],
        ..ProcessInstanceCreationValue::default()
    };
    let json = serde_json::to_string(&value).expect("valid");
    for part in [
        r#""startInstructions":[{"elementId":"a"},{"elementId":"b"}]"#,
        r#""runtimeInstructions":[{"type":"TERMINATE_PROCESS_INSTANCE","afterElementId":"c"}]"#,
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
}

#[test]
fn events_of_elements_are_read_without_the_rest() {
    let value = ProcessInstanceValue {
        bpmn_process_id: "order".into(),
        version: 300,
        process_definition_key: Key::new(PartitionId(1), 3),
        process_instance_key: Key::new(PartitionId(2), 5),
        element_id: "wäge".into(),
        flow_scope_key: Key::NONE,
        bpmn_element_type: BpmnElementType::AdHocSubProcessInnerInstance,
        tags: vec!["a".into()],
        business_id: "4711".into(),
        ..ProcessInstanceValue::default()
    };
    let payload = Payload::ProcessInstance(ProcessInstanceIntent::ElementMigrated, Arc::new(value));
    let event = Record {
        operation_reference: Some(u64::MAX),
        path: Some(Box::default()),
        ..Record::event(1 << 40, -1, Key::new(PartitionId(2), 9), payload)
    };
    let encoded = encode_to_vec(&event);
    let read = ElementEvent::peek(&encoded).expect("it is one");
    assert_eq!((Some(read), read.element_id), (ElementEvent::of(&event), "wäge"));
    let subject = Record::peek_subject(&encoded).expect("a record");
    for length in 0..encoded.len() {
        let read = ElementEvent::peek(&encoded[..length]);
        assert!(read.is_none() || read == ElementEvent::of(&event), "{length} bytes");
        let read = Record::peek_subject(&encoded[..length]);
        assert!(read.is_err() || read.is_ok_and(|read| read == subject), "{length} bytes");
    }
    let job = Record::event(2, 1, Key::NONE, Payload::Job(JobIntent::Created, Arc::default()));
    let refused = Record { record_type: RecordType::Rejection(Rejection::not_found("It is gone")), ..event };
    for other in [job, refused] {
        assert_eq!((ElementEvent::peek(&encode_to_vec(&other)), ElementEvent::of(&other)), (None, None));
    }
}

/// Records of the kinds that are most, with everything that they can have, and with as little as possible.
fn usual_records() -> Vec<Record> {
    let key = |counter| Key::new(PartitionId(3), counter);
    let job = JobValue {
        job_type: "pay".into(),
        custom_headers: "{\"a\":\"wäge\"}".into(),
        worker: "one".into(),
        retries: -3,
        retry_backoff: 1 << 40,
        recurring_time: -1,
        deadline: 1_700_000_000_000,
        error_message: "It broke. ".repeat(4).into(),
        error_code: "E1".into(),
        element_id: "task".into(),
        element_instance_key: key(4),
        job_kind: JobKind::TaskListener,
        changed_attributes: vec!["assignee".into(), "dueDate".into()],
        tags: vec!["a".into()],
        process_instance_key: key(2),
        variables: "{\"n\":1}".into(),
        result: Some(Box::new(JobResult { denied: true, denied_reason: "No".into(), ..JobResult::default() })),
        job_listener_event_type: JobListenerEventType::Completing,
        business_id: "4711".into(),
        ..JobValue::default()
    };
    let named = JobValue { result: None, job_listener_event_type: JobListenerEventType::Unspecified, ..job.clone() };
    let batch = JobBatchValue {
        worker: "one".into(),
        job_keys: vec![key(7), key(8)],
        jobs: vec![job.clone(), named.clone()],
        truncated: true,
        tenant_ids: vec![DEFAULT_TENANT.into()],
        owner: Some(JobOwner::Stream(StreamId { node: 3, number: 1 << 41 }, 9)),
        ..JobBatchValue::default()
    };
    let variable = VariableValue {
        name: "amount".into(),
        value: "12.50".into(),
        scope_key: key(4),
        process_instance_key: key(2),
        process_definition_key: Key::NONE,
        bpmn_process_id: "order".into(),
        tenant_id: DEFAULT_TENANT.into(),
    };
    let payloads = [
        Payload::Job(JobIntent::Created, Arc::default()),
        Payload::Job(JobIntent::Completed, Arc::new(job)),
        Payload::Job(JobIntent::Failed, Arc::new(named)),
        Payload::JobBatch(JobBatchIntent::Activated, Box::default()),
        Payload::JobBatch(JobBatchIntent::Activated, Box::new(batch)),
        Payload::Variable(VariableIntent::Updated, Box::new(variable)),
        Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, Arc::default()),
    ];
    let identity = Identity::new("demo", Some([7; 32])).expect("short");
    let path = ElementPath { element_instance_path: vec![vec![key(2), key(4)]], ..ElementPath::default() };
    let mut records = Vec::new();
    for payload in payloads {
        let bare = Record::event(1 << 33, 1_700_000_000_000, key(9), payload);
        let sent = Record { actor: Actor::User(identity.clone()), operation_reference: Some(u64::MAX), ..bare.clone() };
        let batch = Record { batch_operation_reference: Some(key(1)), ..bare.clone() };
        let within = Record { path: Some(Box::new(path.clone())), ..bare.clone() };
        let refused = Record { record_type: RecordType::Rejection(Rejection::not_found("It is gone")), ..bare.clone() };
        records.extend([bare, sent, batch, within, refused]);
    }
    records
}

#[test]
fn records_are_read_as_they_are_decoded() {
    for record in usual_records() {
        let encoded = encode_to_vec(&record);
        assert_eq!(Record::read(&encoded).expect("a record"), record);
        for length in 0..encoded.len() {
            assert!(Record::read(&encoded[..length]).is_err(), "{length} bytes of {record:?}");
        }
        // Whatever else stands somewhere, both make the same of it.
        let mut changed = encoded.clone();
        for at in 0..encoded.len() {
            for byte in [0, 0x18, 0x1B, 0x20, 0x61, 0x80, 0x82, 0x98, 0x9F, 0xF5, 0xF6] {
                changed[at] = byte;
                assert_eq!(Record::read(&changed).ok(), decode(&changed).ok(), "byte {at} is {byte:x} in {record:?}");
            }
            changed[at] = encoded[at];
        }
    }
}

/// An encoded value with one more field than is known today.
fn with_a_later_field(encoded: &[u8]) -> Vec<u8> {
    let later = encode_to_vec(&["later"]);
    match encoded {
        [0x98, count, fields @ ..] => [&[0x98, count + 1], fields, &later].concat(),
        [0x97, fields @ ..] => [&[0x98, 0x18], fields, &later].concat(),
        [count, fields @ ..] => [&[count + 1], fields, &later].concat(),
        [] => panic!("there is nothing"),
    }
}

#[test]
fn fields_of_later_versions_are_passed() {
    for record in usual_records() {
        let encoded = encode_to_vec(&record);
        let value = match &record.payload {
            Payload::Job(_, value) if !value.business_id.is_empty() => encode_to_vec(&**value),
            Payload::JobBatch(_, value) if value.owner.is_some() => encode_to_vec(&**value),
            Payload::Variable(_, value) => encode_to_vec(&**value),
            _ => continue,
        };
        let at = encoded.windows(value.len()).position(|window| window == value).expect("it is there");
        let mut later = [&encoded[..at], &with_a_later_field(&value), &encoded[at + value.len()..]].concat();
        assert_eq!(Record::read(&later).expect("a record"), record);
        if record.path.is_some() {
            later = with_a_later_field(&later);
            assert_eq!(Record::read(&later).expect("a record"), record);
        }
        assert_eq!(decode::<Record>(&later).expect("a record"), record);
    }
}

#[test]
fn records_look_as_exporters_of_zeebe_write_them() {
    let value = JobValue {
        job_type: "work".into(),
        custom_headers: "{\"k\":\"v\"}".into(),
        variables: "{\"n\":1.50}".into(),
        deadline: -1,
        tenant_id: DEFAULT_TENANT.into(),
        ..JobValue::default()
    };
    let payload = Payload::Job(JobIntent::Complete, Arc::new(value));
    let record = Record {
        number: 7,
        source_position: 11,
        record_type: RecordType::Rejection(Rejection::not_found("Expected to complete job, but it is gone")),
        batch_operation_reference: Some(Key::new(PartitionId(1), 3)),
        ..Record::event(12, 1_700_000_000_000, Key::new(PartitionId(2), 5), payload)
    };
    assert_eq!(Record::peek(&encode_to_vec(&record)).expect("a record"), [12, 7, record.source_position]);
    let job = ValueType::Job as u32;
    let subject = Subject { timestamp: 1_700_000_000_000, is_event: false, value_type: job, intent: 1 };
    assert_eq!(Record::peek_subject(&encode_to_vec(&record)).expect("a record"), subject);
    let flow = Payload::ProcessInstance(ProcessInstanceIntent::SequenceFlowDeleted, Arc::default());
    let event = Record { operation_reference: Some(u64::MAX), ..Record::event(12, -1, Key::NONE, flow) };
    let process_instance = ValueType::ProcessInstance as u32;
    let subject = Subject { timestamp: -1, is_event: true, value_type: process_instance, intent: 15 };
    assert_eq!(Record::peek_subject(&encode_to_vec(&event)).expect("a record"), subject);
    assert!(Record::peek_subject(&encode_to_vec(&event)[..9]).is_err(), "it ends too early");
    let source = RecordSource { incarnation: 3, broker_version: "8.8.1".into(), ..RecordSource::new(PartitionId(2)) };
    let json = record.to_json(&source).expect("valid");
    for part in [
        "\"position\":12,\"sourceRecordPosition\":11,\"key\":4503599627370501,\"timestamp\":1700000000000",
        "\"partitionId\":2,\"recordType\":\"COMMAND_REJECTION\",\"valueType\":\"JOB\",\"intent\":\"COMPLETE\"",
        "\"rejectionType\":\"NOT_FOUND\",\"rejectionReason\":\"Expected to complete job, but it is gone\"",
        "\"operationReference\":-1,\"batchOperationReference\":2251799813685251",
        "\"brokerVersion\":\"8.8.1\",\"recordVersion\":1",
        "\"incarnation\":3,\"number\":7}",
        "\"type\":\"work\",\"customHeaders\":{\"k\":\"v\"}",
        "\"variables\":{\"n\":1.50}",
        "\"jobKind\":\"BPMN_ELEMENT\"",
        "\"tenantId\":\"<default>\"",
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
}

#[test]
fn exported_records_say_where_an_element_instance_is_when_it_begins() {
    let key = |counter| Key::new(PartitionId(1), counter);
    let value = Arc::new(ProcessInstanceValue {
        process_instance_key: key(1),
        process_definition_key: key(9),
        flow_scope_key: key(1),
        ..ProcessInstanceValue::default()
    });
    let record = |intent| Record::event(1, 0, key(2), Payload::ProcessInstance(intent, value.clone()));
    let paths = |record: &Record| {
        let json = record.to_json(&RecordSource::new(PartitionId(1))).expect("valid");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        ["elementInstancePath", "processDefinitionPath", "callingElementPath"].map(|name| json["value"][name].clone())
    };
    let [one, two, definition] = [1, 2, 9].map(|counter| serde_json::json!(key(counter).raw()));
    let begins = record(ProcessInstanceIntent::ElementActivating);
    let from_the_record = [serde_json::json!([[one, two]]), serde_json::json!([definition]), serde_json::json!([])];
    assert_eq!(paths(&begins), from_the_record);
    let nothing = [(); 3].map(|()| serde_json::json!([]));
    assert_eq!(paths(&record(ProcessInstanceIntent::ElementActivated)), nothing, "as exporters of Zeebe write it");
    let path = ElementPath {
        element_instance_path: vec![vec![key(1)], vec![key(2)]],
        process_definition_path: vec![key(9), key(9)],
        calling_element_path: vec![4],
    };
    let called = Record { path: Some(Box::new(path)), ..begins };
    let expected =
        [serde_json::json!([[one], [two]]), serde_json::json!([definition, definition]), serde_json::json!([4])];
    assert_eq!(paths(&called), expected);
    let incident = IncidentValue {
        process_instance_key: key(1),
        process_definition_key: key(9),
        element_instance_key: key(2),
        ..IncidentValue::default()
    };
    let created = |payload| Record::event(1, 0, key(3), payload);
    assert_eq!(paths(&created(Payload::Incident(IncidentIntent::Created, Box::new(incident)))), from_the_record);
    let job = created(Payload::Job(JobIntent::Created, Arc::default())).to_json(&RecordSource::new(PartitionId(1)));
    let job: serde_json::Value = serde_json::from_str(&job.expect("valid")).expect("JSON");
    assert_eq!(job["value"]["jobListenerEventType"], "UNSPECIFIED");
    assert_eq!(job["value"]["result"]["type"], "USER_TASK");
}

fn exported(record: &Record) -> serde_json::Value {
    let json = record.to_json(&RecordSource::new(PartitionId(1))).expect("valid");
    serde_json::from_str(&json).expect("JSON")
}

#[test]
fn exported_records_say_who_wanted_it() {
    let identity = || Identity::new("demo", Some([7; 32])).expect("short");
    let actors = [
        (Actor::Anonymous, serde_json::json!({ "authorized_anonymous_user": true })),
        (Actor::System, serde_json::json!({})),
        (Actor::User(identity()), serde_json::json!({ "authorized_username": "demo" })),
        (Actor::Client(identity()), serde_json::json!({ "authorized_client_id": "demo" })),
    ];
    for (actor, claims) in actors {
        let payload = Payload::Job(JobIntent::Completed, Arc::default());
        let record = Record { actor, ..Record::event(1, 0, Key::NONE, payload) };
        assert_eq!(exported(&record)["authorizations"], claims, "{record:?}");
    }
}

#[test]
fn an_exported_distribution_has_the_command_where_it_begins() {
    let form = FormMetadata {
        form_id: "order".into(),
        version: 1,
        version_tag: Text::default(),
        form_key: Key::NONE,
        resource_name: "order.form".into(),
        checksum: Arc::default(),
        duplicate: false,
        deployment_key: Key::NONE,
        tenant_id: DEFAULT_TENANT.into(),
    };
    let deployment = DeploymentValue { form_metadata: vec![form], ..DeploymentValue::default() };
    let command = Payload::Deployment(DeploymentIntent::Create, Box::new(deployment));
    let distribution = |intent, command| {
        let value = CommandDistributionValue {
            partition_id: PartitionId(2),
            queue_id: "DEPLOYMENT".into(),
            value_type: "DEPLOYMENT".into(),
            intent: "CREATE".into(),
            command,
        };
        let record = Record::event(1, 0, Key::NONE, Payload::CommandDistribution(intent, Box::new(value)));
        exported(&record)["value"]["commandValue"].clone()
    };
    let own = exported(&Record::event(1, 0, Key::NONE, command.clone()))["value"].clone();
    assert_eq!(own["formMetadata"][0]["formId"], "order");
    let command = Box::new(Command::new(Key::NONE, command));
    assert_eq!(distribution(CommandDistributionIntent::Started, Some(command)), own);
    assert_eq!(distribution(CommandDistributionIntent::Finished, None), serde_json::json!({}));
}

#[test]
fn an_exported_correlation_names_the_request_that_waits_for_it() {
    let value = |awaiting| {
        let value = MessageCorrelationValue { awaiting, ..MessageCorrelationValue::default() };
        let payload = Payload::MessageCorrelation(MessageCorrelationIntent::Correlating, Box::new(value));
        let value = exported(&Record::event(1, 0, Key::NONE, payload))["value"].clone();
        [value["requestId"].clone(), value["requestStreamId"].clone()]
    };
    assert_eq!(value(Some(Request { node: 3, number: u64::MAX })), [u64::MAX, 3].map(serde_json::Value::from));
    assert_eq!(value(None), [-1; 2].map(serde_json::Value::from));
}

#[test]
fn exported_jobs_have_the_same_fields_alone_and_in_a_batch() {
    let result = JobResult { denied: true, ..JobResult::default() };
    let job = JobValue { result: Some(Box::new(result)), ..JobValue::default() };
    let batch = JobBatchValue { jobs: vec![job.clone()], ..JobBatchValue::default() };
    let alone = exported(&Record::event(1, 0, Key::NONE, Payload::Job(JobIntent::Completed, Arc::new(job))));
    let payload = Payload::JobBatch(JobBatchIntent::Activated, Box::new(batch));
    let batch = exported(&Record::event(1, 0, Key::NONE, payload));
    assert_eq!(alone["value"]["result"]["denied"], true);
    assert_eq!(batch["value"]["jobs"][0], alone["value"]);
}
