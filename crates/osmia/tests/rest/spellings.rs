//! Values of variables: shown in one spelling, and found by any.

use super::*;

/// As clients may spell them, as they are shown (by the reference engine too), and other spellings that find them.
const VALUES: &[(&str, &str, &[&str])] = &[
    (r#""Z\u00fcrich""#, r#""Zürich""#, &[r#""Zürich""#, r#""Z\u00FCrich""#]),
    (
        r#"{"id": 7, "lines": [1, 2]}"#,
        r#"{"id":7,"lines":[1,2]}"#,
        &[r#"{"id":7,"lines":[1,2]}"#, "{ \"id\" : 7.0,\n\"lines\":[1e0, 2] }"],
    ),
    ("1.0", "1.0", &["1", "1.0", "1e0", "10E-1"]),
    ("1e-7", "1.0E-7", &["0.0000001", "1.0E-7"]),
    ("12345678.90", "1.23456789E7", &["12345678.9"]),
    (r#""a\/b \" \\ \n""#, r#""a/b \" \\ \n""#, &[r#""a/b \u0022 \u005c \n""#]),
    ("[ ]", "[]", &["[]", "[\t]"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_found_by_any_spelling_and_shown_in_one() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let long = format!("\"{}\"", "\\u00fc, ".repeat(100));
    let kept = long.replace("\\u00fc", "ü");
    let asked = [long.as_str(), kept.as_str()];
    let all = VALUES.iter().copied().chain([(long.as_str(), kept.as_str(), &asked[..])]);
    for (number, (given, shown, others)) in all.enumerate() {
        let name = format!("v{number}");
        let body = format!(r#"{{"processDefinitionId":"order","variables":{{"{name}" : {given} }}}}"#);
        let instance = connection.ask("POST", "/v2/process-instances", &body).json()["processInstanceKey"].clone();
        let mut find = |what: &str, filter: Value| {
            let body = json!({"filter": filter}).to_string();
            connection.ask("POST", &format!("/v2/{what}/search?truncateValues=false"), &body).json()["items"].clone()
        };
        let variables = find("variables", json!({"name": name}));
        assert_eq!((&variables[0]["value"], &variables[1]), (&json!(shown), &Value::Null), "{given}");
        let key = variables[0]["variableKey"].as_str().expect("a key");
        for other in others.iter().chain([&shown, &given]) {
            for (test, is_found) in [
                (json!(other), true),
                (json!({"$eq": other}), true),
                (json!({"$in": ["\"other\"", other]}), true),
                (json!({"$neq": other}), false),
                (json!({"$notIn": ["\"other\"", other]}), false),
                (json!({"$neq": "\"other\""}), true),
            ] {
                let found = find("variables", json!({"name": name, "value": test}));
                assert_eq!(found.as_array().map(Vec::len), Some(usize::from(is_found)), "{given} by {test}");
                let instances = find("process-instances", json!({"variables": [{"name": name, "value": test}]}));
                let expected = if is_found { json!([instance]) } else { json!([]) };
                let keys: Value =
                    instances.as_array().expect("items").iter().map(|of| of["processInstanceKey"].clone()).collect();
                assert_eq!(keys, expected, "{given} by {test}");
            }
        }
        let beginning: String = shown.chars().take(3).collect();
        let like = json!({"name": name, "value": {"$like": format!("{}*", beginning.replace('\\', "\\\\"))}});
        assert_eq!(find("variables", like.clone()).as_array().map(Vec::len), Some(1), "{like}");
        let one = connection.ask("GET", &format!("/v2/variables/{key}"), "").json();
        assert_eq!(one["value"], *shown, "{given}");
    }
    // Names in another order are another value, as on the reference.
    let reversed = json!({"filter": {"value": r#"{"lines":[1,2],"id":7}"#}}).to_string();
    assert_eq!(connection.ask("POST", "/v2/variables/search", &reversed).json()["items"], json!([]));
}
