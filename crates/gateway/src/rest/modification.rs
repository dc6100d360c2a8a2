//! Modifying and migrating process instances in JSON.

use protocol::{
    Key, MigrationMappingInstruction, ModificationActivateInstruction, ModificationMoveInstruction,
    ModificationTerminateInstruction, ModificationVariableInstruction,
};

use super::object::{GivenKey, Object, Violations, invalid, path_key};
use super::problem::Problem;
use crate::request::process_instance::{MigrateProcessInstance, ModifyProcessInstance};
use crate::rest::no_answer::NoAnswer;
use crate::validation::{Variables, excerpt};

type Read<T> = Result<T, NoAnswer>;

pub(super) fn modification(process_instance_key: &str, body: &[u8]) -> Read<ModifyProcessInstance> {
    let mut object = Object::read(body)?;
    let request = ModifyProcessInstance {
        process_instance_key: path_key("processInstanceKey", process_instance_key)?,
        activate: all(&mut object, "activateInstructions", activate)?,
        moves: all(&mut object, "moveInstructions", move_instruction)?,
        terminate: all(&mut object, "terminateInstructions", |object| Ok(terminate(object)?))?,
        operation_reference: object.take_operation_reference()?,
    };
    object.finish()?;
    Ok(request)
}

fn all<'a, T>(object: &mut Object<'a>, name: &str, read: impl Fn(Object<'a>) -> Read<T>) -> Read<Vec<T>> {
    object.take_objects(name)?.into_iter().map(read).collect()
}

fn activate(mut object: Object<'_>) -> Read<ModificationActivateInstruction> {
    let instruction = ModificationActivateInstruction {
        element_id: object.require("elementId")?,
        ancestor_scope_key: key(&mut object, "ancestorElementInstanceKey")?,
        variable_instructions: all(&mut object, "variableInstructions", variables)?,
    };
    object.finish()?;
    Ok(instruction)
}

fn variables(mut object: Object<'_>) -> Read<ModificationVariableInstruction> {
    let variables: Option<Variables> = object.take("variables")?;
    let element_id = object.take("scopeId")?.unwrap_or_default();
    object.finish()?;
    let Some(variables) = variables else { return Err(invalid("No variables provided.").into()) };
    Ok(ModificationVariableInstruction { variables: variables.check()?, element_id })
}

fn terminate(mut object: Object<'_>) -> Result<ModificationTerminateInstruction, Problem> {
    let element_instance_key: Option<GivenKey> = object.take("elementInstanceKey")?;
    let element_id: Option<_> = object.take("elementId")?;
    object.finish()?;
    let mut violations = Violations::default();
    let names = ["elementInstanceKey", "elementId"];
    violations.require_one_of(names, [element_instance_key.is_some(), element_id.is_some()]);
    violations.check()?;
    Ok(ModificationTerminateInstruction {
        element_instance_key: element_instance_key.map_or(Key::NONE, |key| Key::from_raw(key.0)),
        element_id: element_id.unwrap_or_default(),
    })
}

fn move_instruction(mut object: Object<'_>) -> Read<ModificationMoveInstruction> {
    let source = object.take("sourceElementInstruction")?;
    let ancestor = object.take("ancestorScopeInstruction")?;
    let mut instruction = ModificationMoveInstruction {
        target_element_id: object.require("targetElementId")?,
        variable_instructions: all(&mut object, "variableInstructions", variables)?,
        ..ModificationMoveInstruction::default()
    };
    object.finish()?;
    let Some(source) = source else { return Err(invalid("No sourceElementInstruction provided.").into()) };
    read_source(source, &mut instruction)?;
    if let Some(ancestor) = ancestor {
        read_ancestor(ancestor, &mut instruction)?;
    }
    Ok(instruction)
}

/// What is to end.
fn read_source(mut object: Object<'_>, instruction: &mut ModificationMoveInstruction) -> Result<(), Problem> {
    let kind: String = object.require("sourceType")?;
    match kind.as_str() {
        "byId" => instruction.source_element_id = object.require("sourceElementId")?,
        "byKey" => {
            let key: GivenKey = object.require("sourceElementInstanceKey")?;
            instruction.source_element_instance_key = Key::from_raw(key.0);
        }
        other => return Err(unexpected("sourceType", other, "byId, byKey")),
    }
    object.finish()
}

/// Where the target begins.
fn read_ancestor(mut object: Object<'_>, instruction: &mut ModificationMoveInstruction) -> Result<(), Problem> {
    let kind: String = object.require("ancestorScopeType")?;
    match kind.as_str() {
        "direct" => {
            let key: GivenKey = object.require("ancestorElementInstanceKey")?;
            instruction.ancestor_scope_key = Key::from_raw(key.0);
        }
        "inferred" => instruction.infer_ancestor_scope = true,
        "sourceParent" => instruction.use_source_parent_as_ancestor = true,
        other => return Err(unexpected("ancestorScopeType", other, "direct, inferred, sourceParent")),
    }
    object.finish()
}

fn unexpected(name: &str, given: &str, known: &str) -> Problem {
    invalid(format!("Unexpected value '{}' for {name}. It must be one of: {known}.", excerpt(given)))
}

/// A key, or none for one that is to be found.
fn key(object: &mut Object<'_>, name: &str) -> Result<Key, Problem> {
    let key: Option<GivenKey> = object.take(name)?;
    Ok(key.filter(|key| key.0 > 0).map_or(Key::NONE, |key| Key::from_raw(key.0)))
}

