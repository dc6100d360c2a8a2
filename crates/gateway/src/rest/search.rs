//! What is stored, over REST: searches, single entities, models and counts, from the read model.

mod answer;
mod filter;
mod operations;
mod request;
mod statistics;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use readmodel::query::{Failure, Readers};
use readmodel::{Cost, ReadModel, SenderId};
use tokio::sync::oneshot;

use super::problem::Problem;
use crate::outcome::RecordPosition;

pub(super) use answer::Sorts;
pub(super) use operations::{Answered, Asked, Read};

/// How long a search waits for a thread. What is left of its time is enough for most then.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// A search that has waited no longer has taken its time itself.
const WAIT_NOTICED: Duration = Duration::from_millis(100);

/// What is searched, if the node has it.
#[derive(Clone)]
pub(crate) struct Searcher {
    model: Option<Arc<ReadModel>>,
    /// How long a search waits until it sees what was acknowledged before it.
    search_wait_max: Duration,
    /// The connection whose searches these are: connections take turns.
    sender: SenderId,
}

impl Searcher {
    pub(crate) fn new(model: Option<Arc<ReadModel>>, search_wait_max: Duration) -> Searcher {
        Searcher { model, search_wait_max, sender: SenderId::default() }
    }

    /// For one more connection.
    pub(super) fn of_new_sender(&self) -> Searcher {
        static SENDERS: AtomicU64 = AtomicU64::new(1);
        Searcher { sender: SenderId(SENDERS.fetch_add(1, Ordering::Relaxed)), ..self.clone() }
    }

    /// How long a search waits until it sees what happened before it.
    pub(super) fn wait_max(&self) -> Duration {
        self.search_wait_max
    }

    /// Answers once everything up to these positions can be found, or that takes too long: whether it can be found.
    pub(super) async fn wait_until_folded(&self, positions: &[RecordPosition]) -> bool {
        self.wait_until_folded_within(self.search_wait_max, positions).await
    }

