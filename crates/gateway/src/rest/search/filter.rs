//! Filters of searches.

use readmodel::Pattern;
use readmodel::query::{
    Condition, Entity, Field, GLOBAL_LISTENERS, Kind, PROCESS_INSTANCES, Test, USER_TASKS, Value, VariableScope, moment,
};
use serde_json::value::RawValue;

use crate::rest::object::{Object, Property, invalid, number_of_key};
use crate::rest::problem::Problem;
use crate::validation::excerpt;

/// Groups are not inside each other any deeper.
const DEPTH_MAX: usize = 4;
/// A filter has no more conditions, in all groups together.
const CONDITIONS_MAX: usize = 200;
/// No pattern is longer.
const PATTERN_BYTES_MAX: usize = 1_000;

/// The condition that a filter says.
pub(super) fn read(entity: &'static Entity, filter: Object<'_>) -> Result<Condition, Problem> {
    let condition = group(entity, filter, 0)?;
    let count = count(&condition);
    if count > CONDITIONS_MAX {
        return Err(invalid(format!(
            "The filter has {count} conditions, but at most {CONDITIONS_MAX} are possible. Use $in for many values."
        )));
    }
    Ok(condition)
}

/// Groups, tests, variables and tags.
fn count(condition: &Condition) -> usize {
    match condition {
        Condition::All(inner) | Condition::Any(inner) => 1 + inner.iter().map(count).sum::<usize>(),
        Condition::Is(_, tests) | Condition::Variable(_, tests) | Condition::VariableOf(_, _, tests) => 1 + tests.len(),
        Condition::Tag(_) | Condition::OfInstance(_) | Condition::WithinElement(_) | Condition::Seen { .. } => 1,
    }
}

fn group(entity: &'static Entity, filter: Object<'_>, depth: usize) -> Result<Condition, Problem> {
    if depth > DEPTH_MAX {
        return Err(invalid(format!(
            "The filter has groups of alternatives in each other more than {DEPTH_MAX} deep."
        )));
    }
    let is_of_instances = std::ptr::eq(entity, &PROCESS_INSTANCES);
    let is_of_tasks = std::ptr::eq(entity, &USER_TASKS);
    let mut conditions = Vec::new();
    for (name, value) in filter.into_properties() {
        match &*name {
            "$or" | "or" => {
                let groups: Vec<Object<'_>> = list(&name, value)?;
                let groups = groups.into_iter().map(|of| group(entity, of, depth + 1));
                let groups = groups.collect::<Result<Vec<_>, _>>()?;
                // No alternatives are no restriction, and a group that says nothing is met by everything.
                if !groups.is_empty() && !groups.iter().any(says_nothing) {
                    conditions.push(Condition::Any(groups));
                }
            }
            "variables" if is_of_instances => {
                for mut variable in list::<Vec<Object<'_>>>(&name, value)? {
                    conditions.push(self::variable(&mut variable)?);
                    variable.finish()?;
                }
            }
            "processInstanceVariables" | "localVariables" if is_of_tasks => {
                let scope = match &*name {
                    "localVariables" => VariableScope::ElementInstance,
                    _ => VariableScope::ProcessInstance,
                };
                for mut variable in list::<Vec<Object<'_>>>(&name, value)? {
                    let (name, tests) = tested_variable(&mut variable)?;
                    conditions.push(Condition::VariableOf(scope, name, tests));
                    variable.finish()?;
                }
            }
            "tags" if is_of_instances || is_of_tasks => {
                let tags: Vec<protocol::Text> = list(&name, value)?;
                conditions.extend(tags.into_iter().map(|tag| Condition::Tag(tag.to_string())));
            }
            // A list of conditions, each of which one of the event types meets.
            "eventTypes" if std::ptr::eq(entity, &GLOBAL_LISTENERS) => {
                let field = entity.field(&name).ok_or_else(|| unknown(&name))?;
                for given in list::<Vec<&RawValue>>(&name, value)? {
                    conditions.push(Condition::All(vec![Condition::Is(field, tests(field, given)?)]));
                }
            }
            _ => {
                let field = entity.field(&name).filter(|field| field.is_filter()).ok_or_else(|| unknown(&name))?;
                let tests = tests(field, value)?;
                if !tests.is_empty() {
                    conditions.push(Condition::Is(field, tests));
                }
            }
        }
    }
    Ok(Condition::All(conditions))
}

/// Whether every row meets a condition.
fn says_nothing(condition: &Condition) -> bool {
    matches!(condition, Condition::All(conditions) if conditions.is_empty())
}

