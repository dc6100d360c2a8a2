//! From conditions to SQL with bound parameters.

use super::condition::{Condition, Test, Value, VariableScope};
use super::entity::{Field, Filter, Kind};
use super::row::VALUE_CHARACTERS_MAX;
use crate::comparable;
use crate::database::{Bound, Database, Dialect, Result};
use crate::pattern::Pattern;

/// Up to so many process instances are looked at one by one.
const LOOKED_AT_ONE_BY_ONE: usize = 100;
/// Of what another table has by number, so many are looked up first; more are found by the statement itself.
const LOOKED_UP_FIRST: usize = 500;

/// A part of a statement with its parameters, in their order.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Sql {
    pub text: String,
    parameters: Vec<Value>,
}

impl Sql {
    pub fn of(text: impl Into<String>) -> Sql {
        Sql { text: text.into(), parameters: Vec::new() }
    }

    pub fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    pub fn bind(&mut self, value: Value) -> &mut Self {
        if value == Value::Null {
            // It has no type that a parameter could have.
            self.text.push_str("NULL");
        } else {
            self.text.push('?');
            self.parameters.push(value);
        }
        self
    }

    /// A condition with a parameter.
    pub fn with(text: impl Into<String>, value: Value) -> Sql {
        Sql { text: text.into(), parameters: vec![value] }
    }

    /// What the statement is given.
    pub fn bound(&self) -> Vec<Bound<'_>> {
        self.parameters.iter().map(Value::bound).collect()
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
        Sql::joined(parts, " AND ", "TRUE")
    }

    pub fn any(parts: Vec<Sql>) -> Sql {
        Sql::joined(parts, " OR ", "FALSE")
    }
}

