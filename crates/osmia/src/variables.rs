//! Environment variables that commands other than `osmia start` read.

/// Where a client looks for the gateway; the first one that is set wins.
pub(crate) const GRPC_ADDRESS: [&str; 4] =
    ["OSMIA_ADDRESS", "ZEEBE_ADDRESS", "CAMUNDA_GRPC_ADDRESS", "ZEEBE_GRPC_ADDRESS"];
/// Where a client looks for the REST API; the first one that is set wins.
pub(crate) const REST_ADDRESS: [&str; 3] = ["OSMIA_REST_ADDRESS", "ZEEBE_REST_ADDRESS", "CAMUNDA_REST_ADDRESS"];
/// Where `osmia health` and `osmia cluster` look for the management port.
pub(crate) const MANAGEMENT_ADDRESS: &str = "OSMIA_MANAGEMENT_ADDRESS";
/// The file of profiles, instead of the one in the configuration directory.
pub(crate) const PROFILES_FILE: &str = "OSMIA_PROFILES";
/// The profile of commands that do not name one.
pub(crate) const PROFILE: &str = "OSMIA_PROFILE";
