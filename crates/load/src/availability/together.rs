//! One search at a time for all wanted instances, in Elasticsearch and OpenSearch.
//!
//! If each instance were searched for by itself, searches would be the more the longer instances cannot be found, and what is
//! measured would be mostly the load of the measurement.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;
use tonic::Status;

use super::{Availability, By, Wanted};

/// What is wanted in each way of searching.
#[derive(Default)]
pub(super) struct Together([Mutex<Waiting>; 2]);

#[derive(Default)]
struct Waiting {
    /// Somebody searches for them.
    is_looking: bool,
    /// By their keys.
    wanted: HashMap<i64, Sought>,
}

struct Sought {
    wanted: Wanted,
    /// It is lost if it was not found by then.
    until: Duration,
    found: oneshot::Sender<Duration>,
}

impl Together {
    fn waiting(&self, by: By) -> MutexGuard<'_, Waiting> {
        self.0[by as usize].lock().expect("nothing that holds them panics")
    }
}

impl Availability {
    /// Waits until a search for all that is wanted finds this one too.
    pub(super) async fn found_with_others(&self, acknowledged: Duration, wanted: Wanted, by: By) -> Option<Duration> {
        let (found, finding) = oneshot::channel();
        let starts = {
            let mut waiting = self.0.together.waiting(by);
            let until = acknowledged + self.0.give_up_after;
            waiting.wanted.insert(wanted.key, Sought { wanted, until, found });
            !std::mem::replace(&mut waiting.is_looking, true)
        };
        if starts {
            let this = self.clone();
            tokio::spawn(async move { this.look_for_all(by).await });
        }
        finding.await.ok()
    }

    /// Searches until nothing is wanted.
    async fn look_for_all(&self, by: By) {
        loop {
            let wanted: Vec<Wanted> = {
                let mut waiting = self.0.together.waiting(by);
                waiting.is_looking = !waiting.wanted.is_empty();
                waiting.wanted.values().map(|sought| sought.wanted).collect()
            };
            if wanted.is_empty() {
                return;
            }
            let begin = self.0.timeline.now();
            let result = self.0.searches.all(by, &self.0.process_ids, &wanted).await;
            let now = self.0.timeline.now();
            match result {
                Ok(keys) => self.tell(by, &wanted, &keys, now),
                Err(status) => self.state().failures.record(&status),
            }
            // They are told by the end of their wait. Others may have come since the search began.
            let is_over = |sought: &Sought| sought.until < now && wanted.iter().any(|one| one.key == sought.wanted.key);
            self.0.together.waiting(by).wanted.retain(|_, sought| !is_over(sought));
            tokio::time::sleep(now.saturating_sub(begin).max(self.0.searches.shortest_pause())).await;
        }
    }

    fn tell(&self, by: By, wanted: &[Wanted], keys: &[i64], now: Duration) {
        let mut waiting = self.0.together.waiting(by);
        for key in keys {
            if let Some(sought) = waiting.wanted.remove(key) {
                // Nobody waits for it when the run has ended.
                let _ = sought.found.send(now);
            } else if !wanted.iter().any(|one| one.key == *key) {
                let told = format!("a search for {} instances found {key}, which is none of them", wanted.len());
                self.state().failures.record(&Status::data_loss(told));
            }
        }
    }
}
