//! Measures, now and then, how long a document that the target took cannot be found yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use metrics::Histogram;
use parking_lot::Mutex;
use serde::Deserialize;
use ureq::http::Method;

use super::Target;

/// A document is looked for at most this often.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// The pause after a first look, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// What is not found by then counts as found then.
const LOOK_TIME_MAX: Duration = Duration::from_secs(60);

/// Looks for one document at a time.
#[derive(Default)]
pub(super) struct Look {
    is_under_way: AtomicBool,
    next: Mutex<Option<Instant>>,
    /// The user may not search there.
    is_denied: AtomicBool,
}

#[derive(Deserialize)]
struct Action<'a> {
    #[serde(borrow)]
    index: Address<'a>,
}

#[derive(Deserialize)]
struct Address<'a> {
    _index: &'a str,
    _id: &'a str,
    routing: &'a str,
}

#[derive(Deserialize)]
struct Found {
    hits: Hits,
}

#[derive(Deserialize)]
struct Hits {
    total: Total,
}

#[derive(Deserialize)]
struct Total {
    value: u64,
}

impl Look {
    fn is_due(&self, now: Instant) -> bool {
        let mut next = self.next.lock();
        let is_due = next.is_none_or(|next| next <= now)
            && !self.is_denied.load(Ordering::Relaxed)
            && !self.is_under_way.swap(true, Ordering::Relaxed);
        if is_due {
            *next = Some(now + LOOK_INTERVAL);
        }
        is_due
    }
}

/// Looks for a document that was just taken, on a thread of its own, if it is time for that. `action` is its line in the bulk.
pub(super) fn begin(target: &Arc<Target>, action: &[u8], measured: &Histogram) {
    let taken = Instant::now();
    if !target.look.is_due(taken) {
        return;
    }
    let (looking, action, measured) = (target.clone(), action.to_vec(), measured.clone());
    let name = format!("look {}", target.name);
    let begun = std::thread::Builder::new().name(name).spawn(move || {
        if let Some(duration) = look(&looking, &action, taken) {
            measured.record(duration);
        }
        looking.look.is_under_way.store(false, Ordering::Relaxed);
    });
    if begun.is_err() {
        target.look.is_under_way.store(false, Ordering::Relaxed);
    }
}

/// How long it took until it was found; none when the target does not say.
fn look(target: &Target, action: &[u8], taken: Instant) -> Option<Duration> {
    let Address { _index: index, _id: id, routing } = serde_json::from_slice::<Action<'_>>(action).ok()?.index;
    let path = format!("/{index}/_search?routing={routing}&filter_path=hits.total.value");
    let query = format!(r#"{{"size":0,"track_total_hits":true,"query":{{"ids":{{"values":["{id}"]}}}}}}"#);
    let mut pause = PAUSES.0;
    loop {
        let answer = target.client.send(Method::POST, &path, "application/json", query.as_bytes()).ok()?;
        match answer.status.as_u16() {
            200 => {}
            401 | 403 => {
                target.look.is_denied.store(true, Ordering::Relaxed);
                return None;
            }
            _ => return None,
        }
        let is_found = serde_json::from_slice::<Found>(&answer.body).ok()?.hits.total.value > 0;
        let duration = taken.elapsed();
        if is_found || duration >= LOOK_TIME_MAX {
            return Some(duration);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSES.1);
    }
}
