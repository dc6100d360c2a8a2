//! The interface is a contract with clients that we do not build: these tests pin what travels on the wire.

use gateway_interface::{
    ActivateJobsRequest, ActivatedJob, CompleteJobRequest, CreateProcessInstanceRequest, DeleteResourceRequest,
    Deployment, ProcessMetadata, Resource, StreamActivatedJobsRequest, deployment,
};
use prost::Message;

/// The tag byte (or bytes) that starts a field of the given number and wire type.
fn tag(number: u32, wire_type: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(u64::from(number << 3 | wire_type), &mut bytes);
    bytes
}

const VARINT: u32 = 0;
const LENGTH: u32 = 2;

fn integer(number: u32, value: u8) -> Vec<u8> {
    assert!(value < 128, "this helper writes one-byte integers only");
    let mut bytes = tag(number, VARINT);
    bytes.push(value);
    bytes
}

fn text(number: u32, value: &str) -> Vec<u8> {
    let mut bytes = tag(number, LENGTH);
    bytes.push(u8::try_from(value.len()).expect("this helper writes short texts only"));
    bytes.extend_from_slice(value.as_bytes());
    bytes
}

#[test]
fn jobs_have_the_field_numbers_of_the_protocol() {
    let job = ActivatedJob {
        key: 1,
        process_instance_key: 3,
        deadline: 12,
        variables: "{}".into(),
        tenant_id: "t".into(),
        kind: 2,
        listener_event_type: 6,
        tags: vec!["a".into()],
        ..ActivatedJob::default()
    };
    let expected = [
        integer(1, 1),
        integer(3, 3),
        integer(12, 12),
        text(13, "{}"),
        text(14, "t"),
        integer(16, 2),
        integer(17, 6),
        text(18, "a"),
    ];
    assert_eq!(job.encode_to_vec(), expected.concat());
}

#[test]
fn requests_have_the_field_numbers_of_the_protocol() {
    let activate = ActivateJobsRequest {
        max_jobs_to_activate: 4,
        request_timeout: 6,
        tenant_filter: 1,
        ..ActivateJobsRequest::default()
    };
    assert_eq!(activate.encode_to_vec(), [integer(4, 4), integer(6, 6), integer(8, 1)].concat());

    let stream = StreamActivatedJobsRequest {
        fetch_variable: vec!["v".into()],
        tenant_ids: vec!["t".into()],
        tenant_filter: 1,
        ..StreamActivatedJobsRequest::default()
    };
    assert_eq!(stream.encode_to_vec(), [text(5, "v"), text(6, "t"), integer(7, 1)].concat());

    let create = CreateProcessInstanceRequest {
        bpmn_process_id: "p".into(),
        variables: "{}".into(),
        // Optional: zero is sent, unlike an absent reference.
        operation_reference: Some(0),
        business_id: Some("b".into()),
        ..CreateProcessInstanceRequest::default()
    };
    assert_eq!(create.encode_to_vec(), [text(2, "p"), text(4, "{}"), integer(7, 0), text(10, "b")].concat());

    let complete = CompleteJobRequest { job_key: 1, variables: "{}".into(), result: None };
    assert_eq!(complete.encode_to_vec(), [integer(1, 1), text(2, "{}")].concat());

    let delete = DeleteResourceRequest { delete_history: Some(false), ..DeleteResourceRequest::default() };
    assert_eq!(delete.encode_to_vec(), integer(3, 0));
}

#[test]
fn a_deployment_says_what_it_deployed() {
    let process = Deployment {
        metadata: Some(deployment::Metadata::Process(ProcessMetadata {
            bpmn_process_id: "p".into(),
            ..ProcessMetadata::default()
        })),
    };
    assert_eq!(process.encode_to_vec(), [&[0x0a, 3][..], &text(1, "p")].concat());
    let resource =
        Resource::decode(&[text(1, "p.bpmn"), text(2, "<x/>")].concat()[..]).expect("a resource of two fields decodes");
    assert_eq!(&resource.content[..], b"<x/>");
}

// The parts of google.protobuf.FileDescriptorSet that name services and methods.
#[derive(Message)]
struct FileDescriptorSet {
    #[prost(message, repeated, tag = "1")]
    file: Vec<FileDescriptor>,
}

#[derive(Message)]
struct FileDescriptor {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "6")]
    service: Vec<ServiceDescriptor>,
}

#[derive(Message)]
struct ServiceDescriptor {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    method: Vec<MethodDescriptor>,
}

#[derive(Message)]
struct MethodDescriptor {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    input: String,
    #[prost(bool, tag = "5")]
    client_streaming: bool,
    #[prost(bool, tag = "6")]
    server_streaming: bool,
}

#[test]
fn the_service_has_all_its_calls() {
    let files =
        FileDescriptorSet::decode(gateway_interface::FILE_DESCRIPTOR_SET).expect("the embedded descriptors decode");
    let file = &files.file[0];
    let service = &file.service[0];
    assert_eq!(format!("{}.{}", file.package, service.name), gateway_interface::SERVICE_NAME);
    assert_eq!(gateway_interface::SERVICE_NAME, "gateway_protocol.Gateway");

    let mut names: Vec<&str> = service.method.iter().map(|m| m.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "ActivateJobs",
            "BroadcastSignal",
            "CancelProcessInstance",
            "CompleteJob",
            "CreateProcessInstance",
            "CreateProcessInstanceWithResult",
            "DeleteResource",
            "DeployProcess",
            "DeployResource",
            "EvaluateConditional",
            "EvaluateDecision",
            "FailJob",
            "MigrateProcessInstance",
            "ModifyProcessInstance",
            "PublishMessage",
            "ResolveIncident",
            "SetVariables",
            "StreamActivatedJobs",
            "ThrowError",
            "Topology",
            "UpdateJobRetries",
            "UpdateJobTimeout",
        ]
    );
    for method in &service.method {
        assert_eq!(method.input, format!(".gateway_protocol.{}Request", method.name));
        assert!(!method.client_streaming, "{}", method.name);
        assert_eq!(
            method.server_streaming,
            ["ActivateJobs", "StreamActivatedJobs"].contains(&method.name.as_str()),
            "{}",
            method.name
        );
    }
}
