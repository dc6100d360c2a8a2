//! Forgetting everything on the management port, for tests that share a node.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use broker::{Client, Reply, SubmitError};
use protocol::{PartitionId, Payload};
use readmodel::ReadModel;
use serde_json::json;
use tokio::sync::oneshot::{self, error::RecvError};

use crate::management::{Managed, error, starting};

/// How long searches may take to forget what the partitions have forgotten.
const FOLD_TIME_MAX: Duration = Duration::from_secs(60);

/// Has all partitions forget everything but themselves, one after another, and answers when searches find nothing more of it.
pub(crate) async fn purge(State(managed): State<Arc<Managed>>) -> Response {
    let Some(client) = managed.client() else { return starting() };
    if !managed.has_controllable_clock() {
        return error(
            StatusCode::FORBIDDEN,
            "This node does not forget what it has: that is for tests. Start it with --clock-control to allow it.",
        );
    }
    let mut change = 0;
    for partition in client.partition_ids() {
        match purge_partition(&client, managed.read_model(), partition, change).await {
            Ok(incarnation) => change = change.max(incarnation),
            Err((code, trouble)) => {
                return error(code, &format!("Partition {partition} could not be purged: {trouble}"));
            }
        }
    }
    if let Err((code, trouble)) = configure_global_listeners(&client, managed.read_model()).await {
        let what = "Everything is forgotten, but the global listeners of the configuration could not be defined again";
        return error(code, &format!("{what}: {trouble}"));
    }
    tracing::warn!("all partitions have forgotten everything, as a client of the management port asked");
    client.complete_change(change);
    let none: [(); 0] = [];
    let body = json!({"changeId": change, "currentTopology": none, "plannedChanges": none, "expectedTopology": none});
    (StatusCode::ACCEPTED, Json(body)).into_response()
}

/// Why a step failed, and with which status that is answered.
type Trouble = (StatusCode, String);

/// Answers with the incarnation that began.
async fn purge_partition(
    client: &Client,
    model: Option<Arc<ReadModel>>,
    partition: PartitionId,
    incarnation: u64,
) -> Result<u64, Trouble> {
    let (sender, answer) = oneshot::channel();
    let _pending = client.purge(partition, incarnation, move |reply| drop(sender.send(reply)));
    let reply = accepted(answer.await)?;
    let Payload::Purge(_, value) = reply.payload else {
        return Err((StatusCode::INTERNAL_SERVER_ERROR, "It answered something else.".to_owned()));
    };
    folded(model, partition, reply.position, "Its data are gone, but searches may still find them.").await?;
    Ok(value.incarnation)
}

/// What the configuration defines is there again as after a start.
async fn configure_global_listeners(client: &Client, model: Option<Arc<ReadModel>>) -> Result<(), Trouble> {
    let (sender, answer) = oneshot::channel();
    let Some(_pending) = client.configure_global_listeners(move |reply| drop(sender.send(reply))) else {
        return Ok(());
    };
    let reply = accepted(answer.await)?;
    let late = "They are defined, but searches may not find them yet.";
    folded(model, PartitionId::DEPLOYMENT, reply.position, late).await
}

/// What a partition answered if it did what it was asked.
fn accepted(answer: Result<Result<Reply, SubmitError>, RecvError>) -> Result<Reply, Trouble> {
    let reply = match answer {
        Ok(Ok(reply)) => reply,
        Ok(Err(trouble)) => return Err((StatusCode::SERVICE_UNAVAILABLE, trouble.to_string())),
        Err(_) => return Err((StatusCode::SERVICE_UNAVAILABLE, "The node stops.".to_owned())),
    };
    match reply.rejection {
        Some(rejection) => Err((StatusCode::CONFLICT, rejection.reason.to_string())),
        None => Ok(reply),
    }
}

/// Waits for searches to see what a partition answered.
async fn folded(
    model: Option<Arc<ReadModel>>,
    partition: PartitionId,
    position: Option<u64>,
    late: &str,
) -> Result<(), Trouble> {
    if let (Some(model), Some(position)) = (model, position) {
        let (sender, folded) = oneshot::channel();
        let _waiter = model.progress(partition).when(position, move || {
            let _ = sender.send(());
        });
        let folded = tokio::time::timeout(FOLD_TIME_MAX, folded).await;
        folded.map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, late.to_owned()))?.ok();
    }
    Ok(())
}