fn list<'a, T: Property<'a>>(name: &str, value: &'a RawValue) -> Result<T, Problem> {
    T::read(value).ok_or_else(|| cannot_be_parsed(name, T::EXPECTED, value))
}

fn variable(variable: &mut Object<'_>) -> Result<Condition, Problem> {
    tested_variable(variable).map(|(name, tests)| Condition::Variable(name, tests))
}

fn tested_variable(variable: &mut Object<'_>) -> Result<(String, Vec<Test>), Problem> {
    let name: String = variable.require("name")?;
    let value: &RawValue = variable
        .take("value")?
        .ok_or_else(|| invalid("The value of a variable must not be null. Say null as a text."))?;
    let tests = tests_of(Family::Text, "value", Kind::Value, value)?;
    Ok((name, tests))
}

/// Which operators there are for a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Text,
    Key,
    Number,
    Enumeration,
    Boolean,
}

impl Family {
    fn of(kind: Kind) -> Family {
        match kind {
            Kind::Key | Kind::KeyOrMinusOne => Family::Key,
            Kind::Integer | Kind::Instant => Family::Number,
            Kind::Enumeration(_) => Family::Enumeration,
            Kind::Boolean | Kind::IsTruncated => Family::Boolean,
            _ => Family::Text,
        }
    }
}

fn tests(field: &'static Field, value: &RawValue) -> Result<Vec<Test>, Problem> {
    tests_of(Family::of(field.kind), field.name, field.kind, value)
}

fn tests_of(family: Family, name: &str, kind: Kind, value: &RawValue) -> Result<Vec<Test>, Problem> {
    if !value.get().starts_with('{') {
        return Ok(vec![Test::Equal(self::value(name, kind, value)?)]);
    }
    let operators = Object::read(value.get().as_bytes())?;
    let mut tests = Vec::new();
    for (operator, operand) in operators.into_properties() {
        let one = || self::value(name, kind, operand);
        let many = || -> Result<Vec<Value>, Problem> {
            let values: Vec<&RawValue> = list(&operator, operand)?;
            values.into_iter().map(|operand| self::value(name, kind, operand)).collect()
        };
        let is_ordered = family == Family::Number;
        let is_text = matches!(family, Family::Text | Family::Enumeration);
        match &*operator {
            "$eq" => tests.push(Test::Equal(one()?)),
            "$neq" if family != Family::Boolean => tests.push(Test::NotEqual(one()?)),
            "$exists" => {
                let exists = bool::read(operand);
                tests.push(Test::Exists(exists.ok_or_else(|| cannot_be_parsed(&operator, bool::EXPECTED, operand))?));
            }
            // Clients send empty lists with every search, and mean nothing by them.
            "$in" => tests.extend(Some(many()?).filter(|of| !of.is_empty()).map(Test::In)),
            "$notIn" if !is_ordered => tests.extend(Some(many()?).filter(|of| !of.is_empty()).map(Test::NotIn)),
            "$gt" if is_ordered => tests.push(Test::Greater(one()?)),
            "$gte" if is_ordered => tests.push(Test::GreaterOrEqual(one()?)),
            "$lt" if is_ordered => tests.push(Test::Less(one()?)),
            "$lte" if is_ordered => tests.push(Test::LessOrEqual(one()?)),
            "$like" if is_text => {
                let pattern = text(&operator, operand)?;
                if pattern.len() > PATTERN_BYTES_MAX {
                    return Err(invalid(format!(
                        "The pattern for {name} has {} bytes, but at most {PATTERN_BYTES_MAX} are possible.",
                        pattern.len()
                    )));
                }
                tests.push(like(kind, &pattern));
            }
            _ => return Err(unknown(&operator)),
        }
    }
    Ok(tests)
}

fn text(name: &str, value: &RawValue) -> Result<String, Problem> {
    String::read(value).ok_or_else(|| cannot_be_parsed(name, String::EXPECTED, value))
}

/// Names that are like a pattern, or a pattern for texts.
fn like(kind: Kind, pattern: &str) -> Test {
    let Kind::Enumeration(names) = kind else { return Test::Like(pattern.to_owned()) };
    let pattern = Pattern::new(pattern);
    let numbers = names.iter().zip(0..).filter(|(name, _)| pattern.is_like(name));
    Test::In(numbers.map(|(_, number)| Value::Integer(number)).collect())
}

