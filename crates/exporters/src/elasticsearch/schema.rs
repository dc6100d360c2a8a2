//! What has to be there before the first record: templates that say how records are stored, and the policy that deletes old
//! indices.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use protocol::{Text, ValueType};
use serde_json::{Map, Value, json};
use ureq::http::Method;

use super::Flavour;
use super::bulk::{dashed, index_beginning};
use super::client::{Answer, Client, RequestError};
use super::settings::{IndexSettings, Retention, Settings};

/// How the fields of each value type are stored, in a short form: `keyword` for a field of that type, `stored` for one that
/// cannot be searched for, an object for an object.
const MAPPINGS: &str = include_str!("mappings.json");
/// Version of the templates.
const TEMPLATE_VERSION: u32 = 1;
/// A term has at most 32,766 bytes, and a character at most 4 of them.
const WORD_CHARACTERS_MAX: u32 = 8_191;

/// What had to be made could not be.
#[derive(Debug, thiserror::Error)]
pub(super) enum SchemaError {
    #[error("{what} could not be made: {source}")]
    NotSent { what: String, source: RequestError },
    #[error("{what} could not be made: {}", answer.told())]
    Refused { what: String, answer: Answer },
}

/// What a target needs.
pub(super) struct Schema {
    flavour: Flavour,
    /// The value types that are sent.
    types: Vec<ValueType>,
    /// The versions for which everything is there.
    made: Mutex<BTreeSet<String>>,
    mappings: Map<String, Value>,
}

impl Schema {
    pub fn new(flavour: Flavour, types: Vec<ValueType>) -> Schema {
        let mappings = serde_json::from_str(MAPPINGS).expect("the mappings are an object; a test reads them");
        Schema { flavour, types, made: Mutex::default(), mappings }
    }

    /// The target may be another one now, or an empty one.
    pub fn forget(&self) {
        self.made.lock().clear();
    }

    /// Makes what records of a version need, unless it was made before. Everybody else waits meanwhile.
    pub fn ensure(&self, client: &Client, settings: &Settings, version: &Text) -> Result<(), SchemaError> {
        let mut made = self.made.lock();
        if made.contains(version.as_str()) {
            return Ok(());
        }
        let managed = settings.retention.as_ref().filter(|retention| retention.is_managed);
        if let Some(retention) = managed.filter(|retention| retention.is_enabled) {
            self.make_policy(client, &settings.index.prefix, retention)?;
        }
        if settings.index.creates_templates {
            let component = component_name(&settings.index.prefix, version);
            let path = format!("/_component_template/{component}");
            put(client, &format!("the component template {component}"), &path, &component_template(&settings.index))?;
            for of in &self.types {
                let name = index_beginning(&settings.index.prefix, *of, version);
                let template = self.index_template(*of, version, settings);
                put(client, &format!("the index template {name}"), &format!("/_index_template/{name}"), &template)?;
            }
        }
        match managed {
            Some(retention) if retention.is_enabled => self.apply_policy(client, &settings.index.prefix, retention)?,
            Some(retention) => self.undo_policy(client, &settings.index.prefix, retention)?,
            None => {}
        }
        made.insert(version.as_str().to_owned());
        Ok(())
    }

    fn index_template(&self, of: ValueType, version: &str, settings: &Settings) -> Value {
        let IndexSettings { prefix, shards, replicas, template_priority, refresh_interval, .. } = &*settings.index;
        let mapping = self.mappings.get(of.name());
        let shards = shards.unwrap_or_else(|| mapping.map_or(1, |mapping| mapping["shards"].as_u64().unwrap_or(1)));
        let mut index = json!({
            "number_of_shards": shards, "number_of_replicas": replicas.unwrap_or(1), "index.queries.cache.enabled": false,
        });
        let retention = settings.retention.as_ref().filter(|retention| retention.is_enabled);
        if let (Flavour::Elasticsearch, Some(retention)) = (self.flavour, retention) {
            index["index.lifecycle.name"] = json!(retention.policy);
        }
        if let Some(interval) = refresh_interval {
            index["index.refresh_interval"] = json!(interval);
        }
        let mut value = json!({ "dynamic": false });
        if let Some(mapping) = mapping {
            value["properties"] = fields(&mapping["fields"]);
        }
        json!({
            "index_patterns": [format!("{}_*", index_beginning(prefix, of, version))],
            "composed_of": [component_name(prefix, version)],
            "priority": template_priority,
            "version": TEMPLATE_VERSION,
            "template": {
                "settings": index,
                "aliases": { format!("{prefix}-{}", dashed(of)): {} },
                "mappings": { "properties": { "value": value } },
            },
        })
    }