/// A condition as SQL. What is kept in other tables by number is looked up there first, so that the database sees numbers that it
/// has an index for.
pub(super) fn condition(database: &Database, condition: &Condition) -> Result<Sql> {
    Ok(match condition {
        Condition::All(conditions) => Sql::all(all(database, conditions)?),
        Condition::Any(conditions) => {
            Sql::any(conditions.iter().map(|one| self::condition(database, one)).collect::<Result<_>>()?)
        }
        Condition::Is(..) | Condition::Variable(..) => Sql::all(all(database, std::slice::from_ref(condition))?),
        Condition::VariableOf(scope, name, tests) => variable_of(database.dialect(), *scope, name, tests),
        Condition::Seen { element_instance, process_instance, is_effective } => {
            seen(*element_instance, *process_instance, *is_effective)
        }
        Condition::OfInstance(key) => {
            let mut sql = Sql::of("r.process_instance_key IN (WITH RECURSIVE below(key) AS (VALUES(");
            sql.bind(Value::Integer(*key)).push(
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
            let further = [
                "SELECT i.key, i.process_instance_key FROM {} element_instance i \
                 WHERE i.process_instance_key = inside.instance AND i.scope_key = inside.key",
                "SELECT c.key, c.key FROM {} process_instance c \
                 WHERE c.parent_process_instance_key = inside.instance AND c.parent_element_instance_key = inside.key",
            ];
            sql.bind(Value::Integer(*key)).push(&database.dialect().further("inside", further));
            sql.push(") SELECT key FROM inside)");
            sql
        }
        Condition::Tag(tag) => Sql::with(database.dialect().has_text("p.tags"), Value::Text(tag.clone())),
    })
}

/// Conditions for the same row of another table are one.
fn all(database: &Database, conditions: &[Condition]) -> Result<Vec<Sql>> {
    let mut parts = Vec::new();
    let mut of_others: Vec<(&str, Vec<Sql>)> = Vec::new();
    for one in conditions {
        match one {
            Condition::Is(Field { filter: Filter::Exists { exists, column }, kind, .. }, given) => {
                let tested = tests_of(database.dialect(), *kind, column, given);
                match of_others.iter_mut().find(|(known, _)| known == exists) {
                    Some((_, together)) => together.push(tested),
                    None => of_others.push((exists, vec![tested])),
                }
            }
            Condition::Is(field, tests) => parts.push(is(database, field, tests)?),
            Condition::Variable(name, tests) => parts.push(variable(database.dialect(), name, tests)),
            other => parts.push(condition(database, other)?),
        }
    }
    parts.extend(of_others.into_iter().map(|(exists, together)| within(exists, Sql::all(together))));
    let Some(bound) = bound(database, conditions)? else { return Ok(parts) };
    Ok(vec![bound, unseen(database.dialect(), Sql::all(parts))])
}

/// The process instances in which a condition finds all that it finds, when these are few: they are looked at one by one.
fn bound(database: &Database, conditions: &[Condition]) -> Result<Option<Sql>> {
    let mut variables = Vec::new();
    conditions.iter().for_each(|one| equal_variables(one, &mut variables));
    for (name, given) in variables {
        let mut lookup = Sql::of("SELECT v.process_instance_key AS key FROM variable v WHERE v.name = ");
        lookup.bind(Value::Text(name.to_owned()));
        for test in given {
            lookup.push(" AND ").append(variable_test(database.dialect(), "v", test));
        }
        if let Some(few) = few(database, lookup, LOOKED_AT_ONE_BY_ONE)? {
            return Ok(Some(one_of(database.dialect(), "p.key", few)));
        }
    }
    for one in conditions {
        if let Condition::Is(Field { filter: Filter::ElementInstance, .. }, given) = one
            && let Some(few) = instances_of_elements(database, given)?
        {
            return Ok(Some(one_of(database.dialect(), "r.process_instance_key", few)));
        }
    }
    Ok(None)
}

/// SQLite believes that an index of a definition or a state finds few rows, so it does not get to see such conditions beside one by which
/// few are found. PostgreSQL counts, and sees them all.
fn unseen(dialect: Dialect, mut conditions: Sql) -> Sql {
    if dialect == Dialect::Sqlite {
        conditions.push(" IS TRUE");
    }
    conditions
}

/// The numbers that a statement finds, when these are few.
fn few(database: &Database, mut lookup: Sql, few: usize) -> Result<Option<Vec<i64>>> {
    lookup.push(&format!(" LIMIT {}", few + 1));
    let mut found: Vec<i64> = database.all(&lookup.text, &lookup.bound(), |row| row.get(0))?;
    let are_few = found.len() <= few;
    found.sort_unstable();
    found.dedup();
    Ok(are_few.then_some(found))
}

/// The process instances in which element instances are whose keys are given; what listens to a process itself is of the process
/// instance.
fn instances_of_elements(database: &Database, given: &[Test]) -> Result<Option<Vec<i64>>> {
    let Some(equal) = given.iter().find(|one| is_equal(one)) else { return Ok(None) };
    let keys = || test(database.dialect(), "key", equal);
    let mut lookup = Sql::of("SELECT process_instance_key FROM element_instance WHERE ");
    lookup.append(keys()).push(" UNION ALL SELECT key FROM process_instance WHERE ").append(keys());
    few(database, lookup, LOOKED_AT_ONE_BY_ONE)
}

fn is_equal(test: &Test) -> bool {
    matches!(test, Test::Equal(_) | Test::In(_))
}

/// Variables that have to have a value.
fn equal_variables<'a>(condition: &'a Condition, variables: &mut Vec<(&'a str, &'a [Test])>) {
    match condition {
        Condition::All(conditions) => conditions.iter().for_each(|one| equal_variables(one, variables)),
        Condition::Variable(name, tests) if tests.iter().any(is_equal) => variables.push((name, tests)),
        _ => {}
    }
}

/// A number is one of these: one parameter, however many there are.
fn one_of(dialect: Dialect, column: &str, numbers: Vec<i64>) -> Sql {
    in_list(dialect, column, &numbers.into_iter().map(Value::Integer).collect::<Vec<_>>())
}

