//! Variables in JSON.

use super::object::{Object, invalid, path_key};
use crate::request::variable::SetVariables;
use crate::rest::no_answer::NoAnswer;
use crate::validation::Variables;

pub(super) fn change(element_instance_key: &str, body: &[u8]) -> Result<SetVariables, NoAnswer> {
    let mut object = Object::read(body)?;
    let variables: Option<Variables> = object.take("variables")?;
    let request = SetVariables {
        element_instance_key: path_key("elementInstanceKey", element_instance_key)?,
        is_local: object.take("local")?.unwrap_or(false),
        operation_reference: object.take_operation_reference()?,
        variables: variables.ok_or_else(|| invalid("No variables provided."))?,
    };
    object.finish()?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_must_be_given() {
        let request = change("9", br#"{"variables":{"x":1},"local":true,"operationReference":4}"#).unwrap();
        assert_eq!((request.element_instance_key, request.is_local, request.operation_reference), (9, true, Some(4)));
        assert!(!change("9", br#"{"variables":{}}"#).unwrap().is_local);
        for wrong in ["", "{}", r#"{"variables":null}"#, r#"{"variables":[]}"#, r#"{"variables":{},"local":"yes"}"#] {
            assert!(matches!(change("9", wrong.as_bytes()), Err(NoAnswer::Problem(_))), "{wrong}");
        }
    }
}
