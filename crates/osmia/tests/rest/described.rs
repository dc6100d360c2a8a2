//! What is asked and answered is as the served document describes it. Every test of this program checks that with each of its
//! requests.

use std::sync::OnceLock;

use super::*;

/// The document of the first server that this program talks to; all are alike.
pub fn document(server: &Server) -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let (status, text) = Server::request(&server.rest, "GET", "/v2/openapi.json", "");
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).expect("JSON")
    })
}

/// Checks a request that was answered, and its answer, if the operation exists.
pub fn check(document: &Value, (method, path, body): (&str, &str, &str), answer: &Answer) {
    let path = path.split('?').next().unwrap_or_default();
    let Some(operation) = operation(document, method, path) else { return };
    let here = format!("{method} {path}");
    if answer.status >= 400 {
        assert_eq!(answer.header("content-type"), Some(PROBLEM), "{here}");
        return conforms(document, &document["components"]["schemas"]["Problem"], &answer.json(), &here);
    }
    if let Ok(body) = serde_json::from_str::<Value>(body) {
        conforms(document, &operation["requestBody"]["content"][JSON]["schema"], &body, &here);
    }
    let described = &operation["responses"][answer.status.to_string()];
    assert!(described.is_object(), "{here} answers {}, which is not described", answer.status);
    match described["content"].as_object() {
        None => assert_eq!(answer.body, "", "{here}"),
        Some(content) => {
            let media_type = answer.header("content-type").expect("a media type");
            let schema = content.get(media_type).unwrap_or_else(|| panic!("{here} answers {media_type}"));
            if media_type == JSON {
                conforms(document, &schema["schema"], &answer.json(), &here);
            }
        }
    }
}

/// The description of an operation. Where words and parameters both fit, the words are meant.
fn operation<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let paths = document["paths"].as_object().expect("paths");
    let given: Vec<&str> = path.split('/').collect();
    let fits = |described: &&String| {
        let described: Vec<&str> = described.split('/').collect();
        let mut parts = described.iter().zip(&given);
        described.len() == given.len() && parts.all(|(part, given)| part.starts_with('{') || part == given)
    };
    let found = paths.keys().filter(fits).min_by_key(|described| described.matches('{').count())?;
    paths[found].get(method.to_lowercase())
}

/// Whether a value is as a schema says.
fn conforms(document: &Value, schema: &Value, value: &Value, here: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        return conforms(document, document.pointer(&reference[1..]).expect("it is there"), value, here);
    }
    if let Some(kinds) = schema["oneOf"].as_array() {
        let is_object = value.is_object();
        if value.is_null() && schema["nullable"] == true {
            return;
        }
        let kind = kinds.iter().find(|kind| (kind["type"] == "object") == is_object).expect("one of each");
        return conforms(document, kind, value, here);
    }
    if schema["type"].is_null() {
        // Any JSON.
        return;
    }
    let is_right = match value {
        Value::Null => schema["nullable"] == true,
        Value::Bool(_) => schema["type"] == "boolean",
        Value::Number(number) => schema["type"] == "integer" && (number.is_i64() || number.is_u64()),
        Value::String(text) => {
            let names = schema["enum"].as_array();
            let is_key = schema["pattern"].is_string();
            schema["type"] == "string"
                && names.is_none_or(|names| names.contains(value))
                && (!is_key || text.parse::<i64>().is_ok())
        }
        Value::Array(items) => {
            items.iter().for_each(|item| conforms(document, &schema["items"], item, here));
            schema["type"] == "array"
        }
        Value::Object(object) => {
            for name in schema["required"].as_array().into_iter().flatten() {
                assert!(object.contains_key(name.as_str().expect("a name")), "{here}: {name} is missing in {value}");
            }
            for (name, inner) in object {
                match schema["properties"].get(name) {
                    Some(schema) => conforms(document, schema, inner, &format!("{here} {name}")),
                    None => assert_ne!(schema["additionalProperties"], false, "{here}: {name} is not described"),
                }
            }
            schema["type"] == "object"
        }
    };
    assert!(is_right, "{here}: {value} is not {schema}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_served() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let document = connection.tell("GET", "/v2/openapi.json", "");
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.")), "{document}");
    assert!(operation(&document, "GET", "/v2/process-instances/7").is_some());
    assert_eq!(connection.ask("HEAD", "/v2/openapi.json", "").status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_key_in_a_path_is_refused_by_every_operation() {
    let (server, _data) = start(&["--clock-control"]).await;
    let mut connection = Connection::open(&server);
    let mut count = 0;
    for (path, operations) in document(&server)["paths"].as_object().expect("paths") {
        let parts: Vec<&str> = path.split('/').collect();
        if !parts.iter().any(|part| part.ends_with("Key}")) {
            continue;
        }
        let given: Vec<&str> =
            parts.iter().map(|part| if part.starts_with('{') { "!INVALID!" } else { part }).collect();
        for method in operations.as_object().expect("operations").keys().map(|method| method.to_uppercase()) {
            let body = if method == "GET" || method == "DELETE" { "" } else { "{}" };
            let answer = connection.ask(&method, &given.join("/"), body);
            assert_eq!(answer.status, 400, "{method} {path}: {}", answer.body);
            assert!(answer.body.contains("Key to be the number of a key"), "{method} {path}: {}", answer.body);
            count += 1;
        }
    }
    assert!(count >= 40, "{count} operations have keys in their paths");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_to_try_it_comes_from_the_node_alone() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let page = connection.ask("GET", "/swagger", "");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'none'")));
    let sources = page.body.split(['"', '\'']).filter(|part| part.starts_with('/') || part.contains("//"));
    let mut count = 0;
    for source in sources {
        let file = connection.ask("GET", source, "");
        assert_eq!(file.status, 200, "{source}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
        count += 1;
    }
    assert_eq!(count, 3, "{}", page.body);
    assert!(connection.ask("GET", "/swagger/LICENSE", "").body.contains("Apache License"));
    let refused = connection.ask("POST", "/swagger", "");
    assert_eq!(refused.problem("/swagger").0, 404);
}