fn value(name: &str, kind: Kind, given: &RawValue) -> Result<Value, Problem> {
    match kind {
        Kind::Key | Kind::KeyOrMinusOne => {
            let key = i64::read(given).or_else(|| number_of_key(&String::read(given)?));
            key.map(Value::Integer).ok_or_else(|| {
                let text = String::read(given).unwrap_or_else(|| given.get().to_owned());
                invalid(format!(
                    "The provided {name} '{}' is not a valid key. Expected a numeric value. Did you pass an entity id instead of an entity key?.",
                    excerpt(&text)
                ))
            })
        }
        Kind::Integer => {
            let number = i32::read(given).map(|number| Value::Integer(number.into()));
            number.ok_or_else(|| cannot_be_parsed(name, i32::EXPECTED, given))
        }
        Kind::Boolean | Kind::IsTruncated => {
            let flag = bool::read(given).map(|flag| Value::Integer(flag.into()));
            flag.ok_or_else(|| cannot_be_parsed(name, bool::EXPECTED, given))
        }
        Kind::Instant => {
            let text = text(name, given)?;
            moment(&text).map(Value::Integer).ok_or_else(|| {
                invalid(format!(
                    "The provided {name} '{}' cannot be parsed as a date according to RFC 3339, section 5.6.",
                    excerpt(&text)
                ))
            })
        }
        Kind::Enumeration(names) => {
            let text = text(name, given)?;
            let number = names.iter().zip(0..).find(|(known, _)| **known == text);
            number.map(|(_, number)| Value::Integer(number)).ok_or_else(|| {
                Problem::bad_request(format!(
                    "Unexpected value '{}' for enum field '{name}'. Use any of the following values: [{}]",
                    excerpt(&text),
                    names.join(", ")
                ))
            })
        }
        _ => text(name, given).map(Value::Text),
    }
}

fn unknown(name: &str) -> Problem {
    Problem::bad_request(format!("Request property [{}] cannot be parsed", excerpt(name)))
}

fn cannot_be_parsed(name: &str, expected: &str, value: &RawValue) -> Problem {
    Problem::bad_request(format!(
        "Request property [{name}] cannot be parsed: expected {expected}, but it is {}.",
        excerpt(value.get())
    ))
}

#[cfg(test)]
mod tests {
    use readmodel::query::{JOBS, VARIABLES};

    use super::*;

    fn condition(entity: &'static Entity, filter: &str) -> Result<Condition, Problem> {
        read(entity, Object::read(filter.as_bytes()).expect("an object"))
    }

    #[test]
    fn what_clients_send_with_every_search_is_no_restriction() {
        let filter =
            r#"{"state":{"$in":[]},"$or":[],"tags":[],"variables":[],"startDate":null,"processDefinitionId":{}}"#;
        let Ok(Condition::All(conditions)) = condition(&PROCESS_INSTANCES, filter) else { panic!("it is a filter") };
        assert!(conditions.is_empty(), "{conditions:?}");
    }

