//! Numbers that decide about what a command results in, and their values at the first feature level that had them.
//!
//! A replica that applies the log with another number makes other records than the one that answered the client. So in the
//! crates from which results come, each constant that is a number has a row in `frozen.tsv` beside this crate's manifest. It
//! says whether the number is `frozen`, or `free` because no record, key or answer depends on it.

use std::path::Path;

use crate::{code, sources_without_tests};

/// Crates from which results come.
const CRATES: &[&str] = &["bpmn", "chance", "dmn", "engine", "feel", "model-file", "protocol", "state"];
/// The lists of limits of the feature levels, whose fields are frozen too.
const LIMITS: &str = "engine/src/limits.rs";
const NUMBERS: &[&str] =
    &["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f64"];

/// The rows that the source has, without their last column: file, name and value.
pub fn declared(crates: &Path) -> Vec<String> {
    let mut rows = Vec::new();
    for (path, text) in sources_without_tests(crates, CRATES) {
        let mut found = numbers(&text);
        if path == LIMITS {
            found.extend(levels(&text));
        }
        rows.extend(found.into_iter().map(|(name, value)| format!("{path}\t{name}\t{value}")));
    }
    rows
}

/// Name and value of each constant that is a number.
fn numbers(text: &str) -> Vec<(String, String)> {
    let (mut found, mut lines) = (Vec::new(), text.lines().map(code));
    while let Some(mut line) = lines.next() {
        let Some(begin) = line.find("const ") else { continue };
        if !line[..begin].split_whitespace().all(|word| word.starts_with("pub")) || line.contains("const fn ") {
            continue;
        }
        while !line.contains(';') {
            let Some(next) = lines.next() else { break };
            line = format!("{} {}", line.trim_end(), next.trim());
        }
        let declared = line[begin + "const ".len()..].split_once(": ");
        let Some((name, Some((of, value)))) = declared.map(|(name, rest)| (name, rest.split_once(" = "))) else {
            continue;
        };
        if NUMBERS.contains(&of) {
            found.push((name.to_owned(), value.trim_end_matches(';').to_owned()));
        }
    }
    found
}

/// Name and value of each field of the lists of limits, under the name of the list.
fn levels(text: &str) -> Vec<(String, String)> {
    let (mut found, mut list) = (Vec::new(), None);
    for line in text.lines().map(code) {
        let line = line.trim();
        if let Some((name, _)) = line.split_once("const ").and_then(|(_, rest)| rest.split_once(": Limits = Limits {"))
        {
            list = Some(name.to_owned());
        } else if line == "};" {
            list = None;
        } else if let (Some(list), Some((field, value))) = (&list, line.trim_end_matches(',').split_once(": ")) {
            found.push((format!("{list}.{field}"), value.to_owned()));
        } else if let (Some(list), Some(base)) = (&list, line.strip_prefix("..")) {
            // Where all other fields come from.
            found.push((format!("{list}.."), base.to_owned()));
        }
    }
    found
}

/// What is wrong with the table, each with what to do.
pub fn differences(declared: &[String], table: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let rows: Vec<(&str, &str)> = table.lines().filter_map(|row| row.rsplit_once('\t')).collect();
    for (row, kind) in &rows {
        if !matches!(*kind, "frozen" | "free") {
            wrong.push(format!("{row}: a number is 'frozen' or 'free', not '{kind}'"));
        }
    }
    let name_of = |row: &str| row.rsplit_once('\t').map(|(name, _)| name.to_owned());
    for row in declared {
        if rows.iter().any(|(other, _)| other == row) {
            continue;
        }
        let before = rows.iter().find(|(other, _)| name_of(other) == name_of(row));
        wrong.push(match before {
            Some((before, "frozen")) => format!(
                "{row}: it was {before}. What it decides is in the logs of partitions at released levels: make it a limit of a new \
                 feature level (engine/src/limits.rs) and leave this one as it is"
            ),
            Some((before, _)) => format!("{row}: its row says {before}; put the row right"),
            None => format!("{row}: it has no row in crates/tidy/frozen.tsv; add one that ends in 'frozen' or 'free'"),
        });
    }
    for (row, _) in &rows {
        if !declared.iter().any(|other| name_of(other) == name_of(row)) {
            wrong.push(format!(
                "{row}: the source has no such number; if it moved, move its row, if it is gone, so is what it kept"
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_number_is_seen_and_a_changed_level_too() {
        let source = "/// Why.\npub(crate) const STEPS_MAX: usize =\n    3 << 2; // more\nconst NAME: &str = \"=\";\nconst fn a() {}\n";
        assert_eq!(numbers(source), [("STEPS_MAX".to_owned(), "3 << 2".to_owned())]);
        let source = "const OF_LEVEL_1: Limits = Limits {\n  steps: 5,\n};\nconst OF_LEVEL_2: Limits = Limits {\n  steps: 6,\n  ..A\n};\n";
        let found: Vec<_> = levels(source).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
        assert_eq!(found, ["OF_LEVEL_1.steps 5", "OF_LEVEL_2.steps 6", "OF_LEVEL_2.. A"]);

        let row = |value: &str| vec![format!("a.rs\tSTEPS_MAX\t{value}")];
        assert_eq!(differences(&row("3"), "a.rs\tSTEPS_MAX\t3\tfrozen\n"), Vec::<String>::new());
        assert!(differences(&row("4"), "a.rs\tSTEPS_MAX\t3\tfrozen\n")[0].contains("new feature level"));
        assert!(differences(&row("4"), "a.rs\tSTEPS_MAX\t3\tfree\n")[0].contains("put the row right"));
        assert!(differences(&row("4"), "")[0].contains("has no row"));
        assert!(differences(&[], "a.rs\tSTEPS_MAX\t3\tfrozen\n")[0].contains("no such number"));
    }
}
