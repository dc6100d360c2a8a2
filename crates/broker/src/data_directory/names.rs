//! Names and versions of what a data directory holds.

/// Version of the layout of the data directory.
pub(crate) const FORMAT: u32 = 1;
/// Until the first release, format 1 is a draft: who changes the shape of anything in the directory raises this number, and
/// directories of another draft are refused. The release takes the line away.
pub(super) const DRAFT: u32 = 2;
/// What the directory is: there when it was made completely.
pub(super) const FORMAT_FILE: &str = "FORMAT";
pub(super) const LOG: &str = "log";
pub(super) const PARTITIONS: &str = "partitions";
pub(super) const EXPORTERS: &str = "exporters";
