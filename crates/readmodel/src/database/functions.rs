//! What SQLite has no words for: functions of a connection to a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result, ffi};

use crate::pattern::{Late, Pattern};

/// Until when a connection may read.
#[derive(Debug, Clone)]
pub(crate) struct Deadline {
    /// The moment from which it is counted.
    from: Instant,
    /// Microseconds, or the largest number for no deadline.
    after: Arc<AtomicU64>,
}

impl Default for Deadline {
    fn default() -> Deadline {
        Deadline { from: Instant::now(), after: Arc::new(AtomicU64::new(u64::MAX)) }
    }
}

impl Deadline {
    pub fn set(&self, deadline: Option<Instant>) {
        let after = deadline.map_or(u64::MAX, |deadline| {
            let after = deadline.saturating_duration_since(self.from);
            u64::try_from(after.as_micros()).unwrap_or(u64::MAX)
        });
        self.after.store(after, Ordering::Relaxed);
    }

    pub fn get(&self) -> Option<Instant> {
        let after = self.after.load(Ordering::Relaxed);
        (after < u64::MAX).then(|| self.from + Duration::from_micros(after))
    }
}

/// Lets statements of this connection use `is_like(pattern, text)`, which looks at the clock inside of a
/// text, and `text_hash(text)`, a number of 64 bits that is the same for the same text.
pub(crate) fn register(connection: &Connection, deadline: &Deadline) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    let deadline = deadline.clone();
    connection.create_scalar_function(c"is_like", 2, flags, move |context| is_like(context, &deadline))?;
    connection.create_scalar_function(c"text_hash", 1, flags, |context| Ok(hash(text(context, 0).unwrap_or_default())))
}

fn is_like(context: &Context<'_>, deadline: &Deadline) -> Result<Option<bool>> {
    let pattern = context.get_or_create_aux(0, |value| value.as_str().map(Pattern::new))?;
    let Some(text) = text(context, 1) else { return Ok(None) };
    let is_like = pattern.is_like_until(text, deadline.get());
    is_like.map(Some).map_err(|Late| Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None))
}

/// A parameter that is a text.
fn text<'a>(context: &'a Context<'_>, index: usize) -> Option<&'a [u8]> {
    match context.get_raw(index) {
        ValueRef::Text(text) | ValueRef::Blob(text) => Some(text),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    }
}

/// FNV-1a, with its bits mixed at the end.
fn hash(text: &[u8]) -> i64 {
    let mut hash = text
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3));
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (hash ^ hash >> 32).cast_signed()
}