    fn make_policy(&self, client: &Client, prefix: &str, retention: &Retention) -> Result<(), SchemaError> {
        let Retention { minimum_age, policy, .. } = retention;
        let what = format!("the retention policy {policy}");
        match self.flavour {
            Flavour::Elasticsearch => {
                let phases = json!({ "delete": { "min_age": minimum_age, "actions": { "delete": {} } } });
                put(client, &what, &format!("/_ilm/policy/{policy}"), &json!({ "policy": { "phases": phases } }))
            }
            Flavour::OpenSearch => {
                let path = format!("/_plugins/_ism/policies/{policy}");
                let found = ask(client, &what, Method::GET, &path, &[])?;
                let body = serde_json::from_slice::<Value>(&found.body).unwrap_or_default();
                let path = match (found.status.as_u16(), body["_seq_no"].as_i64(), body["_primary_term"].as_i64()) {
                    (404, ..) => path,
                    // A change says of what: of what was found.
                    (200, Some(number), Some(term)) => {
                        format!("{path}?if_seq_no={number}&if_primary_term={term}")
                    }
                    _ => return Err(SchemaError::Refused { what, answer: found }),
                };
                put(client, &what, &path, &state_policy(prefix, minimum_age))
            }
        }
    }

    /// Indices that were made before there was a policy follow it too.
    fn apply_policy(&self, client: &Client, prefix: &str, retention: &Retention) -> Result<(), SchemaError> {
        let policy = &retention.policy;
        let what = format!("the retention policy {policy} for the indices that there are");
        let (method, path, body) = match self.flavour {
            Flavour::Elasticsearch => {
                let path = format!("/{prefix}_*/_settings?allow_no_indices=true");
                (Method::PUT, path, json!({ "index.lifecycle.name": policy }))
            }
            Flavour::OpenSearch => {
                (Method::POST, format!("/_plugins/_ism/add/{prefix}_*"), json!({ "policy_id": policy }))
            }
        };
        let answer = ask(client, &what, method, &path, &bytes(&body))?;
        // There may be none.
        if answer.status.is_success() || answer.status.as_u16() == 404 {
            return Ok(());
        }
        Err(SchemaError::Refused { what, answer })
    }

    /// No index is deleted any more, not even one that was made while there was a policy.
    fn undo_policy(&self, client: &Client, prefix: &str, retention: &Retention) -> Result<(), SchemaError> {
        let policy = &retention.policy;
        let what = format!("the end of the retention policy {policy}");
        let requests = match self.flavour {
            Flavour::Elasticsearch => {
                let path = format!("/{prefix}_*/_settings?allow_no_indices=true");
                vec![(Method::PUT, path, bytes(&json!({ "index.lifecycle.name": null })))]
            }
            Flavour::OpenSearch => vec![
                (Method::POST, format!("/_plugins/_ism/remove/{prefix}_*"), Vec::new()),
                (Method::DELETE, format!("/_plugins/_ism/policies/{policy}"), Vec::new()),
            ],
        };
        for (method, path, body) in requests {
            let answer = ask(client, &what, method, &path, &body)?;
            match answer.status.as_u16() {
                // There may be none.
                200..=299 | 404 => {}
                // A server without policies has nothing to undo. That is no reason to hold up records.
                400 | 405 => tracing::warn!(
                    policy,
                    answer = answer.told(),
                    "the target does not undo the retention policy; look whether it has any, and take it off the indices by hand"
                ),
                _ => return Err(SchemaError::Refused { what, answer }),
            }
        }
        Ok(())
    }
}

fn component_name(prefix: &str, version: &str) -> String {
    format!("{prefix}-{}", version.to_ascii_lowercase())
}

/// What all records have. What is unknown is stored and cannot be searched for, so that no record is refused for it.
fn component_template(index: &IndexSettings) -> Value {
    let envelope = json!({
        "position": "long", "sourceRecordPosition": "long", "key": "long", "timestamp": "date", "intent": "keyword",
        "partitionId": "integer", "recordType": "keyword", "rejectionType": "keyword", "rejectionReason": "text",
        "valueType": "keyword", "brokerVersion": "keyword", "recordVersion": "integer", "sequence": "long",
        "operationReference": "long", "batchOperationReference": "long", "authorizations": "stored",
        "incarnation": "long", "number": "long",
    });
    json!({
        "version": TEMPLATE_VERSION,
        "template": {
            "settings": {
                "number_of_shards": index.shards.unwrap_or(1),
                "number_of_replicas": index.replicas.unwrap_or(1),
                "index.queries.cache.enabled": false,
            },
            "mappings": { "dynamic": false, "properties": fields(&envelope) },
        },
    })
}