/// A row has some entry in a list of its own. What is not to be equal is none of them, and a row without any fits that.
fn has_some(dialect: Dialect, has: &str, column: &str, given: &Test) -> Sql {
    let positive = match given {
        Test::NotEqual(value) => Test::Equal(value.clone()),
        Test::NotIn(values) => Test::In(values.clone()),
        Test::Exists(false) => Test::Exists(true),
        other => return within(has, test(dialect, column, other)),
    };
    let mut sql = Sql::of("NOT (");
    sql.append(within(has, test(dialect, column, &positive))).push(")");
    sql
}

fn within(template: &str, inner: Sql) -> Sql {
    let (before, behind) = template.split_once("{}").unwrap_or((template, ""));
    let mut sql = Sql::of(before);
    sql.append(inner).push(behind);
    sql
}

fn is(database: &Database, field: &Field, given: &[Test]) -> Result<Sql> {
    let dialect = database.dialect();
    Ok(match field.filter {
        // What no row has is never equal to anything.
        Filter::Column if matches!(field.kind, Kind::Value) => {
            Sql::all(given.iter().map(|one| variable_test(dialect, "r", one)).collect())
        }
        Filter::None | Filter::Column | Filter::ElementInstance => tests_of(dialect, field.kind, field.sql, given),
        Filter::Exists { exists, column } => within(exists, tests_of(dialect, field.kind, column, given)),
        Filter::Has { has, column } => Sql::all(given.iter().map(|one| has_some(dialect, has, column, one)).collect()),
        Filter::Via { on, select, column } => {
            let mut lookup = Sql::of(select);
            lookup.push(" WHERE ").append(tests(dialect, column, given));
            match few(database, lookup.clone(), LOOKED_UP_FIRST)? {
                Some(found) => one_of(dialect, on, found),
                None => {
                    let mut sql = Sql::of(format!("{on} IN ("));
                    sql.append(lookup).push(")");
                    sql
                }
            }
        }
    })
}

/// What is a condition itself is not compared, so that an index with that condition can be used.
fn tests_of(dialect: Dialect, kind: Kind, column: &str, given: &[Test]) -> Sql {
    if let Kind::IsTruncated = kind {
        return tests_of(dialect, Kind::Boolean, &format!("(length({column}) > {VALUE_CHARACTERS_MAX})"), given);
    }
    match given {
        [Test::Equal(Value::Integer(flag))] if kind == Kind::Boolean => {
            Sql::of(format!("{}{column}", if *flag == 0 { "NOT " } else { "" }))
        }
        _ if kind == Kind::Boolean => tests(dialect, &dialect.number_of_condition(column), given),
        _ => tests(dialect, column, given),
    }
}

fn tests(dialect: Dialect, column: &str, tests: &[Test]) -> Sql {
    Sql::all(tests.iter().map(|one| test(dialect, column, one)).collect())
}

fn test(dialect: Dialect, column: &str, test: &Test) -> Sql {
    let compared = |operator: &str, value: &Value| {
        let mut sql = Sql::of(format!("{column} {operator} "));
        sql.bind(value.clone());
        sql
    };
    match test {
        Test::Equal(value) => compared("=", value),
        Test::NotEqual(value) => compared("IS DISTINCT FROM", value),
        Test::Exists(true) => Sql::of(format!("{column} IS NOT NULL")),
        Test::Exists(false) => Sql::of(format!("{column} IS NULL")),
        Test::Greater(value) => compared(">", value),
        Test::GreaterOrEqual(value) => compared(">=", value),
        Test::Less(value) => compared("<", value),
        Test::LessOrEqual(value) => compared("<=", value),
        Test::In(values) => in_list(dialect, column, values),
        Test::NotIn(values) => {
            let mut sql = Sql::of(format!("({column} IS NULL OR NOT "));
            sql.append(in_list(dialect, column, values)).push(")");
            sql
        }
        Test::Like(pattern) => like(dialect, column, pattern),
    }
}

