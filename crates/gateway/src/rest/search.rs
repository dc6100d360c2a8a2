//! What is stored, over REST: searches, single entities, models and counts, from the read model.

mod answer;
mod filter;
mod operations;
mod request;
mod statistics;

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use readmodel::ReadModel;
use readmodel::query::{Failure, Readers};
use tokio::sync::oneshot;

use super::problem::Problem;
use crate::outcome::RecordPosition;

pub(super) use answer::Sorts;
pub(super) use operations::{Answered, Asked, Read};

/// How long a search waits until it sees what was acknowledged before it.
const FRESHNESS_MAX: Duration = Duration::from_secs(1);

/// What is searched, if the node has it.
#[derive(Clone)]
pub(super) struct Searcher(Option<Arc<ReadModel>>);

impl Searcher {
    pub(super) fn new(model: Option<Arc<ReadModel>>) -> Searcher {
        Searcher(model)
    }

    /// Answers once everything up to these positions can be found, or that takes too long: whether it can be found.
    pub(super) async fn wait_until_folded(&self, positions: &[RecordPosition]) -> bool {
        let Some(model) = &self.0 else { return true };
        let mut waiting = Vec::new();
        for at in positions {
            let progress = model.progress(at.partition);
            if progress.position() < at.position {
                let (sender, receiver) = oneshot::channel();
                // Whoever gave up does not listen.
                progress.when(at.position, move || {
                    let _ = sender.send(());
                });
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
        tokio::time::timeout(FRESHNESS_MAX, all).await.unwrap_or(false)
    }

    /// Asks the read model, on a thread of its own.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        asked: impl FnOnce(&mut Readers) -> Result<Result<T, Problem>, Failure> + Send + 'static,
    ) -> Result<T, Problem> {
        let Some(model) = &self.0 else {
            return Err(Problem::new(
                StatusCode::NOT_IMPLEMENTED,
                "This node has no read model, so nothing can be searched. Start it without read-model=none.",
            ));
        };
        let (sender, receiver) = oneshot::channel();
        let task = move |readers: &mut Readers| drop(sender.send(asked(readers)));
        let unavailable = |detail: String| Problem {
            title: "RESOURCE_EXHAUSTED".into(),
            ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        };
        model.search(task).map_err(|busy| unavailable(busy.to_string()))?;
        match receiver.await {
            Ok(Ok(answered)) => answered,
            Ok(Err(failure @ Failure::TooLong)) => Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, failure.to_string())),
            // The consumer of the records says so in the log, once.
            Ok(Err(failure @ Failure::Away(_))) => Err(Problem {
                title: "UNAVAILABLE".into(),
                ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, failure.to_string())
            }),
            Ok(Err(failure)) => {
                tracing::error!(%failure, "a search failed");
                Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, failure.to_string()))
            }
            Err(_) => Err(unavailable("The node is stopping.".to_owned())),
        }
    }
}
