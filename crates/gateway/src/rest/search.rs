//! What is stored, over REST: searches, single entities, models and counts, from the read model.

mod answer;
mod filter;
mod operations;
mod request;
mod statistics;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use readmodel::ReadModel;
use readmodel::query::{Failure, Readers};
use tokio::sync::oneshot;

use super::problem::Problem;
use crate::outcome::RecordPosition;

pub(super) use answer::Sorts;
pub(super) use operations::{Answered, Asked, Read};

/// How long a search waits for those before it.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What is searched, if the node has it.
#[derive(Clone)]
pub(crate) struct Searcher {
    model: Option<Arc<ReadModel>>,
    /// How long a search waits until it sees what was acknowledged before it.
    search_wait_max: Duration,
}

impl Searcher {
    pub(crate) fn new(model: Option<Arc<ReadModel>>, search_wait_max: Duration) -> Searcher {
        Searcher { model, search_wait_max }
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
        asked: impl FnOnce(&mut Readers) -> Result<Result<T, Problem>, Failure> + Send + 'static,
    ) -> Result<T, Problem> {
        self.ask_within(WAIT_MAX, asked).await
    }

    async fn ask_within<T: Send + 'static>(
        &self,
        wait_max: Duration,
        asked: impl FnOnce(&mut Readers) -> Result<Result<T, Problem>, Failure> + Send + 'static,
    ) -> Result<T, Problem> {
        let Some(model) = &self.model else {
            return Err(Problem::new(
                StatusCode::NOT_IMPLEMENTED,
                "This node has no read model, so nothing can be searched. Start it without read-model=none.",
            ));
        };
        let unavailable = |detail: String| Problem {
            title: "RESOURCE_EXHAUSTED".into(),
            ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        };
        let (sender, receiver) = oneshot::channel();
        let begin = Instant::now();
        let task = move |readers: &mut Readers| {
            // Whoever has gone costs those behind it no time, and a flood of long searches makes nobody wait without end.
            if sender.is_closed() {
                return;
            }
            let waited = begin.elapsed();
            drop(sender.send(if waited < wait_max {
                asked(readers)
            } else {
                Ok(Err(unavailable(format!(
                    "The search has waited {} ms for those before it. Please try again after a growing pause.",
                    waited.as_millis()
                ))))
            }));
        };
        model.search(task).map_err(|busy| unavailable(busy.to_string()))?;
        match receiver.await {
            Ok(Ok(answered)) => answered,
            Ok(Err(failure @ Failure::TooLong)) => Err(Problem {
                title: "DEADLINE_EXCEEDED".into(),
                ..Problem::new(StatusCode::GATEWAY_TIMEOUT, failure.to_string())
            }),
            // Only a key names a partition.
            Ok(Err(Failure::NoPartition(partition))) => Err(Problem {
                title: "NOT_FOUND".into(),
                ..Problem::new(
                    StatusCode::NOT_FOUND,
                    format!(
                        "Nothing has this key: it would belong to partition {partition}, which does not exist here."
                    ),
                )
            }),
            // The consumer of the records says so in the log, once.
            Ok(Err(failure @ (Failure::Away(_) | Failure::NotYet(_)))) => Err(Problem {
                title: "UNAVAILABLE".into(),
                ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, failure.to_string())
            }),
            Ok(Err(failure)) => {
                tracing::error!(%failure, "a search failed");
                Err(Problem {
                    title: "INTERNAL".into(),
                    ..Problem::new(StatusCode::INTERNAL_SERVER_ERROR, failure.to_string())
                })
            }
            Err(_) => Err(unavailable("The node is stopping.".to_owned())),
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
            async move { searcher.ask(asked).await.map(|_| ()).map_err(|_| ()) }
        });
        // It is in the queue once it has run until it waits.
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.is_err_and(|error| error.is_cancelled()));
        let late = searcher.ask_within(Duration::ZERO, asked("late"));
        let in_time = searcher.ask(asked("in time"));
        let release = async { drop(holders) };
        let (late, in_time, ()) = tokio::join!(late, in_time, release);
        let problem = late.expect_err("it waited");
        assert_eq!((problem.status, &*problem.title), (StatusCode::SERVICE_UNAVAILABLE, "RESOURCE_EXHAUSTED"));
        assert!(problem.detail.starts_with("The search has waited "), "{}", problem.detail);
        assert_eq!(in_time.ok(), Some("in time"));
        drop(carried_out);
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), ["in time"]);
    }
}
