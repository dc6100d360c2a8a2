//! Forgetting everything on the management port, for tests that share a node.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use broker::Client;
use protocol::{PartitionId, Payload};
use readmodel::ReadModel;
use serde_json::json;
use tokio::sync::oneshot;

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
    for partition in (1..=client.partition_count()).map(PartitionId) {
        match purge_partition(&client, managed.read_model(), partition, change).await {
            Ok(incarnation) => change = change.max(incarnation),
            Err((code, trouble)) => {
                return error(code, &format!("Partition {partition} could not be purged: {trouble}"));
            }
        }
    }
    client.complete_change(change);
    let none: [(); 0] = [];
    let body = json!({"changeId": change, "currentTopology": none, "plannedChanges": none, "expectedTopology": none});
    (StatusCode::ACCEPTED, Json(body)).into_response()
}

/// Answers with the incarnation that began.
async fn purge_partition(
    client: &Client,
    model: Option<Arc<ReadModel>>,
    partition: PartitionId,
    incarnation: u64,
) -> Result<u64, (StatusCode, String)> {
    let (sender, answer) = oneshot::channel();
    let _pending = client.purge(partition, incarnation, move |reply| drop(sender.send(reply)));
    let unavailable = |trouble: String| (StatusCode::SERVICE_UNAVAILABLE, trouble);
    let reply = match answer.await {
        Ok(Ok(reply)) => reply,
        Ok(Err(trouble)) => return Err(unavailable(trouble.to_string())),
        Err(_) => return Err(unavailable("The node stops.".to_owned())),
    };
    if let Some(rejection) = reply.rejection {
        return Err((StatusCode::CONFLICT, rejection.reason.to_string()));
    }
    let Payload::Purge(_, value) = reply.payload else {
        return Err((StatusCode::INTERNAL_SERVER_ERROR, "It answered something else.".to_owned()));
    };
    if let (Some(model), Some(position)) = (model, reply.position) {
        let (sender, folded) = oneshot::channel();
        model.progress(partition).when(position, move || {
            let _ = sender.send(());
        });
        let folded = tokio::time::timeout(FOLD_TIME_MAX, folded).await;
        folded.map_err(|_| unavailable("Its data are gone, but searches may still find them.".to_owned()))?.ok();
    }
    Ok(value.incarnation)
}
