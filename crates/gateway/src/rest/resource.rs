//! Resources: files that are deployed come as a form, all else is JSON.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap, HeaderValue};
use multer::{Constraints, Field, Multipart};
use protocol::{
    DecisionRequirementsMetadata, DecisionValue, DeploymentResource, DeploymentValue, FormMetadata, Key,
    ProcessMetadata, ResourceMetadata,
};

use super::disposition::Disposition;
use super::json::JsonObject;
use super::object::{Object, path_key};
use super::problem::Problem;
use crate::request::resource::{DeleteResource, DeployResources, FetchResource};
use crate::rest::no_answer::NoAnswer;
use crate::validation::excerpt;

/// Parts of one form. The files of a larger deployment are better deployed one after another.
const PARTS_MAX: usize = 1_000;

/// Names of parts.
const RESOURCES: &str = "resources";
const TENANT_ID: &str = "tenantId";

/// The files of a form, with the tenant. Parts of other names mean nothing, as in the reference.
pub(super) async fn deployment(headers: &HeaderMap, body: Bytes) -> Result<DeployResources, NoAnswer> {
    let media_type = headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(media_type).map_err(unreadable)?;
    // The body is there as a whole, within the limit of all bodies.
    let whole = tokio_stream::once(Ok::<_, Infallible>(body));
    let mut form = Multipart::with_constraints(whole, boundary, Constraints::new());
    let mut deployment = DeployResources::default();
    let mut parts = 0;
    while let Some(field) = form.next_field().await.map_err(unreadable)? {
        parts += 1;
        if parts > PARTS_MAX {
            return Err(Problem::bad_request(format!("The request has more than {PARTS_MAX} parts.")).into());
        }
        let header = field.headers().get(CONTENT_DISPOSITION).map(HeaderValue::as_bytes);
        let disposition = Disposition::read(header.unwrap_or_default());
        let Disposition { name, file_name } = disposition.map_err(|reason| {
            Problem::bad_request(format!("The request body is not multipart/form-data that can be read: {reason}."))
        })?;
        match name.as_deref() {
            Some(RESOURCES) => deployment.resources.push(resource(file_name, field).await?),
            Some(TENANT_ID) => deployment.tenant_id = field.text().await.map_err(unreadable)?,
            _ => {}
        }
    }
    if deployment.resources.is_empty() {
        return Err(Problem::bad_request("Required part 'resources' is not present.").into());
    }
    Ok(deployment)
}

async fn resource(name: Option<String>, field: Field<'_>) -> Result<DeploymentResource, Problem> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        let detail = "The part 'resources' has no file name. Its end says what is in the file: .bpmn, .xml, .dmn, .form or .rpa.";
        return Err(Problem::bad_request(detail));
    };
    let content = field.bytes().await.map_err(unreadable)?;
    Ok(DeploymentResource { resource_name: name.into(), resource: Arc::from(&content[..]) })
}

fn unreadable(error: multer::Error) -> Problem {
    let reason = error.to_string();
    Problem::bad_request(format!(
        "The request body is not multipart/form-data that can be read: {}.",
        excerpt_of_reason(&reason)
    ))
}

/// The library quotes what clients send.
fn excerpt_of_reason(reason: &str) -> String {
    let (sentence, quoted) = reason.split_once(": ").unwrap_or((reason, ""));
    if quoted.is_empty() { sentence.to_owned() } else { format!("{sentence}: {}", excerpt(quoted)) }
}

pub(super) fn deployed(key: Key, value: &DeploymentValue) -> Vec<u8> {
    let processes = value.processes_metadata.iter().map(|process| ("processDefinition", process_definition(process)));
    let decisions = value.decisions_metadata.iter().map(|value| ("decisionDefinition", decision_definition(value)));
    let graphs = value.decision_requirements_metadata.iter();
    let graphs = graphs.map(|graph| ("decisionRequirements", decision_requirements(graph)));
    let forms = value.form_metadata.iter().map(|found| ("form", form(found)));
    let resources = value.resource_metadata.iter().map(|found| ("resource", kept_resource(found)));
    let found = processes.chain(decisions).chain(graphs).chain(forms).chain(resources);
    let mut json = JsonObject::new();
    json.key("deploymentKey", key).text("tenantId", &value.tenant_id);
    json.objects("deployments", found.map(|(kind, found)| one_of(kind, found)));
    json.finish()
}

/// One thing that was found in a file; the other kinds are null.
fn one_of(kind: &str, found: JsonObject) -> JsonObject {
    let mut found = Some(found);
    let mut json = JsonObject::new();
    for name in ["processDefinition", "decisionDefinition", "decisionRequirements", "form", "resource"] {
        json.object_or_null(name, if name == kind { found.take() } else { None });
    }
    json
}

fn process_definition(metadata: &ProcessMetadata) -> JsonObject {
    let mut json = JsonObject::new();
    json.text("processDefinitionId", &metadata.bpmn_process_id);
    json.number("processDefinitionVersion", metadata.version).text("resourceName", &metadata.resource_name);
    json.text("tenantId", &metadata.tenant_id).key("processDefinitionKey", metadata.process_definition_key);
    json
}

