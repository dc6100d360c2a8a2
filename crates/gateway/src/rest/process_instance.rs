//! Process instances in JSON.

use protocol::{
    Key, ProcessInstanceCreationValue, ProcessInstanceResultValue, RuntimeInstruction, RuntimeInstructionType, Text,
};

use super::json::JsonObject;
use super::object::{GivenKey, Object, Violations, invalid, path_key};
use super::problem::Problem;
use crate::request::creation::{CreateProcessInstance, CreateProcessInstanceWithResult};
use crate::request::process_instance::CancelProcessInstance;
use crate::rest::no_answer::NoAnswer;

/// The bytes of a created instance in JSON besides its variables, about.
const CREATED_BYTES: usize = 320;

/// A creation, with or without waiting for its end.
#[derive(Debug)]
pub(super) enum Creation {
    Started(CreateProcessInstance),
    Awaited(CreateProcessInstanceWithResult),
}

pub(super) fn creation(body: &[u8]) -> Result<Creation, NoAnswer> {
    if body.is_empty() {
        return Err(Problem::bad_request("Required request body is missing.").into());
    }
    let mut object = Object::read(body)?;
    let process_definition_id: Option<Text> = object.take("processDefinitionId")?;
    let process_definition_key: Option<GivenKey> = object.take("processDefinitionKey")?;
    let mut violations = Violations::default();
    violations.require_one_of(
        ["processDefinitionId", "processDefinitionKey"],
        [process_definition_id.is_some(), process_definition_key.is_some()],
    );
    violations.check()?;
    let start_instructions = object.take_objects("startInstructions")?.into_iter().map(start_instruction);
    let runtime_instructions = object.take_objects("runtimeInstructions")?.into_iter().map(runtime_instruction);
    let creation = CreateProcessInstance {
        bpmn_process_id: process_definition_id.unwrap_or_default(),
        version: object.take("processDefinitionVersion")?.unwrap_or(-1),
        process_definition_key: process_definition_key.map_or(-1, |key| key.0),
        variables: object.take("variables")?.unwrap_or_default(),
        tenant_id: object.take("tenantId")?.unwrap_or_default(),
        start_instructions: start_instructions.collect::<Result<_, Problem>>()?,
        runtime_instructions: runtime_instructions.collect::<Result<_, Problem>>()?,
        tags: object.take("tags")?.unwrap_or_default(),
        business_id: object.take("businessId")?.unwrap_or_default(),
        operation_reference: object.take_operation_reference()?,
    };
    let is_awaited = object.take("awaitCompletion")?.unwrap_or(false);
    let fetch_variables = object.take("fetchVariables")?.unwrap_or_default();
    let request_timeout = object.take("requestTimeout")?.unwrap_or_default();
    object.finish()?;
    Ok(match is_awaited {
        false => Creation::Started(creation),
        true => Creation::Awaited(CreateProcessInstanceWithResult { creation, fetch_variables, request_timeout }),
    })
}

fn start_instruction(mut object: Object<'_>) -> Result<Text, Problem> {
    let element_id = object.require("elementId")?;
    object.finish()?;
    Ok(element_id)
}

fn runtime_instruction(mut object: Object<'_>) -> Result<RuntimeInstruction, Problem> {
    const TERMINATE: &str = "TERMINATE_PROCESS_INSTANCE";
    if let Some(other) = object.take::<String>("type")?.filter(|kind| kind != TERMINATE) {
        let detail =
            format!("Unexpected value '{other}' for the type of a runtime instruction. It must be {TERMINATE}.");
        return Err(invalid(detail));
    }
    let after_element_id = object.require("afterElementId")?;
    object.finish()?;
    Ok(RuntimeInstruction { instruction_type: RuntimeInstructionType::TerminateProcessInstance, after_element_id })
}

pub(super) fn cancellation(process_instance_key: &str, body: &[u8]) -> Result<CancelProcessInstance, NoAnswer> {
    let mut object = Object::read(body)?;
    let request = CancelProcessInstance {
        process_instance_key: path_key("processInstanceKey", process_instance_key)?,
        operation_reference: object.take_operation_reference()?,
    };
    object.finish()?;
    Ok(request)
}

/// What all created instances have.
struct Created<'a> {
    process_definition_key: Key,
    process_definition_id: &'a str,
    version: i32,
    process_instance_key: Key,
    tenant_id: &'a str,
    tags: &'a [Text],
    variables: &'a str,
    business_id: &'a str,
}

