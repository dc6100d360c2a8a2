//! The gRPC interface between clients and the gateway: messages, server trait and client of the service
//! `gateway_protocol.Gateway`, generated from `proto/gateway.proto` at build time.
//!
//! Field names, numbers and types are those of Zeebe 8.9; they are a public contract and never change.
//! Resource contents are [`Bytes`](prost::bytes::Bytes), which are shared and not copied.

#[allow(missing_docs, rustdoc::all, clippy::all, reason = "generated code; proto/gateway.proto describes it")]
mod generated {
    tonic::include_proto!("gateway_protocol");
}

pub use generated::*;

/// The service name under which health checks ask for the gateway.
pub const SERVICE_NAME: &str = gateway_server::SERVICE_NAME;

/// The whole interface as an encoded `google.protobuf.FileDescriptorSet`, for tools that read it at run time.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("gateway_descriptors");

/// The name of a status code on the wire.
pub const fn code_name(code: tonic::Code) -> &'static str {
    use tonic::Code;
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
