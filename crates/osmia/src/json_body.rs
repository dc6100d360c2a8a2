//! What clients of the management port send.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

/// The mark that some programs write before UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A JSON body, perhaps after a byte order mark.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let body = Request::from_parts(parts.clone(), body);
        let body = Bytes::from_request(body, state).await.map_err(IntoResponse::into_response)?;
        let body = if body.starts_with(BYTE_ORDER_MARK) { body.slice(BYTE_ORDER_MARK.len()..) } else { body };
        let request = Request::from_parts(parts, Body::from(body));
        let read = Json::from_request(request, state).await.map_err(IntoResponse::into_response);
        read.map(|Json(value)| JsonBody(value))
    }
}
