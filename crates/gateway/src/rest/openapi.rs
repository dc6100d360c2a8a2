//! The document that describes the operations that exist here, in OpenAPI 3.
//!
//! What reads is described by the entities that searches use, what commands take and answer by tables beside this. Tests
//! compare the tables with what the code reads and writes.

mod commands;
mod reading;
mod shape;
mod statistics;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use super::operations::{OPERATIONS, Operation};
use super::routes::Existing;
use crate::topology::GATEWAY_VERSION;

/// Where it is served.
pub(super) const PATH: &str = "/v2/openapi.json";

/// Its text, which is the same as long as the process runs.
pub(super) fn text() -> Bytes {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    TEXT.get_or_init(|| document().to_string().into()).clone()
}

/// What an operation takes and answers.
struct Described {
    /// A sentence.
    summary: String,
    /// The media type and the schema of the body, if there is one.
    request: Option<(&'static str, Value)>,
    /// Query parameters.
    query: Vec<Value>,
    /// The status when it is done, with the media type and the schema of what is told then.
    status: &'static str,
    answer: Option<(&'static str, Value)>,
}

const JSON: &str = "application/json";

fn document() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let Some(existing) = Existing::of_name(operation.name) else { continue };
        let described = match existing {
            Existing::Read(read) => reading::described(operation.name, read),
            _ => commands::described(operation.name),
        };
        let of_path = paths.entry(operation.path).or_insert_with(|| json!({}));
        of_path[operation.method.to_ascii_lowercase()] = rendered(operation, described);
    }
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Osmia Orchestration Cluster REST API",
            "version": GATEWAY_VERSION,
            "description": "The operations of the Camunda 8 REST API v2 that this version of Osmia has. All others of the API answer \
                            501 with a problem that names them. Keys are written as texts of digits.",
            "license": {"name": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {"Problem": shape::schema_of_object(commands::PROBLEM), "Page": reading::page(), "PageRequest": reading::page_request()},
            "responses": {"Problem": {
                "description": "Why it was not done.",
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }},
        },
    })
}

fn rendered(operation: &Operation, described: Described) -> Value {
    let names = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = names.map(path_parameter).collect();
    parameters.extend(described.query);
    let mut done = json!({"description": "Done."});
    if let Some((media_type, schema)) = described.answer {
        done["content"] = json!({media_type: {"schema": schema}});
    }
    let mut rendered = json!({
        "operationId": operation.name,
        "summary": described.summary,
        "tags": [operation.path.split('/').nth(2).unwrap_or_default()],
        "parameters": parameters,
        "responses": {described.status: done, "default": {"$ref": "#/components/responses/Problem"}},
    });
    if matches!(operation.name, "getStartProcessForm" | "getUserTaskForm") {
        rendered["responses"]["204"] = json!({"description": "There is none."});
    }
    if let Some((media_type, schema)) = described.request {
        // A body without required properties may be missing.
        let is_required = schema.get("required").is_some();
        rendered["requestBody"] = json!({"required": is_required, "content": {media_type: {"schema": schema}}});
    }
    rendered
}

fn path_parameter(name: &str) -> Value {
    let is_text = matches!(name, "decisionEvaluationInstanceKey" | "id");
    let schema = if is_text { json!({"type": "string"}) } else { shape::key() };
    json!({"name": name, "in": "path", "required": true, "schema": schema})
}
