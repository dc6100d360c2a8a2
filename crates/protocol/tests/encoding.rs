//! What is written today must be read tomorrow, and nonsense must be refused.

use std::sync::Arc;

use osmia_protocol::*;

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
    bytes[0] = 9;
    let error = decode_batch(&bytes).expect_err("unknown format").to_string();
    assert!(error.contains("its format is 9, this version reads 1"), "{error}");
}

#[test]
fn a_count_that_cannot_be_reserves_no_memory() {
    let (_, mut bytes) = batch();
    bytes[9..13].copy_from_slice(&u32::MAX.to_le_bytes());
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
        Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::default()),
        Payload::MessageBatch(MessageBatchIntent::Expire, Box::default()),
        Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::default()),
        Payload::RuntimeInstruction(RuntimeInstructionIntent::Interrupted, Box::default()),
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

/// Fields that came later are read as their default from bytes that lack them.
#[test]
fn values_of_the_first_version_stay_readable() {
    let value = ProcessInstanceValue { bpmn_process_id: "p".into(), version: 3, ..ProcessInstanceValue::default() };
    let mut bytes = encode_to_vec(&value);
    assert_eq!(bytes[0], 0x8d, "thirteen fields");
    // The first version had eleven.
    bytes[0] = 0x8b;
    bytes.truncate(bytes.len() - 2);
    assert_eq!(decode::<ProcessInstanceValue>(&bytes).expect("readable"), value);
    let value = ProcessInstanceCreationValue { version: 3, ..ProcessInstanceCreationValue::default() };
    let mut bytes = encode_to_vec(&value);
    assert_eq!(bytes[0], 0x8b, "eleven fields");
    // The first version had ten.
    bytes[0] = 0x8a;
    bytes.pop();
    assert_eq!(decode::<ProcessInstanceCreationValue>(&bytes).expect("readable"), value);
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
fn records_look_as_exporters_of_zeebe_write_them() {
    let value = JobValue {
        job_type: "work".into(),
        custom_headers: "{\"k\":\"v\"}".into(),
        variables: "{\"n\":1.50}".into(),
        deadline: -1,
        tenant_id: DEFAULT_TENANT.into(),
        ..JobValue::default()
    };
    let record = Record {
        position: 12,
        source_position: 11,
        key: Key::new(PartitionId(2), 5),
        timestamp: 1_700_000_000_000,
        record_type: RecordType::Rejection(Rejection::not_found("Expected to complete job, but it is gone")),
        operation_reference: None,
        payload: Payload::Job(JobIntent::Complete, Arc::new(value)),
    };
    let json = record.to_json(PartitionId(2)).expect("valid");
    for part in [
        "\"position\":12,\"sourceRecordPosition\":11,\"key\":4503599627370501,\"timestamp\":1700000000000",
        "\"partitionId\":2,\"recordType\":\"COMMAND_REJECTION\",\"valueType\":\"JOB\",\"intent\":\"COMPLETE\"",
        "\"rejectionType\":\"NOT_FOUND\",\"rejectionReason\":\"Expected to complete job, but it is gone\"",
        "\"operationReference\":-1",
        "\"type\":\"work\",\"customHeaders\":{\"k\":\"v\"}",
        "\"variables\":{\"n\":1.50}",
        "\"jobKind\":\"BPMN_ELEMENT\"",
        "\"tenantId\":\"<default>\"",
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
}