/// Fields in the long form.
fn fields(short: &Value) -> Value {
    let long = |kind: &Value| match kind {
        Value::String(kind) if kind == "stored" => json!({ "type": "object", "enabled": false }),
        // A longer word is stored and cannot be searched for: as one term it would be too long, and the record refused.
        Value::String(kind) if kind == "keyword" => json!({ "type": kind, "ignore_above": WORD_CHARACTERS_MAX }),
        Value::String(kind) => json!({ "type": kind }),
        inner => json!({ "properties": fields(inner) }),
    };
    let named = short.as_object().into_iter().flatten();
    Value::Object(named.map(|(name, kind)| (name.clone(), long(kind))).collect())
}

fn state_policy(prefix: &str, minimum_age: &str) -> Value {
    json!({ "policy": {
        "description": "Deletes indices of exported records when they are old.",
        "default_state": "kept",
        "states": [
            {
                "name": "kept",
                "actions": [],
                "transitions": [{ "state_name": "deleted", "conditions": { "min_index_age": minimum_age } }],
            },
            { "name": "deleted", "actions": [{ "delete": {} }], "transitions": [] },
        ],
        "ism_template": [{ "index_patterns": [format!("{prefix}_*")], "priority": 1 }],
    } })
}

fn bytes(body: &Value) -> Vec<u8> {
    serde_json::to_vec(body).expect("a JSON value can be written")
}

fn ask(client: &Client, what: &str, method: Method, path: &str, body: &[u8]) -> Result<Answer, SchemaError> {
    let sent = client.send(method, path, "application/json", body);
    sent.map_err(|source| SchemaError::NotSent { what: what.to_owned(), source })
}

fn put(client: &Client, what: &str, path: &str, body: &Value) -> Result<(), SchemaError> {
    let answer = ask(client, what, Method::PUT, path, &bytes(body))?;
    match answer.status.is_success() {
        true => Ok(()),
        false => Err(SchemaError::Refused { what: what.to_owned(), answer }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_mapping_is_of_a_value_type_and_of_kinds_that_there_are() {
        const KINDS: &[&str] = &["keyword", "text", "long", "integer", "boolean", "date", "stored"];
        fn check(path: &str, value: &Value) {
            match value {
                Value::String(kind) => assert!(KINDS.contains(&kind.as_str()), "{path}: {kind}"),
                Value::Object(fields) => {
                    fields.iter().for_each(|(name, value)| check(&format!("{path}.{name}"), value))
                }
                other => panic!("{path}: {other}"),
            }
        }
        let schema = Schema::new(Flavour::Elasticsearch, Vec::new());
        for (name, mapping) in &schema.mappings {
            assert!(ValueType::ALL.iter().any(|of| of.name() == name), "{name} is no value type");
            check(name, &mapping["fields"]);
        }
    }

    /// What Zeebe's mappings name and records of this engine do not have.
    const NOT_EXPORTED: [&str; 4] = [
        "DECISION_REQUIREMENTS.deploymentKey",
        "DEPLOYMENT.decisionRequirementsMetadata.deploymentKey",
        "PROCESS_INSTANCE_MODIFICATION.activateInstructions.ancestorScopeKeys",
        "RESOURCE.resource",
    ];

    /// What is exported under another name than the one that is mapped cannot be searched for.
    #[test]
    fn what_is_mapped_is_what_is_exported() {
        fn names(path: &str, fields: &Value, found: &mut Vec<String>) {
            for (name, kind) in fields.as_object().into_iter().flatten() {
                let path = format!("{path}.{name}");
                names(&path, kind, found);
                found.push(path);
            }
        }
        let rows = include_str!("../../../protocol/tests/data/exported_fields.tsv").lines();
        let exported: HashMap<&str, Vec<&str>> = rows
            .map(|row| row.split_once('\t').expect("two columns"))
            .map(|(value_type, fields)| (value_type, fields.split(' ').collect()))
            .collect();
        let mut missing = Vec::new();
        for (value_type, mapping) in &Schema::new(Flavour::Elasticsearch, Vec::new()).mappings {
            let Some(fields) = exported.get(value_type.as_str()) else { continue };
            let mut mapped = Vec::new();
            names(value_type, &mapping["fields"], &mut mapped);
            mapped.retain(|path| !fields.contains(&&path[value_type.len() + 1..]));
            missing.extend(mapped);
        }
        missing.sort();
        assert_eq!(missing, NOT_EXPORTED);
    }
}