fn decision_definition(value: &DecisionValue) -> JsonObject {
    let mut json = JsonObject::new();
    json.text("decisionDefinitionId", &value.decision_id).number("version", value.version);
    json.text("name", &value.decision_name).text("tenantId", &value.tenant_id);
    json.text("decisionRequirementsId", &value.decision_requirements_id);
    json.key("decisionDefinitionKey", value.decision_key);
    json.key("decisionRequirementsKey", value.decision_requirements_key);
    json
}

fn decision_requirements(metadata: &DecisionRequirementsMetadata) -> JsonObject {
    let mut json = JsonObject::new();
    json.text("decisionRequirementsId", &metadata.decision_requirements_id);
    json.text("decisionRequirementsName", &metadata.decision_requirements_name);
    json.number("version", metadata.decision_requirements_version).text("resourceName", &metadata.resource_name);
    json.text("tenantId", &metadata.tenant_id).key("decisionRequirementsKey", metadata.decision_requirements_key);
    json
}

fn form(metadata: &FormMetadata) -> JsonObject {
    let mut json = JsonObject::new();
    json.text("formId", &metadata.form_id).number("version", metadata.version);
    json.text("resourceName", &metadata.resource_name).text("tenantId", &metadata.tenant_id);
    json.key("formKey", metadata.form_key);
    json
}

fn kept_resource(metadata: &ResourceMetadata) -> JsonObject {
    let mut json = JsonObject::new();
    json.text("resourceId", &metadata.resource_id).text("resourceName", &metadata.resource_name);
    json.number("version", metadata.version).text("tenantId", &metadata.tenant_id);
    json.key("resourceKey", metadata.resource_key);
    json
}

pub(super) fn fetch(resource_key: &str) -> Result<FetchResource, NoAnswer> {
    Ok(FetchResource { resource_key: path_key("resourceKey", resource_key)? })
}

/// A resource that is only kept, without its content.
pub(super) fn fetched(metadata: &ResourceMetadata) -> Vec<u8> {
    let mut json = JsonObject::new();
    json.text("resourceName", &metadata.resource_name).number("version", metadata.version);
    json.text_or_null("versionTag", &metadata.version_tag).text("resourceId", &metadata.resource_id);
    json.text("tenantId", &metadata.tenant_id).key("resourceKey", metadata.resource_key);
    json.finish()
}

pub(super) fn deletion(resource_key: &str, body: &[u8]) -> Result<DeleteResource, NoAnswer> {
    let mut object = Object::read(body)?;
    let request = DeleteResource {
        resource_key: path_key("resourceKey", resource_key)?,
        deletes_history: object.take("deleteHistory")?.unwrap_or(false),
        operation_reference: object.take_operation_reference()?,
    };
    object.finish()?;
    Ok(request)
}

pub(super) fn deleted(resource_key: Key) -> Vec<u8> {
    let mut json = JsonObject::new();
    json.key("resourceKey", resource_key).null("batchOperation");
    json.finish()
}

#[cfg(test)]
mod tests {
    use protocol::PartitionId;
    use serde_json::{Value, json};

    use super::*;

