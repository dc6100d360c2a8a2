//! From conditions to SQL with bound parameters.

use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, Value as Sqlite};

use super::condition::{Condition, Test, Value};
use super::entity::{Field, Filter, Kind};
use crate::comparable::comparable;

/// A part of a statement with its parameters, in their order.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Sql {
    pub text: String,
    pub parameters: Vec<Sqlite>,
}

impl Sql {
    pub fn of(text: impl Into<String>) -> Sql {
        Sql { text: text.into(), parameters: Vec::new() }
    }

    pub fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    pub fn bind(&mut self, value: impl Into<Sqlite>) -> &mut Self {
        self.text.push('?');
        self.parameters.push(value.into());
        self
    }

    pub fn append(&mut self, other: Sql) -> &mut Self {
        self.text.push_str(&other.text);
        self.parameters.extend(other.parameters);
        self
    }

    /// The parts in brackets with a word between them; `empty` for none.
    fn joined(parts: Vec<Sql>, word: &str, empty: &str) -> Sql {
        let mut joined = Sql::default();
        for part in parts {
            joined.push(if joined.text.is_empty() { "(" } else { word });
            joined.append(part);
        }
        if joined.text.is_empty() { Sql::of(empty) } else { joined.push(")").clone() }
    }

    pub fn all(parts: Vec<Sql>) -> Sql {
        Sql::joined(parts, " AND ", "1")
    }

    pub fn any(parts: Vec<Sql>) -> Sql {
        Sql::joined(parts, " OR ", "0")
    }
}

impl From<Value> for Sqlite {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Sqlite::Null,
            Value::Integer(number) => Sqlite::Integer(number),
            Value::Text(text) => Sqlite::Text(text),
        }
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(self.clone().into()))
    }
}

/// A condition as SQL. What is kept in other tables by number is looked up there first, so that the database sees numbers that it
/// has an index for.
pub(super) fn condition(connection: &Connection, condition: &Condition) -> rusqlite::Result<Sql> {
    Ok(match condition {
        Condition::All(conditions) => Sql::all(all(connection, conditions)?),
        Condition::Any(conditions) => {
            Sql::any(conditions.iter().map(|one| self::condition(connection, one)).collect::<Result<_, _>>()?)
        }
        Condition::Is(field, tests) => is(connection, field, tests)?,
        Condition::Variable(name, tests) => variable(name, tests),
        Condition::OfInstance(key) => {
            let mut sql = Sql::of("r.process_instance_key IN (WITH RECURSIVE below(key) AS (VALUES(");
            sql.bind(*key).push(
                ") UNION SELECT c.key FROM below JOIN process_instance c ON c.parent_process_instance_key = below.key) \
                 SELECT key FROM below)",
            );
            sql
        }
        Condition::WithinElement(key) => {
            // What contains an element instance is of the same process instance, for which there is an index; a called process
            // instance is the scope of what is in it.
            let mut sql = Sql::of(
                "r.element_instance_key IN (WITH RECURSIVE inside(key, instance) AS (\
                SELECT key, process_instance_key FROM element_instance WHERE key = ",
            );
            sql.bind(*key).push(
                " UNION SELECT i.key, i.process_instance_key FROM inside JOIN element_instance i \
                 ON i.process_instance_key = inside.instance AND i.scope_key = inside.key \
                 UNION SELECT c.key, c.key FROM inside JOIN process_instance c \
                 ON c.parent_process_instance_key = inside.instance AND c.parent_element_instance_key = inside.key) \
                 SELECT key FROM inside)",
            );
            sql
        }
        Condition::Tag(tag) => {
            let mut sql = Sql::of("EXISTS (SELECT 1 FROM json_each(p.tags) WHERE value = ");
            sql.bind(tag.clone()).push(")");
            sql
        }
    })
}

/// Conditions for the same row of another table are one.
fn all(connection: &Connection, conditions: &[Condition]) -> rusqlite::Result<Vec<Sql>> {
    let mut parts = Vec::new();
    let mut of_others: Vec<(&str, Vec<Sql>)> = Vec::new();
    for one in conditions {
        match one {
            Condition::Is(Field { filter: Filter::Exists { exists, column }, kind, .. }, given) => {
                let tested = tests_of(*kind, column, given);
                match of_others.iter_mut().find(|(known, _)| known == exists) {
                    Some((_, together)) => together.push(tested),
                    None => of_others.push((exists, vec![tested])),
                }
            }
            other => parts.push(condition(connection, other)?),
        }
    }
    parts.extend(of_others.into_iter().map(|(exists, together)| within(exists, Sql::all(together))));
    Ok(parts)
}

fn within(template: &str, inner: Sql) -> Sql {
    let (before, behind) = template.split_once("{}").unwrap_or((template, ""));
    let mut sql = Sql::of(before);
    sql.append(inner).push(behind);
    sql
}

fn is(connection: &Connection, field: &Field, given: &[Test]) -> rusqlite::Result<Sql> {
    Ok(match field.filter {
        // What no row has is never equal to anything.
        Filter::None | Filter::Column => tests_of(field.kind, field.sql, given),
        Filter::Exists { exists, column } => within(exists, tests_of(field.kind, column, given)),
        Filter::Via { on, select, column } => {
            let mut lookup = Sql::of(select);
            lookup.push(" WHERE ").append(tests(column, given));
            let mut statement = connection.prepare_cached(&lookup.text)?;
            let found = statement.query_map(rusqlite::params_from_iter(&lookup.parameters), |row| row.get(0))?;
            let found: Vec<i64> = found.collect::<rusqlite::Result<_>>()?;
            one_of(on, &found)
        }
    })
}

