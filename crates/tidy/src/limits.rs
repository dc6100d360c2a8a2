//! The limits of the system: those that the source declares, and the table of them in `docs/limits.md`.
//!
//! A limit is a constant whose name has one of the words in [`WORDS`], or a field of one of the structures in [`FIELDS`].

use std::collections::BTreeMap;
use std::path::Path;

use crate::{code, is_lifted, sources_without_tests};

/// Crates whose limits no user meets: tools of development. Those of all others are in the table.
const TOOL_CRATES: &[&str] =
    &["chance", "differential", "engine-fuzz", "hostile", "load", "model-builder", "simulator", "tidy"];
/// Commands of the binary that are tools too.
const TOOLS: &[&str] = &["osmia/src/load.rs"];
/// Words in the name of a constant that is a limit.
const WORDS: &[&str] = &["MAX", "MAXIMUM", "LIMIT", "LONGEST"];
/// Where a later feature level sets fields anew: what holds is what stands last.
const OF_LEVELS: &str = "engine/src/limits.rs";
/// Files with a structure of limits, and what the names of those fields contain that are limits.
const FIELDS: &[(&str, &[&str])] = &[
    (OF_LEVELS, &[""]),
    ("feel/src/environment.rs", &["limit"]),
    ("broker/src/options.rs", &["limit", "segment_bytes", "checkpoint_bytes"]),
    ("broker/src/flow_control.rs", &["limit", "_commands"]),
    ("gateway/src/options.rs", &["_max"]),
    ("replication/src/options.rs", &["max_", "_bytes"]),
];

/// A limit in the source.
#[derive(Debug, PartialEq, Eq)]
pub struct Declared {
    /// The path of its module and its own name.
    pub name: String,
    /// The default as the source writes it.
    pub expression: String,
}

/// All limits of the source below the directory of the crates, in order of their files.
pub fn declared(crates: &Path) -> Vec<Declared> {
    let mut found = Vec::new();
    let all = crates_in(crates);
    let all: Vec<&str> = all.iter().map(String::as_str).filter(|name| !TOOL_CRATES.contains(name)).collect();
    for (path, text) in sources_without_tests(crates, &all) {
        if !TOOLS.contains(&path.as_str()) {
            declared_in(&path, &text, &mut found);
        }
    }
    found
}

/// The names of all crates, in their order.
fn crates_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("there is a directory of crates");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| directory.join(name).join("Cargo.toml").exists()).collect();
    names.sort_unstable();
    names
}

fn declared_in(path: &str, text: &str, found: &mut Vec<Declared>) {
    let module = module_of(path);
    let fields = FIELDS.iter().find(|(file, _)| *file == path).map_or(&[] as &[&str], |(_, fields)| fields);
    let lines: Vec<&str> = text.lines().collect();
    for index in 0..lines.len() {
        let line = code(lines[index]);
        let declared = constant(&line).or_else(|| field(&line, fields));
        let Some((name, expression)) = declared.filter(|_| !is_lifted(&lines, index)) else { continue };
        let name = format!("{module}::{name}");
        if path == OF_LEVELS {
            found.retain(|earlier| earlier.name != name);
        }
        found.push(Declared { name, expression: expression.to_owned() });
    }
}

/// `engine/src/variable/mapping.rs` is `engine::variable::mapping`.
fn module_of(path: &str) -> String {
    let path = path.trim_end_matches(".rs").replace("/src/", "/").replace('/', "::");
    let path = path.trim_end_matches("::lib").trim_end_matches("::mod");
    path.replace('-', "_")
}

/// Name and value of a constant that is a limit.
fn constant(line: &str) -> Option<(&str, &str)> {
    let (_, after) = line.split_once("const ")?;
    let (name, after) = after.split_once(':')?;
    let (declared_type, value) = after.split_once('=')?;
    // A text that has the word in its name is about a limit.
    let is_limit = name.split('_').any(|word| WORDS.contains(&word)) && !declared_type.contains('&');
    is_limit.then(|| (name.trim(), value.trim().trim_end_matches(';')))
}

/// Name and value of a field in a list of defaults.
fn field<'a>(line: &'a str, wanted: &[&str]) -> Option<(&'a str, &'a str)> {
    let (name, value) = line.trim().strip_suffix(',')?.split_once(": ")?;
    let is_name = name.chars().all(|character| character.is_ascii_lowercase() || character == '_');
    let is_value = value.starts_with(|first: char| first.is_ascii_digit());
    (is_name && is_value && wanted.iter().any(|part| name.contains(part))).then_some((name, value))
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// The line, from 1.
    pub line: usize,
    /// The cells; the first is the name, the second the default.
    pub cells: Vec<String>,
}

/// The rows of the tables in a document whose first cell is a name in backticks.
pub fn rows(document: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, line) in document.lines().enumerate() {
        if !line.starts_with("| `") {
            continue;
        }
        let cells = line.trim().trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned());
        rows.push(Row { line: index + 1, cells: cells.collect() });
    }
    rows
}

