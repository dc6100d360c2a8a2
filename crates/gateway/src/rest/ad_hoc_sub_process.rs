//! Ad-hoc sub-processes in JSON.

use protocol::Text;

use super::object::{Object, Violations, invalid, path_key};
use crate::request::ad_hoc_sub_process::ActivateElements;
use crate::rest::no_answer::NoAnswer;
use crate::validation::Variables;

pub(super) fn activation(ad_hoc_sub_process_instance_key: &str, body: &[u8]) -> Result<ActivateElements, NoAnswer> {
    let mut object = Object::read(body)?;
    let request = ActivateElements {
        ad_hoc_sub_process_instance_key: path_key("adHocSubProcessInstanceKey", ad_hoc_sub_process_instance_key)?,
        elements: elements(&mut object, "elements")?,
        cancel_remaining_instances: object.take("cancelRemainingInstances")?.unwrap_or(false),
    };
    object.finish()?;
    if request.elements.is_empty() {
        return Err(invalid("No elements provided.").into());
    }
    Ok(request)
}

/// Ids of elements, each with the variables that it begins with.
pub(super) fn elements(object: &mut Object<'_>, name: &str) -> Result<Vec<(Text, Variables)>, NoAnswer> {
    let mut violations = Violations::default();
    let mut elements = Vec::new();
    for (index, mut object) in object.take_objects(name)?.into_iter().enumerate() {
        let element_id = object.take("elementId")?;
        let element_id = violations.require_text(&format!("{name}[{index}].elementId"), element_id);
        elements.push((element_id, object.take("variables")?.unwrap_or_default()));
        object.finish()?;
    }
    violations.check()?;
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_must_be_named() {
        let body = br#"{"elements":[{"elementId":"a","variables":{"x":1}},{"elementId":"a"}],"cancelRemainingInstances":true}"#;
        let request = activation("9", body).unwrap();
        assert_eq!((request.ad_hoc_sub_process_instance_key, request.elements.len()), (9, 2));
        assert!(request.cancel_remaining_instances);
        assert!(!activation("9", br#"{"elements":[{"elementId":"a"}]}"#).unwrap().cancel_remaining_instances);
        for wrong in ["", "{}", r#"{"elements":[]}"#, r#"{"elements":[{}]}"#, r#"{"elements":[{"elementId":1}]}"#] {
            assert!(matches!(activation("9", wrong.as_bytes()), Err(NoAnswer::Problem(_))), "{wrong}");
        }
        assert!(matches!(activation("x", body), Err(NoAnswer::Problem(_))));
        let blank = br#"{"elements":[{"elementId":"a"},{"elementId":" "},{"elementId":null}]}"#;
        let Err(NoAnswer::Problem(problem)) = activation("9", blank) else { panic!("an element has no id") };
        assert_eq!(problem.detail, "No elements[1].elementId provided. No elements[2].elementId provided.");
    }
}