    async fn read(media_type: &str, body: impl Into<Bytes>) -> Result<DeployResources, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, media_type.parse().expect("a value"));
        deployment(&headers, body.into()).await.map_err(|no_answer| match no_answer {
            NoAnswer::Problem(problem) if problem.status == 400 => problem.detail,
            other => panic!("{other:?}"),
        })
    }

    fn part(disposition: &str, content: &str) -> String {
        format!(
            "--b\r\nContent-Disposition: form-data; {disposition}\r\nContent-Type: application/octet-stream\r\n\r\n{content}\r\n"
        )
    }

    #[tokio::test]
    async fn files_come_with_their_names_and_the_tenant() {
        let form = [
            part(r#"name="resources"; filename="größe.bpmn""#, "<a/>\r\n--c"),
            part(r#"name="note""#, "nothing"),
            part(r#"name="resources"; filename="b.dmn""#, ""),
            part(r#"name="tenantId""#, "<default>"),
            "--b--\r\n".to_owned(),
        ];
        let media_type = "multipart/form-data; charset=ISO-8859-1; boundary=b";
        let request = read(media_type, form.concat()).await.unwrap();
        let resources: Vec<(&str, &[u8])> =
            request.resources.iter().map(|resource| (&*resource.resource_name, &*resource.resource)).collect();
        assert_eq!(resources, [("größe.bpmn", &b"<a/>\r\n--c"[..]), ("b.dmn", b"")]);
        assert_eq!(request.tenant_id, "<default>");
    }

    #[tokio::test]
    async fn what_is_no_form_is_refused() {
        let media_type = "multipart/form-data; boundary=b";
        let file = part(r#"name="resources"; filename="a.bpmn""#, "<a/>");
        for (media_type, body, sentence) in [
            ("multipart/form-data", "--b--\r\n".to_owned(), "The request body is not multipart/form-data"),
            (media_type, file.clone(), "The request body is not multipart/form-data that can be read"),
            (media_type, file[..file.len() - 8].to_owned(), "The request body is not multipart/form-data"),
            (media_type, String::new(), "The request body is not multipart/form-data"),
            (media_type, "--b--\r\n".to_owned(), "Required part 'resources' is not present."),
            (media_type, part(r#"name="resource"; filename="a.bpmn""#, "") + "--b--\r\n", "Required part 'resources'"),
            (media_type, part(r#"name="resources""#, "<a/>") + "--b--\r\n", "The part 'resources' has no file name"),
            (media_type, file.repeat(PARTS_MAX + 1) + "--b--\r\n", "The request has more than 1000 parts."),
        ] {
            let found = read(media_type, body).await.map(|_| ()).unwrap_err();
            assert!(found.starts_with(sentence), "{sentence}: {found}");
        }
    }

    /// One thing of each kind.
    fn one_of_each(key: Key) -> DeploymentValue {
        let process = ProcessMetadata {
            bpmn_process_id: "p".into(),
            version: 2,
            version_tag: "".into(),
            process_definition_key: key,
            resource_name: "p.bpmn".into(),
            checksum: Arc::default(),
            duplicate: false,
            tenant_id: "<default>".into(),
            deployment_key: key,
        };
        let decision = DecisionValue {
            decision_id: "d".into(),
            decision_name: "D".into(),
            version: 1,
            version_tag: "".into(),
            decision_key: key,
            decision_requirements_id: "g".into(),
            decision_requirements_key: key,
            duplicate: false,
            deployment_key: key,
            tenant_id: "<default>".into(),
        };
        let graph = DecisionRequirementsMetadata {
            decision_requirements_id: "g".into(),
            decision_requirements_name: "G".into(),
            decision_requirements_version: 1,
            decision_requirements_key: key,
            namespace: "".into(),
            resource_name: "g.dmn".into(),
            checksum: Arc::default(),
            duplicate: false,
            tenant_id: "<default>".into(),
        };
        let form = FormMetadata {
            form_id: "f".into(),
            version: 3,
            version_tag: "".into(),
            form_key: key,
            resource_name: "f.form".into(),
            checksum: Arc::default(),
            duplicate: false,
            deployment_key: key,
            tenant_id: "<default>".into(),
        };
        let kept = ResourceMetadata {
            resource_id: "r".into(),
            version: 4,
            resource_key: key,
            resource_name: "r.rpa".into(),
            tenant_id: "<default>".into(),
            ..ResourceMetadata::default()
        };
        DeploymentValue {
            processes_metadata: vec![process],
            decisions_metadata: vec![decision],
            decision_requirements_metadata: vec![graph],
            form_metadata: vec![form],
            resource_metadata: vec![kept],
            tenant_id: "<default>".into(),
            ..DeploymentValue::default()
        }
    }

    #[test]
    fn each_thing_that_was_found_has_all_kinds_but_one_as_null() {
        let key = Key::new(PartitionId(1), 1);
        let value = one_of_each(key);
        assert_eq!(
            serde_json::from_slice::<Value>(&fetched(&value.resource_metadata[0])).unwrap(),
            json!({"resourceName": "r.rpa", "version": 4, "versionTag": null, "resourceId": "r", "tenantId": "<default>",
                "resourceKey": key.to_string()})
        );
        let found: Value = serde_json::from_slice(&deployed(key, &value)).unwrap();
        assert_eq!(
            found["deployments"][0],
            json!({"processDefinition": {"processDefinitionId": "p", "processDefinitionVersion": 2,
                "resourceName": "p.bpmn", "tenantId": "<default>", "processDefinitionKey": key.to_string()},
                "decisionDefinition": null, "decisionRequirements": null, "form": null, "resource": null})
        );
        assert_eq!(
            found["deployments"][3]["form"],
            json!({"formId": "f", "version": 3, "resourceName": "f.form", "tenantId": "<default>",
                "formKey": key.to_string()})
        );
        let kinds = ["processDefinition", "decisionDefinition", "decisionRequirements", "form", "resource"];
        for (index, kind) in kinds.iter().enumerate() {
            let one = found["deployments"][index].as_object().unwrap();
            let given: Vec<_> =
                one.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str()).collect();
            assert_eq!((one.len(), given), (5, vec![*kind]));
        }
    }

    #[test]
    fn a_deletion_may_say_that_the_history_stays() {
        for body in ["", "{}", r#"{"deleteHistory":false}"#] {
            let request = deletion("11", body.as_bytes()).unwrap();
            assert_eq!((request.resource_key, request.deletes_history), (11, false));
        }
        assert!(deletion("11", br#"{"deleteHistory":true}"#).unwrap().deletes_history);
        assert!(deletion("order", b"").is_err());
    }
}
