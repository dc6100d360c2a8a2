//! Pausing and resuming exporting on the management port, under the paths of the reference.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use broker::Pause;
use serde::Deserialize;

use crate::management::{Managed, error, starting};

/// How it is paused.
#[derive(Deserialize)]
pub(crate) struct How {
    #[serde(default)]
    soft: bool,
}

/// Answers when the next start of the node would know it too.
pub(crate) async fn change(
    State(managed): State<Arc<Managed>>,
    Path(operation): Path<String>,
    Query(How { soft }): Query<How>,
) -> Response {
    let pause = match (operation.as_str(), soft) {
        ("pause", false) => Pause::Hard,
        ("pause", true) => Pause::Soft,
        ("resume", _) => Pause::None,
        _ => return error(StatusCode::NOT_FOUND, "What can be done with exporting is pause and resume."),
    };
    let Some(exporters) = managed.exporters() else { return starting() };
    match tokio::task::spawn_blocking(move || exporters.set_pause(pause)).await {
        Ok(Ok(())) => StatusCode::NO_CONTENT.into_response(),
        Ok(Err(problem)) => error(StatusCode::INTERNAL_SERVER_ERROR, &problem.to_string()),
        Err(_) => error(StatusCode::SERVICE_UNAVAILABLE, "The node stops."),
    }
}