/// A text is like a pattern. What it begins with is compared too, for which there may be an index.
fn like(dialect: Dialect, column: &str, pattern: &str) -> Sql {
    let is_like = Sql::with(dialect.is_like(column), Value::Text(dialect.pattern(pattern)));
    let beginning = Pattern::new(pattern).beginning();
    if dialect == Dialect::PostgreSql || beginning.is_empty() {
        return is_like;
    }
    let mut parts = Vec::with_capacity(3);
    if let Some(end) = after_all_with(&beginning) {
        parts.push(Sql::with(format!("{column} < ?"), Value::Text(end)));
    }
    parts.push(Sql::with(format!("{column} >= ?"), Value::Text(beginning)));
    parts.push(is_like);
    Sql::all(parts)
}

/// The first text after all that begin with this one; none after the last character.
fn after_all_with(beginning: &str) -> Option<String> {
    let last = beginning.chars().next_back()?;
    let next = char::from_u32(u32::from(last) + 1).or_else(|| (last < '\u{E000}').then_some('\u{E000}'))?;
    Some(format!("{}{next}", beginning.strip_suffix(last)?))
}

pub(super) fn in_list(dialect: Dialect, column: &str, values: &[Value]) -> Sql {
    match values {
        [] => Sql::of("FALSE"),
        [value] => {
            let mut sql = Sql::of(format!("{column} = "));
            sql.bind(value.clone());
            sql
        }
        _ => {
            let holds_numbers = values.iter().all(|value| matches!(value, Value::Integer(_)));
            let list: Vec<serde_json::Value> = values.iter().map(Value::to_json).collect();
            Sql::with(dialect.is_in_list(column, holds_numbers), Value::Text(dialect.list(list)))
        }
    }
}

/// An instance has such a variable of its own.
fn variable(dialect: Dialect, name: &str, tests: &[Test]) -> Sql {
    let mut sql = Sql::of("p.key IN (SELECT v.process_instance_key FROM variable v WHERE v.name = ");
    sql.bind(Value::Text(name.to_owned()));
    tested_variable(dialect, sql, tests)
}

/// The instances that fit a condition of nothing but variables, counted from the index of these alone; none for other conditions.
pub(super) fn instances_by_variables(dialect: Dialect, condition: &Condition) -> Option<Sql> {
    let mut variables = Vec::new();
    if !are_variables(condition, &mut variables) {
        return None;
    }
    let ((name, given), others) = variables.split_first()?;
    let mut sql = Sql::of("(SELECT DISTINCT v.process_instance_key AS key FROM variable v WHERE v.name = ");
    sql.bind(Value::Text((*name).to_owned()));
    let mut sql = tested_variable(dialect, sql, given);
    let others = others.iter().map(|(name, given)| variable(dialect, name, given)).collect();
    sql.push(" p WHERE ").append(Sql::all(others));
    Some(sql)
}

/// Whether an instance has to have variables that pass tests, and which.
fn are_variables<'a>(condition: &'a Condition, variables: &mut Vec<(&'a str, &'a [Test])>) -> bool {
    match condition {
        Condition::All(conditions) => conditions.iter().all(|one| are_variables(one, variables)),
        Condition::Variable(name, tests) => {
            variables.push((name, tests));
            true
        }
        _ => false,
    }
}

fn variable_of(dialect: Dialect, scope: VariableScope, name: &str, tests: &[Test]) -> Sql {
    let mut sql = Sql::of(match scope {
        VariableScope::ProcessInstance => {
            "r.process_instance_key IN (SELECT v.process_instance_key FROM variable v \
             WHERE v.scope_key = v.process_instance_key AND v.name = "
        }
        VariableScope::ElementInstance => {
            "r.element_instance_key IN (SELECT v.scope_key FROM variable v WHERE v.name = "
        }
    });
    sql.bind(Value::Text(name.to_owned()));
    tested_variable(dialect, sql, tests)
}

