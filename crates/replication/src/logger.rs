//! Raft speaks `slog`; the rest of the house speaks `tracing`.

use slog::{Drain, Level, Logger, Never, OwnedKVList, Record};

/// A logger that passes Raft's warnings and errors on and drops its chatter.
pub(crate) fn raft_logger() -> Logger {
    Logger::root(ToTracing, slog::o!())
}

struct ToTracing;

impl Drain for ToTracing {
    type Ok = ();
    type Err = Never;

    fn log(&self, record: &Record<'_>, _values: &OwnedKVList) -> Result<(), Never> {
        match record.level() {
            Level::Critical | Level::Error => tracing::error!(target: "raft", "{}", record.msg()),
            Level::Warning => tracing::warn!(target: "raft", "{}", record.msg()),
            Level::Info | Level::Debug | Level::Trace => {}
        }
        Ok(())
    }

    fn is_enabled(&self, level: Level) -> bool {
        level.is_at_least(Level::Warning)
    }
}