/// What is wrong with the table, each with what to do.
pub fn differences(declared: &[Declared], rows: &[Row]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, &Row> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in rows {
        let name = row.cells[0].trim_matches('`');
        if by_name.insert(name, row).is_some() {
            wrong.push(format!("docs/limits.md:{}: {name} has two rows; keep one", row.line));
        }
        if row.cells.len() != COLUMNS || row.cells.iter().any(String::is_empty) {
            wrong.push(format!("docs/limits.md:{}: a row has {COLUMNS} cells and none is empty", row.line));
        } else if !declared.iter().any(|limit| limit.name == name) {
            wrong.push(format!("docs/limits.md:{}: the source has no limit {name}; remove the row", row.line));
        }
    }
    for limit in declared {
        let expected = shown(&limit.expression);
        match by_name.get(limit.name.as_str()) {
            None => wrong.push(format!(
                "docs/limits.md has no row for a limit of the source; add\n| `{}` | {expected} | UNIT | WHAT HAPPENS THERE | WHERE IT IS \
                 SET |",
                limit.name
            )),
            Some(row) if row.cells.get(1) != Some(&expected) => wrong.push(format!(
                "docs/limits.md:{}: the default of {} is {expected}, not {}",
                row.line, limit.name, row.cells[1]
            )),
            Some(_) => {}
        }
    }
    wrong
}

/// Name, default, unit, what happens there, where it is set.
const COLUMNS: usize = 5;

/// A default as the table shows it: a number with commas, or what the source says.
fn shown(expression: &str) -> String {
    let seconds = expression.strip_prefix("Duration::from_secs(").and_then(|rest| rest.strip_suffix(')'));
    match value(seconds.unwrap_or(expression)) {
        Some(number) => with_commas(number),
        None => format!("`{expression}`"),
    }
}

/// The value of products and shifts of numbers.
fn value(expression: &str) -> Option<u64> {
    if let Some((left, right)) = expression.split_once("<<") {
        return value(left)?.checked_shl(u32::try_from(value(right)?).ok()?);
    }
    if let Some((left, right)) = expression.split_once('*') {
        return value(left)?.checked_mul(value(right)?);
    }
    expression.trim().replace('_', "").parse().ok()
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<Declared> {
        let mut found = Vec::new();
        declared_in(path, text, &mut found);
        found
    }

    #[test]
    fn constants_and_fields_are_found_with_their_module() {
        let constants =
            found("state/src/key.rs", "pub const LONGEST_KEY_BYTES: usize = 1_900;\nconst OTHER: u8 = 1;\n");
        assert_eq!(constants, [Declared { name: "state::key::LONGEST_KEY_BYTES".into(), expression: "1_900".into() }]);
        let fields = found("engine/src/limits.rs", "    pub steps: usize,\n            steps: 1 << 3,\n");
        assert_eq!(fields, [Declared { name: "engine::limits::steps".into(), expression: "1 << 3".into() }]);
        let levels = found("engine/src/limits.rs", "            steps: 2,\n            steps: 1,\n");
        assert_eq!(levels, [Declared { name: "engine::limits::steps".into(), expression: "1".into() }]);
        let twice = found("state/src/key.rs", "const A_MAX: u8 = 2;\nconst A_MAX: u8 = 1;\n");
        assert_eq!(twice.len(), 2, "both have to be as the table says");
        assert_eq!(found("feel/src/value.rs", "// tidy: an alias\nconst DEPTH_LIMIT: u32 = 4;\n"), []);
        assert_eq!(module_of("model-file/src/lib.rs"), "model_file");
    }

    #[test]
    fn every_difference_is_told() {
        let limit = |name: &str, expression: &str| Declared { name: name.into(), expression: expression.into() };
        let declared = [limit("a::NEW_MAX", "1 << 20"), limit("a::CHANGED_MAX", "5"), limit("a::SAME_MAX", "1_000")];
        let rows = rows(
            "| `a::CHANGED_MAX` | 4 | x | y | z |\n| `a::SAME_MAX` | 1,000 | x | y | z |\n| `a::OLD_MAX` | 1 | x | y | z |\n",
        );
        let wrong = differences(&declared, &rows).join("\n");
        assert!(wrong.contains("add\n| `a::NEW_MAX` | 1,048,576 |"), "{wrong}");
        assert!(wrong.contains("the default of a::CHANGED_MAX is 5, not 4"), "{wrong}");
        assert!(wrong.contains("the source has no limit a::OLD_MAX"), "{wrong}");
        assert!(!wrong.contains("SAME"), "{wrong}");
    }

    #[test]
    fn defaults_are_shown_as_numbers_where_they_are() {
        assert_eq!(shown("4 * 1024 * 1024"), "4,194,304");
        assert_eq!(shown("Duration::from_secs(24 * 60 * 60)"), "86,400");
        assert_eq!(shown("OTHER - 1"), "`OTHER - 1`");
    }
}