    /// The same, for as long as this.
    pub(super) async fn wait_until_folded_within(&self, wait_max: Duration, positions: &[RecordPosition]) -> bool {
        let Some(model) = &self.model else { return true };
        let (mut waiting, mut waiters) = (Vec::new(), Vec::new());
        for at in positions {
            let progress = model.progress(at.partition);
            if progress.position() < at.position {
                let (sender, receiver) = oneshot::channel();
                // Whoever gave up does not listen.
                waiters.extend(progress.when(at.position, move || {
                    let _ = sender.send(());
                }));
                waiting.push(receiver);
            }
        }
        if waiting.is_empty() {
            return true;
        }
        let all = async {
            for receiver in waiting {
                if receiver.await.is_err() {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(wait_max, all).await.unwrap_or(false)
    }

    /// Asks the read model, on a thread of its own.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        cost: Cost,
        asked: impl FnOnce(&mut Readers) -> Result<Result<T, Problem>, Failure> + Send + 'static,
    ) -> Result<T, Problem> {
        self.ask_within(WAIT_MAX, cost, asked).await
    }

    async fn ask_within<T: Send + 'static>(
        &self,
        wait_max: Duration,
        cost: Cost,
        asked: impl FnOnce(&mut Readers) -> Result<Result<T, Problem>, Failure> + Send + 'static,
    ) -> Result<T, Problem> {
        let Some(model) = &self.model else {
            return Err(Problem::new(
                StatusCode::NOT_IMPLEMENTED,
                "This node has no read model, so nothing can be searched. Start it without read-model=none.",
            ));
        };
        let (sender, mut receiver) = oneshot::channel();
        let begin = Instant::now();
        let place = model.ask(self.sender, cost, move |readers| {
            let waited = begin.elapsed();
            let answered = match readers {
                Ok(readers) => asked(readers).unwrap_or_else(|failure| Err(problem(&failure, waited))),
                Err(busy) => Err(unavailable(busy.to_string())),
            };
            drop(sender.send(answered));
        });
        let answered = match tokio::time::timeout(wait_max, &mut receiver).await {
            Ok(answered) => answered,
            Err(_) if place.give_up() => {
                return Err(unavailable(format!(
                    "The search has waited {} ms for those before it. Please try again after a growing pause.",
                    begin.elapsed().as_millis()
                )));
            }
            // A thread has it, and has no more time than a search may take.
            Err(_) => receiver.await,
        };
        answered.unwrap_or_else(|_| Err(unavailable("The node is stopping.".to_owned())))
    }
}

fn unavailable(detail: String) -> Problem {
    Problem { title: "RESOURCE_EXHAUSTED".into(), ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
}

/// Why a search that has waited so long was not answered. What a database says is not for clients.
fn problem(failure: &Failure, waited: Duration) -> Problem {
    let of = |title: &'static str, status, detail| Problem { title: title.into(), ..Problem::new(status, detail) };
    let detail = failure.to_string();
    match failure {
        Failure::TooLong if waited > WAIT_NOTICED => unavailable(format!(
            "The search has waited {} ms for those before it, and the time that was left was not enough. \
             Please try again after a growing pause.",
            waited.as_millis()
        )),
        Failure::TooLong => of("DEADLINE_EXCEEDED", StatusCode::GATEWAY_TIMEOUT, detail),
        // Only a key names a partition.
        Failure::NoPartition(partition) => of(
            "NOT_FOUND",
            StatusCode::NOT_FOUND,
            format!("Nothing has this key: it would belong to partition {partition}, which does not exist here."),
        ),
        Failure::LargePage | Failure::LargeGroups | Failure::TooMuch => {
            of("INVALID_ARGUMENT", StatusCode::BAD_REQUEST, detail)
        }
        // The consumer of the records says why in the log, once.
        Failure::Away(reason) => {
            tracing::debug!(reason, "a search did not reach its database");
            of("UNAVAILABLE", StatusCode::SERVICE_UNAVAILABLE, detail)
        }
        Failure::NotYet(_) => of("UNAVAILABLE", StatusCode::SERVICE_UNAVAILABLE, detail),
        Failure::Unreadable(reason) => {
            tracing::error!(reason, "a search failed");
            of("INTERNAL", StatusCode::INTERNAL_SERVER_ERROR, detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use readmodel::READERS;

    use super::*;

    /// A searcher whose threads all wait until the senders are dropped.
    fn held_up() -> (Searcher, Vec<mpsc::Sender<()>>, tempfile::TempDir) {
        let directory = tempfile::tempdir().expect("a directory");
        let model = ReadModel::new(directory.path(), []).expect("threads can be started");
        let (begun, begins) = mpsc::channel();
        let mut holders = Vec::new();
        for _ in 0..READERS {
            let (holder, held) = mpsc::channel::<()>();
            let begun = begun.clone();
            let hold = move |_: &mut Readers| {
                begun.send(()).expect("somebody waits");
                let _ = held.recv();
            };
            model.search(hold).expect("nobody else searches");
            holders.push(holder);
        }
        (0..READERS).for_each(|_| begins.recv_timeout(Duration::from_secs(60)).expect("each thread has one"));
        (Searcher::new(Some(model), Duration::from_secs(1)), holders, directory)
    }

    #[tokio::test]
    async fn a_search_that_waited_too_long_or_for_nobody_is_not_carried_out() {
        let (searcher, holders, _directory) = held_up();
        let (carried_out, seen) = mpsc::channel();
        let asked = |name: &'static str| {
            let carried_out = carried_out.clone();
            move |_: &mut Readers| {
                carried_out.send(name).expect("it is looked at");
                Ok(Ok(name))
            }
        };
        let gone = tokio::spawn({
            let (searcher, asked) = (searcher.clone(), asked("gone"));
            async move { searcher.ask(Cost::Any, asked).await.map(|_| ()).map_err(|_| ()) }
        });
        // It is in the queue once it has run until it waits.
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.is_err_and(|error| error.is_cancelled()));
        // While no thread takes it.
        let late = searcher.ask_within(Duration::ZERO, Cost::Any, asked("late")).await;
        let problem = late.expect_err("it waited");
        assert_eq!((problem.status, &*problem.title), (StatusCode::SERVICE_UNAVAILABLE, "RESOURCE_EXHAUSTED"));
        assert!(problem.detail.starts_with("The search has waited "), "{}", problem.detail);
        assert_eq!(searcher.ask(Cost::Key, asked("by key")).await.ok(), Some("by key"), "it waits for nobody");
        let in_time = searcher.ask_within(Duration::from_secs(60), Cost::Any, asked("in time"));
        let (in_time, ()) = tokio::join!(in_time, async { drop(holders) });
        assert_eq!(in_time.ok(), Some("in time"));
        drop(carried_out);
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), ["by key", "in time"]);
    }

    #[test]
    fn what_a_database_says_is_not_told_to_clients() {
        let secret = || "/var/lib/osmia/read-model of user osmia".to_owned();
        for failure in [Failure::Unreadable(secret()), Failure::Away(secret())] {
            let problem = problem(&failure, Duration::ZERO);
            assert!(problem.status.is_server_error() && !problem.detail.contains("osmia"), "{problem:?}");
        }
        let late = problem(&Failure::TooLong, Duration::from_secs(2));
        assert_eq!(late.status, StatusCode::SERVICE_UNAVAILABLE, "others took its time");
        assert_eq!(problem(&Failure::TooLong, Duration::ZERO).status, StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(problem(&Failure::LargePage, Duration::ZERO).status, StatusCode::BAD_REQUEST);
    }
}