/// The scopes of an element instance from the inside out, with the variables that are in them.
fn seen(element_instance: i64, process_instance: i64, is_effective: bool) -> Sql {
    let mut sql = Sql::of("r.key IN (WITH RECURSIVE above(key, depth) AS (SELECT ");
    sql.bind(Value::Integer(element_instance)).push(
        ", 0 UNION SELECT i.scope_key, above.depth + 1 FROM above JOIN element_instance i ON i.key = above.key \
         WHERE i.scope_key > 0) SELECT found.key FROM (SELECT v.key AS key, \
         row_number() OVER (PARTITION BY v.name ORDER BY above.depth) AS place \
         FROM variable v JOIN above ON above.key = v.scope_key WHERE v.process_instance_key = ",
    );
    sql.bind(Value::Integer(process_instance));
    sql.push(if is_effective { ") AS found WHERE place = 1)" } else { ") AS found)" });
    sql
}

fn tested_variable(dialect: Dialect, mut sql: Sql, tests: &[Test]) -> Sql {
    for test in tests {
        sql.push(" AND ");
        sql.append(variable_test(dialect, "v", test));
    }
    sql.push(")");
    sql
}

/// A test of the value of the variable in the table that is called so here.
fn variable_test(dialect: Dialect, table: &str, given: &Test) -> Sql {
    let not = |test: Test| {
        let mut sql = Sql::of("NOT ");
        sql.append(variable_test(dialect, table, &test));
        sql
    };
    match given {
        Test::Equal(value) => value_in(dialect, table, std::slice::from_ref(value)),
        Test::In(values) => value_in(dialect, table, values),
        Test::NotEqual(value) => not(Test::Equal(value.clone())),
        Test::NotIn(values) => not(Test::In(values.clone())),
        other => test(dialect, &format!("{table}.value"), other),
    }
}

/// A value is one of those, whatever their spelling.
fn value_in(dialect: Dialect, table: &str, values: &[Value]) -> Sql {
    // A variable has JSON, and no other value.
    let texts = values.iter().filter_map(|value| if let Value::Text(json) = value { Some(json) } else { None });
    let asked: Vec<Value> = texts.map(|json| Value::Text(comparable::of_asked(json))).collect();
    in_list(dialect, &format!("{table}.comparable"), &asked)
}

impl Value {
    fn bound(&self) -> Bound<'_> {
        match self {
            Value::Null => Bound::Null,
            Value::Integer(number) => Bound::Integer(*number),
            Value::Text(text) => Bound::Text(text),
        }
    }

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
    use crate::database::functions::{self, Deadline};

    #[test]
    fn patterns_find_what_is_like_them_in_a_file() {
        let connection = rusqlite::Connection::open_in_memory().expect("in memory");
        functions::register(&connection, &Deadline::default()).expect("functions");
        let database = Database::Sqlite(connection);
        let is_like = |pattern: &str, text: &str| -> bool {
            let mut select = Sql::of("SELECT 1 FROM (SELECT ");
            select.bind(Value::Text(text.to_owned())).push(" AS x) AS t WHERE ");
            select.append(like(Dialect::Sqlite, "x", pattern));
            database.first(&select.text, &select.bound(), |_| Ok(())).expect("a pattern").is_some()
        };
        for (pattern, text) in [
            ("a*", "abc"),
            ("a?c", "abc"),
            (r"a\*c", "a*c"),
            ("[x]", "[x]"),
            (r"\\a", r"\a"),
            ("*", ""),
            ("é*", "é\u{10FFFF}"),
            ("\u{D7FF}*", "\u{D7FF}x"),
            ("\u{10FFFF}*", "\u{10FFFF}x"),
            ("50%_", "50%_"),
        ] {
            assert!(is_like(pattern, text), "{pattern} is like {text}");
        }
        for (pattern, text) in
            [("a*", "ba"), (r"a\*c", "abc"), ("[x]", "x"), ("a", "A"), ("a?c", "ac"), ("50%", "500"), ("5_", "50")]
        {
            assert!(!is_like(pattern, text), "{pattern} is not like {text}");
        }
    }

    #[test]
    fn long_lists_are_one_parameter() {
        let values: Vec<Value> = (0..10_000).map(Value::Integer).collect();
        let sql = tests(Dialect::Sqlite, "x", &[Test::In(values)]);
        assert_eq!((sql.parameters.len(), &*sql.text), (1, "(x IN (SELECT value FROM json_each(?)))"));
    }
}
