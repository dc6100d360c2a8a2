//! How many job streams one connection opens, and how fast.
//!
//! Opening a stream writes its specification to the log and the record stream of every partition. So a client that opens
//! and closes streams could write many times what it sends. Each connection may open many streams at once, as a worker with
//! many types does when it starts; after that they are opened as slowly as the bytes of their requests come due. One that
//! is given up before its turn writes nothing. Closing is never held up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::StreamSpecification;
use parking_lot::Mutex;

use crate::outcome::Failure;

/// Bytes of requests that a connection may have opened at once.
const BURST_BYTES_MAX: u64 = 4 << 20;
/// Bytes of requests a second after that.
const BYTES_PER_SECOND: u64 = 256 << 10;
/// What a stream counts besides its texts.
const STREAM_BYTES: u64 = 256;

/// The job streams of one connection. Clones share them.
#[derive(Clone)]
pub(crate) struct Openings(Arc<Mutex<Opened>>);

struct Opened {
    streams: usize,
    streams_max: usize,
    /// When everything so far will have come due.
    due: Option<Instant>,
}

/// A stream's place among those of its connection, free again when it is dropped.
pub(crate) struct Place(Arc<Mutex<Opened>>);

impl Openings {
    /// For a connection that may hold this many streams.
    pub(crate) fn new(streams_max: usize) -> Self {
        Openings(Arc::new(Mutex::new(Opened { streams: 0, streams_max, due: None })))
    }

    /// A place for another stream, and how long it has to wait until it is opened.
    ///
    /// # Errors
    /// When the connection has too many.
    pub(crate) fn place(
        &self,
        specification: &StreamSpecification,
        now: Instant,
    ) -> Result<(Place, Duration), Failure> {
        let mut opened = self.0.lock();
        if opened.streams >= opened.streams_max {
            return Err(Failure::Exhausted(format!(
                "The limit of {} job streams of one connection is reached. Close streams that are not needed, or open another connection.",
                opened.streams_max
            )));
        }
        opened.streams += 1;
        let due = opened.due.unwrap_or(now).max(now) + due_after(stream_bytes(specification));
        opened.due = Some(due);
        Ok((Place(self.0.clone()), due.saturating_duration_since(now).saturating_sub(due_after(BURST_BYTES_MAX))))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.lock().streams -= 1;
    }
}

fn due_after(bytes: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / BYTES_PER_SECOND)
}

fn stream_bytes(specification: &StreamSpecification) -> u64 {
    let names =
        specification.fetch_variables.iter().chain(&specification.tenant_ids).map(|name| name.len() + 2).sum::<usize>();
    STREAM_BYTES + (specification.job_type.len() + specification.worker.len() + names) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specification(bytes: usize) -> StreamSpecification {
        StreamSpecification {
            job_type: "x".repeat(bytes).as_str().into(),
            worker: "worker".into(),
            timeout: 1_000,
            fetch_variables: Vec::new(),
            tenant_ids: Vec::new(),
        }
    }

    #[test]
    fn many_small_streams_open_at_once_and_large_ones_by_their_bytes() {
        let now = Instant::now();
        let small = Openings::new(20_000);
        let places: Vec<_> = (0..10_000).map(|_| small.place(&specification(20), now).unwrap()).collect();
        assert!(places.iter().all(|(_, wait)| wait.is_zero()), "a worker with many types");
        let large = Openings::new(20_000);
        let waits: Vec<Duration> = (0..2_000).map(|_| large.place(&specification(16 << 10), now).unwrap().1).collect();
        let at_once = waits.iter().filter(|wait| wait.is_zero()).count();
        assert!((200..=256).contains(&at_once), "{at_once}");
        assert!(waits.is_sorted());
        // What a loop of opening and closing writes in a minute: the initial burst, and the bytes of a minute.
        let opened = waits.iter().filter(|wait| **wait <= Duration::from_secs(60)).count() as u64;
        assert!(opened * (16 << 10) <= BURST_BYTES_MAX + 60 * BYTES_PER_SECOND, "{opened}");
        let later = now + Duration::from_secs(3_600);
        assert!(large.place(&specification(16 << 10), later).unwrap().1.is_zero(), "all has come due");
    }

    #[test]
    fn a_connection_has_a_limit_of_streams_of_its_own() {
        let openings = Openings::new(2);
        let now = Instant::now();
        let first = openings.place(&specification(1), now).unwrap();
        let _second = openings.place(&specification(1), now).unwrap();
        let refusal = openings.place(&specification(1), now).err().expect("the limit");
        let Failure::Exhausted(message) = refusal else { panic!("{refusal:?}") };
        assert!(message.contains("limit of 2 job streams of one connection"), "{message}");
        drop(first);
        openings.place(&specification(1), now).expect("there is room again");
    }
}
