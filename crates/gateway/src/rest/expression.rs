//! Expressions in JSON.

use protocol::{ExpressionValue, Text};

use super::json::JsonObject;
use super::object::{GivenKey, Object, Violations};
use crate::request::expression::EvaluateExpression;
use crate::rest::no_answer::NoAnswer;

pub(super) fn evaluation(body: &[u8]) -> Result<EvaluateExpression, NoAnswer> {
    let mut object = Object::read(body)?;
    let expression: Option<Text> = object.take("expression")?;
    let mut violations = Violations::default();
    let request = EvaluateExpression {
        expression: violations.require_text("expression", expression),
        scope_key: object.take::<GivenKey>("scopeKey")?.map(|key| key.0),
        variables: object.take("variables")?.unwrap_or_default(),
        tenant_id: object.take("tenantId")?.unwrap_or_default(),
    };
    object.finish()?;
    violations.check()?;
    Ok(request)
}

pub(super) fn evaluated(value: &ExpressionValue) -> Vec<u8> {
    let mut json = JsonObject::with_capacity(256 + value.expression.len() + value.result_value.len());
    json.text("expression", &value.expression).variables("result", &value.result_value);
    let warning = |message: &Text| {
        let mut json = JsonObject::new();
        json.text("message", message);
        json
    };
    // There are no secrets.
    json.objects("warnings", value.warnings.iter().map(warning)).texts("referencedSecrets", &[]);
    json.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_expression_is_required_and_a_scope_is_a_key() {
        let request = evaluation(br#"{"expression":"=1","scopeKey":"7","variables":{"a":1}}"#).unwrap();
        assert_eq!((&*request.expression, request.scope_key), ("=1", Some(7)));
        for (body, sentence) in [
            ("{}", "No expression provided."),
            (r#"{"expression":" "}"#, "No expression provided."),
            (r#"{"expression":"=1","scopeKey":"a"}"#, "Request property [scopeKey]"),
        ] {
            let Err(NoAnswer::Problem(problem)) = evaluation(body.as_bytes()) else { panic!("{body}") };
            assert!(problem.detail.starts_with(sentence), "{problem:?}");
        }
    }

    #[test]
    fn the_result_is_the_json_that_it_is() {
        let value = ExpressionValue {
            expression: "=a".into(),
            result_value: "[1,null]".into(),
            warnings: vec!["w".into()],
            ..ExpressionValue::default()
        };
        let found: Value = serde_json::from_slice(&evaluated(&value)).expect("JSON");
        let expected =
            json!({"expression": "=a", "result": [1, null], "warnings": [{"message": "w"}], "referencedSecrets": []});
        assert_eq!(found, expected);
    }
}