pub(super) fn migration(process_instance_key: &str, body: &[u8]) -> Read<MigrateProcessInstance> {
    let mut object = Object::read(body)?;
    let process_instance_key = path_key("processInstanceKey", process_instance_key)?;
    let target: Option<GivenKey> = object.take("targetProcessDefinitionKey")?;
    let mapping: Vec<_> =
        object.take_objects("mappingInstructions")?.into_iter().map(mapping).collect::<Result<_, Problem>>()?;
    let operation_reference = object.take_operation_reference()?;
    object.finish()?;
    let mut violations = Violations::default();
    let target_process_definition_key = violations.require("targetProcessDefinitionKey", target.map(|key| key.0));
    let mapping = violations.require("mappingInstructions", Some(mapping).filter(|mapping| !mapping.is_empty()));
    violations.check()?;
    Ok(MigrateProcessInstance { process_instance_key, target_process_definition_key, mapping, operation_reference })
}

fn mapping(mut object: Object<'_>) -> Result<MigrationMappingInstruction, Problem> {
    let (source, target) = (object.take("sourceElementId")?, object.take("targetElementId")?);
    object.finish()?;
    let mut violations = Violations::default();
    let instruction = MigrationMappingInstruction {
        source_element_id: violations.require_text("sourceElementId", source),
        target_element_id: violations.require_text("targetElementId", target),
    };
    violations.check()?;
    Ok(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modify(body: &str) -> ModifyProcessInstance {
        modification("5", body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error:?}"))
    }

    #[test]
    fn what_official_clients_send_is_understood() {
        let request = modify(
            r#"{"activateInstructions":[{"elementId":"A","variableInstructions":[{"variables":{"a":1},"scopeId":"s"},{"variables":{},"scopeId":""}],"ancestorElementInstanceKey":"-1"}],"moveInstructions":[],"terminateInstructions":[{"elementInstanceKey":"8"},{"elementId":"B"}]}"#,
        );
        assert_eq!((request.process_instance_key, request.activate[0].ancestor_scope_key), (5, Key::NONE));
        let variables = &request.activate[0].variable_instructions;
        assert_eq!((&*variables[0].variables, &*variables[0].element_id), (r#"{"a":1}"#, "s"));
        let [by_key, by_id] = &request.terminate[..] else { panic!("there are two") };
        assert_eq!((by_key.element_instance_key, &*by_key.element_id), (Key::from_raw(8), ""));
        assert_eq!((by_id.element_instance_key, &*by_id.element_id), (Key::NONE, "B"));

        let request = migration(
            "5",
            br#"{"targetProcessDefinitionKey":"11","mappingInstructions":[{"sourceElementId":"a","targetElementId":"b"}]}"#,
        )
        .unwrap();
        assert_eq!((request.target_process_definition_key, &*request.mapping[0].target_element_id), (11, "b"));
    }

    #[test]
    fn instances_are_moved_from_and_to_wherever_is_said() {
        let request = modify(
            r#"{"moveInstructions":[
                {"sourceElementInstruction":{"sourceType":"byId","sourceElementId":"A"},"targetElementId":"B",
                 "ancestorScopeInstruction":{"ancestorScopeType":"direct","ancestorElementInstanceKey":"7"}},
                {"sourceElementInstruction":{"sourceType":"byKey","sourceElementInstanceKey":"9"},"targetElementId":"B",
                 "ancestorScopeInstruction":{"ancestorScopeType":"inferred"}},
                {"sourceElementInstruction":{"sourceType":"byId","sourceElementId":"A"},"targetElementId":"B",
                 "ancestorScopeInstruction":{"ancestorScopeType":"sourceParent"},"variableInstructions":[]}]}"#,
        );
        let [direct, inferred, parent] = &request.moves[..] else { panic!("there are three") };
        assert_eq!((&*direct.source_element_id, direct.ancestor_scope_key), ("A", Key::from_raw(7)));
        assert_eq!((inferred.source_element_instance_key, inferred.infer_ancestor_scope), (Key::from_raw(9), true));
        assert!(parent.use_source_parent_as_ancestor && !parent.infer_ancestor_scope);
    }

    #[test]
    fn mistakes_are_named_all_at_once() {
        let modified = |body: &str| modification("5", body.as_bytes()).map(|_| ());
        let migrated = |body: &str| migration("5", body.as_bytes()).map(|_| ());
        for (outcome, sentence) in [
            (modified(r#"{"activateInstructions":[{}]}"#), "No elementId provided."),
            (modified(r#"{"terminateInstructions":[{}]}"#), "At least one of [elementInstanceKey, elementId] is"),
            (modified(r#"{"terminateInstructions":[{"elementId":"a","elementInstanceKey":"1"}]}"#), "Only one of"),
            (modified(r#"{"moveInstructions":[{"targetElementId":"a"}]}"#), "No sourceElementInstruction provided."),
            (
                modified(
                    r#"{"moveInstructions":[{"targetElementId":"a","sourceElementInstruction":{"sourceType":"x"}}]}"#,
                ),
                "Unexpected value 'x' for sourceType. It must be one of: byId, byKey.",
            ),
            (modified(r#"{"activateInstructions":[{"elementId":"a","variableInstructions":[{}]}]}"#), "No variables"),
            (modified(r#"{"activate":[]}"#), "Request property [activate] cannot be parsed"),
            (migrated("{}"), "No targetProcessDefinitionKey provided. No mappingInstructions provided."),
            (
                migrated(r#"{"targetProcessDefinitionKey":"1","mappingInstructions":[{}]}"#),
                "No sourceElementId provided. No targetElementId provided.",
            ),
        ] {
            let Err(NoAnswer::Problem(problem)) = outcome else { panic!("{sentence}: {outcome:?}") };
            assert!(problem.detail.starts_with(sentence), "{problem:?}");
        }
    }
}
