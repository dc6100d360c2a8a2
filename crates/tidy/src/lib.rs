//! The house rules of the source, checked by this crate's tests: which crate may import which, what the pure crates must
//! not call, and how long files and functions may be.
//!
//! A rule is lifted for one place by a comment `tidy: <why>` on the line or the line above.

pub mod circles;
pub mod frozen;
pub mod limits;

use std::path::{Path, PathBuf};

/// A line that breaks a rule.
#[derive(Debug)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The rule and how it is broken.
    pub message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.message)
    }
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

/// All Rust sources below a directory, in order.
pub fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The sources of some crates below their directory without their tests: the path from there, and what stands before the tests.
pub fn sources_without_tests(crates: &Path, names: &[&str]) -> Vec<(String, String)> {
    let files = names.iter().flat_map(|name| sources(&crates.join(name).join("src")));
    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(crates).expect("it was found there").to_string_lossy().replace('\\', "/");
        if path.ends_with("tests.rs") || path.contains("/tests/") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source is text");
        let lines: Vec<&str> = text.lines().collect();
        let is_end = |two: &[&str]| two[0] == "#[cfg(test)]" && two[1].starts_with("mod ") && two[1].ends_with('{');
        let end = lines.windows(2).position(is_end).unwrap_or(lines.len());
        found.push((path, lines[..end].join("\n")));
    }
    found
}

/// Whether a rule is lifted for the line at `index`.
pub fn is_lifted(lines: &[&str], index: usize) -> bool {
    let mentions = |line: &&str| line.contains("tidy: ");
    mentions(&lines[index]) || index > 0 && mentions(&lines[index - 1])
}

/// The part of a line before its comment, without string contents.
pub fn code(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    let mut in_string = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' if in_string => {
                characters.next();
            }
            '"' => {
                in_string = !in_string;
                out.push('"');
            }
            // A quote as a character literal opens no string.
            '\'' if !in_string && characters.peek() == Some(&'"') => {
                characters.next();
                characters.next();
            }
            '/' if !in_string && characters.peek() == Some(&'/') => break,
            _ if in_string => {}
            _ => out.push(character),
        }
    }
    out
}

/// The functions of a file: line of the name (from 1), name, and number of lines to the closing brace.
pub fn functions(text: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = code(line);
        let Some(rest) = code.trim_start().split_once("fn ").filter(|(before, _)| is_function_prefix(before)) else {
            continue;
        };
        let name: String =
            rest.1.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect();
        // A declaration without a body ends in a semicolon before any brace opens.
        let opening = lines[index..].iter().map(|line| self::code(line)).find(|code| code.contains(['{', ';']));
        if !opening.is_some_and(|code| code.contains('{')) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let closing = format!("{}}}", " ".repeat(indent));
        let is_one_line = line.ends_with('}') && line.contains("{ ");
        let end = if is_one_line { Some(0) } else { lines[index..].iter().position(|line| *line == closing) };
        if let Some(end) = end {
            found.push((index + 1, name, end + 1));
        }
    }
    found
}

fn is_function_prefix(before: &str) -> bool {
    before.split_whitespace().all(|word| {
        word.starts_with("pub")
            || matches!(word, "const" | "async" | "unsafe" | "extern" | "in" | "\"\"")
            || word.ends_with(')')
    })
}
