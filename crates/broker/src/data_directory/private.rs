//! Files that hold settings and records of users are for the user of the node alone.

/// Permissions of a file and a directory that only the owner may read.
pub(crate) const PRIVATE_FILE: u32 = 0o600;