/// A number is one of those.
fn one_of(column: &str, numbers: &[i64]) -> Sql {
    match numbers {
        [] => Sql::of("0"),
        [number] => Sql::of(format!("{column} = {number}")),
        _ => {
            let list: Vec<String> = numbers.iter().map(i64::to_string).collect();
            Sql::of(format!("{column} IN ({})", list.join(",")))
        }
    }
}

/// What is a condition itself is not compared, so that an index with that condition can be used.
fn tests_of(kind: Kind, column: &str, given: &[Test]) -> Sql {
    match given {
        [Test::Equal(Value::Integer(flag))] if kind == Kind::Boolean => {
            Sql::of(format!("{}{column}", if *flag == 0 { "NOT " } else { "" }))
        }
        _ => tests(column, given),
    }
}

fn tests(column: &str, tests: &[Test]) -> Sql {
    Sql::all(tests.iter().map(|one| test(column, one)).collect())
}

fn test(column: &str, test: &Test) -> Sql {
    let compared = |operator: &str, value: &Value| {
        let mut sql = Sql::of(format!("{column} {operator} "));
        sql.bind(value.clone());
        sql
    };
    match test {
        Test::Equal(value) => compared("=", value),
        Test::NotEqual(value) => compared("IS NOT", value),
        Test::Exists(true) => Sql::of(format!("{column} IS NOT NULL")),
        Test::Exists(false) => Sql::of(format!("{column} IS NULL")),
        Test::Greater(value) => compared(">", value),
        Test::GreaterOrEqual(value) => compared(">=", value),
        Test::Less(value) => compared("<", value),
        Test::LessOrEqual(value) => compared("<=", value),
        Test::In(values) => in_list(column, values),
        Test::NotIn(values) => {
            let mut sql = Sql::of(format!("({column} IS NULL OR NOT "));
            sql.append(in_list(column, values)).push(")");
            sql
        }
        Test::Like(pattern) => {
            let mut sql = Sql::of(format!("{column} GLOB "));
            sql.bind(glob(pattern));
            sql
        }
    }
}

pub(super) fn in_list(column: &str, values: &[Value]) -> Sql {
    match values {
        [] => Sql::of("0"),
        [value] => {
            let mut sql = Sql::of(format!("{column} = "));
            sql.bind(value.clone());
            sql
        }
        _ => {
            // One parameter, however long the list is.
            let list = serde_json::Value::Array(values.iter().map(Value::to_json).collect());
            let mut sql = Sql::of(format!("{column} IN (SELECT value FROM json_each("));
            sql.bind(list.to_string()).push("))");
            sql
        }
    }
}

/// The pattern in the words of `GLOB`.
fn glob(pattern: &str) -> String {
    let mut glob = String::with_capacity(pattern.len() + 8);
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let literal = characters.next().unwrap_or('\\');
                if matches!(literal, '*' | '?' | '[') {
                    glob.extend(['[', literal, ']']);
                } else {
                    glob.push(literal);
                }
            }
            '[' => glob.push_str("[[]"),
            other => glob.push(other),
        }
    }
    glob
}

/// An instance has such a variable of its own.
fn variable(name: &str, tests: &[Test]) -> Sql {
    let mut sql = Sql::of("p.key IN (SELECT v.process_instance_key FROM variable v WHERE v.name = ");
    sql.bind(name.to_owned());
    for test in tests {
        sql.push(" AND ");
        sql.append(variable_test(test));
    }
    sql.push(")");
    sql
}

fn variable_test(given: &Test) -> Sql {
    match given {
        Test::Equal(Value::Text(json)) => equal_value(json),
        Test::In(values) => Sql::any(values.iter().map(|value| variable_test(&Test::Equal(value.clone()))).collect()),
        Test::NotEqual(value) => {
            let mut sql = Sql::of("NOT ");
            sql.append(variable_test(&Test::Equal(value.clone())));
            sql
        }
        Test::NotIn(values) => {
            let mut sql = Sql::of("NOT ");
            sql.append(variable_test(&Test::In(values.clone())));
            sql
        }
        other => test("v.value", other),
    }
}

fn equal_value(json: &str) -> Sql {
    let value = comparable(json);
    let mut sql = Sql::of("(v.comparable = ");
    sql.bind(value.prefix().to_owned());
    if !value.is_whole() {
        sql.push(" AND v.value = ").bind(json.trim().to_owned());
    }
    sql.push(")");
    sql
}

impl Value {
    /// As JSON: in cursors and lists.
    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Integer(number) => (*number).into(),
            Value::Text(text) => text.as_str().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_the_same_in_the_database() {
        let database = Connection::open_in_memory().expect("in memory");
        let matches = |pattern: &str, text: &str| -> bool {
            database.query_row("SELECT ? GLOB ?", [text, &glob(pattern)], |row| row.get(0)).expect("a pattern")
        };
        for (pattern, text) in [
            ("a*", "abc"),
            ("a?c", "abc"),
            (r"a\*c", "a*c"),
            ("[x]", "[x]"),
            (r"\\a", r"\a"),
            ("*", ""),
            (r"a\[b", "a[b"),
        ] {
            assert!(matches(pattern, text), "{pattern} is like {text}");
        }
        for (pattern, text) in [("a*", "ba"), (r"a\*c", "abc"), ("[x]", "x"), ("a", "A"), ("a?c", "ac")] {
            assert!(!matches(pattern, text), "{pattern} is not like {text}");
        }
    }

    #[test]
    fn long_lists_are_one_parameter() {
        let values: Vec<Value> = (0..10_000).map(Value::Integer).collect();
        let sql = tests("x", &[Test::In(values)]);
        assert_eq!((sql.parameters.len(), &*sql.text), (1, "(x IN (SELECT value FROM json_each(?)))"));
    }
}