impl Created<'_> {
    fn render(&self) -> Vec<u8> {
        let mut json = JsonObject::with_capacity(CREATED_BYTES + self.variables.len());
        json.text("processDefinitionId", self.process_definition_id);
        json.number("processDefinitionVersion", self.version).text("tenantId", self.tenant_id);
        json.variables("variables", self.variables);
        json.key("processDefinitionKey", self.process_definition_key);
        json.key("processInstanceKey", self.process_instance_key);
        json.texts("tags", self.tags).text_or_null("businessId", self.business_id);
        json.finish()
    }
}

pub(super) fn created(value: &ProcessInstanceCreationValue) -> Vec<u8> {
    let created = Created {
        process_definition_key: value.process_definition_key,
        process_definition_id: &value.bpmn_process_id,
        version: value.version,
        process_instance_key: value.process_instance_key,
        tenant_id: &value.tenant_id,
        tags: &value.tags,
        variables: "",
        business_id: &value.business_id,
    };
    created.render()
}

pub(super) fn ended(value: &ProcessInstanceResultValue) -> Vec<u8> {
    let created = Created {
        process_definition_key: value.process_definition_key,
        process_definition_id: &value.bpmn_process_id,
        version: value.version,
        process_instance_key: value.process_instance_key,
        tenant_id: &value.tenant_id,
        tags: &value.tags,
        variables: &value.variables,
        business_id: &value.business_id,
    };
    created.render()
}

#[cfg(test)]
mod tests {
    use protocol::PartitionId;

    use super::*;

    fn refused(body: &str) -> String {
        match creation(body.as_bytes()) {
            Err(NoAnswer::Problem(problem)) => {
                assert_eq!(problem.status.as_u16(), 400);
                problem.detail
            }
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn what_official_clients_send_is_understood() {
        let body = br#"{"processDefinitionVersion":-1,"variables":{"a":1},"startInstructions":[],"runtimeInstructions":[],"tenantId":"<default>","awaitCompletion":false,"requestTimeout":0,"fetchVariables":[],"tags":[],"processDefinitionId":"p"}"#;
        let Creation::Started(request) = creation(body).unwrap() else { panic!("it waits") };
        assert_eq!((&*request.bpmn_process_id, request.version, request.process_definition_key), ("p", -1, -1));
        assert_eq!(request.variables.check().unwrap(), r#"{"a":1}"#);

        let body = br#"{"processDefinitionKey":"2251799813685249","variables":{},"awaitCompletion":true,"requestTimeout":10000,"fetchVariables":["a"],"tags":["t"],"operationReference":7,"startInstructions":[{"elementId":"e"}],"runtimeInstructions":[{"type":"TERMINATE_PROCESS_INSTANCE","afterElementId":"f"}]}"#;
        let Creation::Awaited(request) = creation(body).unwrap() else { panic!("it does not wait") };
        assert_eq!((request.request_timeout, &*request.fetch_variables[0]), (10_000, "a"));
        let request = request.creation;
        assert_eq!((request.process_definition_key, request.operation_reference), (2_251_799_813_685_249, Some(7)));
        assert_eq!((&*request.start_instructions[0], &*request.tags[0]), ("e", "t"));
        assert_eq!(request.runtime_instructions[0].after_element_id, "f");
    }

    #[test]
    fn mistakes_are_named() {
        for (body, detail) in [
            ("", "Required request body is missing."),
            ("{}", "At least one of [processDefinitionId, processDefinitionKey] is required."),
            (r#"{"processDefinitionId":"p","processDefinitionKey":"5"}"#, "Only one of"),
            (r#"{"processDefinitionId":"p","operationReference":0}"#, "operationReference is '0'"),
            (r#"{"processDefinitionId":"p","startInstructions":[{}]}"#, "No elementId provided."),
            (r#"{"processDefinitionId":"p","runtimeInstructions":[{"type":"X"}]}"#, "Unexpected value 'X'"),
            (r#"{"processDefinitionId":"p","bpmnProcessId":"p"}"#, "Request property [bpmnProcessId] cannot be parsed"),
        ] {
            let found = refused(body);
            assert!(found.contains(detail), "{found}");
        }
    }

    #[test]
    fn an_ended_instance_has_its_variables_as_they_are() {
        let value = ProcessInstanceResultValue {
            bpmn_process_id: "p".into(),
            version: 3,
            process_definition_key: Key::new(PartitionId(1), 1),
            process_instance_key: Key::new(PartitionId(1), 2),
            variables: r#"{"a":1.0}"#.into(),
            tags: vec!["t".into()],
            tenant_id: "<default>".into(),
            business_id: "b-1".into(),
        };
        assert_eq!(
            String::from_utf8(ended(&value)).unwrap(),
            r#"{"processDefinitionId":"p","processDefinitionVersion":3,"tenantId":"<default>","variables":{"a":1.0},"processDefinitionKey":"2251799813685249","processInstanceKey":"2251799813685250","tags":["t"],"businessId":"b-1"}"#
        );
    }
}