    #[test]
    fn operators_and_values_are_read() {
        let tested = |entity, filter: &str| match condition(entity, filter) {
            Ok(Condition::All(conditions)) => match &conditions[..] {
                [Condition::Is(_, tests) | Condition::Variable(_, tests) | Condition::VariableOf(_, _, tests)] => {
                    tests.clone()
                }
                other => panic!("{filter}: {other:?}"),
            },
            other => panic!("{filter}: {other:?}"),
        };
        let number = Value::Integer;
        for (filter, test) in [
            (r#"{"state":"COMPLETED"}"#, Test::Equal(number(1))),
            (r#"{"state":{"$like":"*ED"}}"#, Test::In(vec![number(1), number(2), number(3)])),
            (r#"{"processInstanceKey":"7"}"#, Test::Equal(number(7))),
            (r#"{"processInstanceKey":{"$notIn":["7",8]}}"#, Test::NotIn(vec![number(7), number(8)])),
            (r#"{"startDate":{"$gte":"1970-01-01T00:00:01Z"}}"#, Test::GreaterOrEqual(number(1_000))),
            (r#"{"hasIncident":true}"#, Test::Equal(number(1))),
            (r#"{"variables":[{"name":"n","value":"1"}]}"#, Test::Equal(Value::Text("1".into()))),
            (r#"{"endDate":{"$exists":false}}"#, Test::Exists(false)),
        ] {
            assert_eq!(tested(&PROCESS_INSTANCES, filter), [test], "{filter}");
        }
        for (filter, test) in [
            (r#"{"assignee":{"$exists":false}}"#, Test::Exists(false)),
            (
                r#"{"candidateGroup":{"$in":["a","b"]}}"#,
                Test::In(vec![Value::Text("a".into()), Value::Text("b".into())]),
            ),
            (r#"{"priority":{"$gte":50}}"#, Test::GreaterOrEqual(number(50))),
            (r#"{"state":"CREATED"}"#, Test::Equal(number(1))),
            (r#"{"localVariables":[{"name":"n","value":{"$like":"1*"}}]}"#, Test::Like("1*".into())),
        ] {
            assert_eq!(tested(&USER_TASKS, filter), [test], "{filter}");
        }
        let events = condition(&GLOBAL_LISTENERS, r#"{"eventTypes":["all",{"$neq":"creating"}]}"#).expect("a filter");
        let Condition::All(events) = events else { panic!("{events:?}") };
        assert_eq!(events.len(), 2, "each may be met by another one");
        let wrong = condition(&GLOBAL_LISTENERS, r#"{"eventTypes":["done"]}"#).expect_err("there is no such event");
        assert!(wrong.detail.contains("'done' for enum field 'eventTypes'"), "{wrong:?}");
        assert_eq!(tested(&JOBS, r#"{"retries":{"$gt":1,"$lt":3}}"#).len(), 2);
    }

    #[test]
    fn an_empty_alternative_is_met_by_everything() {
        for filter in [
            r#"{"$or":[{},{"state":"ACTIVE"}]}"#,
            r#"{"$or":[{"state":"ACTIVE"},{"processDefinitionId":{}}]}"#,
            r#"{"$or":[{"$or":[{},{"state":"ACTIVE"}]},{"state":"COMPLETED"}]}"#,
        ] {
            let Ok(Condition::All(conditions)) = condition(&PROCESS_INSTANCES, filter) else { panic!("{filter}") };
            assert!(conditions.is_empty(), "{filter}: {conditions:?}");
        }
        let some = condition(&PROCESS_INSTANCES, r#"{"$or":[{"state":"COMPLETED"},{"state":"ACTIVE"}]}"#);
        let Ok(Condition::All(conditions)) = some else { panic!("a filter") };
        assert!(matches!(&conditions[..], [Condition::Any(groups)] if groups.len() == 2), "{conditions:?}");
        let wrong = condition(&PROCESS_INSTANCES, r#"{"$or":[{},{"colour":1}]}"#);
        assert!(wrong.is_err(), "what is beside it is read");
    }

    #[test]
    fn mistakes_are_told() {
        for (entity, filter, detail) in [
            (&PROCESS_INSTANCES, r#"{"colour":1}"#, "Request property [colour] cannot be parsed"),
            (&PROCESS_INSTANCES, r#"{"startDate":"soon"}"#, "The provided startDate 'soon' cannot be parsed as a date"),
            (&PROCESS_INSTANCES, r#"{"state":"GONE"}"#, "Unexpected value 'GONE' for enum field 'state'"),
            (
                &PROCESS_INSTANCES,
                r#"{"processInstanceKey":"x"}"#,
                "The provided processInstanceKey 'x' is not a valid key",
            ),
            (&PROCESS_INSTANCES, r#"{"processInstanceKey":{"$like":"x"}}"#, "[$like] cannot be parsed"),
            (&PROCESS_INSTANCES, r#"{"$or":{}}"#, "expected a list"),
            (&PROCESS_INSTANCES, r#"{"variables":[{"value":"1"}]}"#, "No name provided."),
            (&VARIABLES, r#"{"variables":[]}"#, "[variables] cannot be parsed"),
            (&JOBS, r#"{"retries":1.5}"#, "expected a whole number"),
        ] {
            let problem = condition(entity, filter).expect_err(filter);
            assert!(problem.status.as_u16() == 400 && problem.detail.contains(detail), "{filter}: {problem:?}");
        }
        let many: Vec<String> = (0..201).map(|number| format!(r#"{{"processDefinitionId":"p{number}"}}"#)).collect();
        let many = format!(r#"{{"$or":[{}]}}"#, many.join(","));
        let detail = condition(&PROCESS_INSTANCES, &many).expect_err("too many").detail;
        assert!(detail.contains("at most 200 are possible"), "{detail}");
        let deep = (0..6).fold("{}".to_owned(), |inner, _| format!(r#"{{"$or":[{{"state":"ACTIVE"}},{inner}]}}"#));
        assert!(condition(&PROCESS_INSTANCES, &deep).expect_err("too deep").detail.contains("4 deep"));
    }
}
