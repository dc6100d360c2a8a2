//! The feature level on the management port: which the partitions are at, and raising it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use broker::{Client, FeatureLevel, PartitionLevel, RaiseError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::json_body::JsonBody;
use crate::management::{Managed, error, starting};

/// What is asked for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Raise {
    level: u32,
}

/// The levels of the partitions, and up to which they can be raised.
pub(crate) async fn show(State(managed): State<Arc<Managed>>) -> Response {
    managed.client().map_or_else(starting, |client| Json(levels(&client)).into_response())
}

/// Raises all partitions that are not there yet. Asked again after a failure, it goes on with those that are left.
pub(crate) async fn raise(State(managed): State<Arc<Managed>>, JsonBody(Raise { level }): JsonBody<Raise>) -> Response {
    let Some(client) = managed.client() else { return starting() };
    if let Err(refusal) = client.check_feature_level(level) {
        return refused(&refusal);
    }
    for PartitionLevel { partition, level: present } in client.feature_levels() {
        if present >= level {
            continue;
        }
        let (sender, answer) = tokio::sync::oneshot::channel();
        let submitted = client.raise_feature_level(partition, level, move |reply| drop(sender.send(reply)));
        if let Err(refusal) = submitted {
            return refused(&refusal);
        }
        let trouble = match answer.await {
            Ok(Ok(reply)) => reply.rejection.map(|rejection| (StatusCode::CONFLICT, rejection.reason.to_string())),
            Ok(Err(trouble)) => Some((StatusCode::SERVICE_UNAVAILABLE, trouble.to_string())),
            Err(_) => Some((StatusCode::SERVICE_UNAVAILABLE, "The node stops.".to_owned())),
        };
        if let Some((code, trouble)) = trouble {
            let message = format!("Partition {partition} could not be raised to feature level {level}: {trouble}");
            return error(code, &message);
        }
    }
    Json(levels(&client)).into_response()
}

fn refused(refusal: &RaiseError) -> Response {
    let code = match refusal {
        RaiseError::Unknown(_) => StatusCode::BAD_REQUEST,
        RaiseError::Member { .. } | RaiseError::FirstPartitionLast { .. } => StatusCode::CONFLICT,
    };
    error(code, &refusal.to_string())
}

fn levels(client: &Client) -> Value {
    let mut levels = client.feature_levels();
    levels.sort_by_key(|level| level.partition);
    let partition = |PartitionLevel { partition, level }| json!({ "partition": partition.0, "level": level });
    let partitions: Vec<Value> = levels.into_iter().map(partition).collect();
    let members = client.members();
    let known = members.iter().map(|member| member.newest_level).min().unwrap_or(FeatureLevel::OLDEST.number());
    json!({ "clusterId": client.cluster().cluster_id, "newestKnownByAllNodes": known, "partitions": partitions })
}
