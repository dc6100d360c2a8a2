//! The house rules, as failing tests.

use std::collections::BTreeMap;
use std::path::Path;

use tidy::circles::{Circle, circles, differences, imports};
use tidy::{Finding, code, functions, is_lifted, root, sources};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
/// Files that import each other in a loop, at most, until they come apart.
const CIRCLE_FILES_MAX: usize = 25;
/// Tests tell a story from beginning to end.
const TEST_FUNCTION_LINES_MAX: usize = 140;

/// Each crate with its floor: it imports only from floors below.
const FLOORS: &[(&str, u8)] = &[
    ("osmia", 8),
    ("load", 7),
    ("hostile", 7),
    ("differential", 7),
    ("simulator", 7),
    ("gateway", 6),
    ("broker", 5),
    ("exporters", 3),
    ("readmodel", 4),
    ("engine-fuzz", 4),
    ("engine", 3),
    ("replication", 3),
    ("peers", 1),
    ("state", 2),
    ("bpmn", 2),
    ("dmn", 2),
    ("protocol", 1),
    ("feel", 1),
    ("model-file", 1),
    ("model-builder", 1),
    ("timed-postgres", 1),
    ("gateway-interface", 1),
    ("chance", 0),
];

/// What a crate must not know, beyond the direction of the floors.
const MUST_NOT_KNOW: &[(&str, &[&str])] = &[
    ("load", &["engine", "broker", "gateway", "state", "replication", "protocol"]),
    ("hostile", &["engine", "broker", "gateway", "state", "replication", "protocol", "load"]),
    ("differential", &["broker", "gateway", "state", "replication", "exporters", "load"]),
    ("simulator", &["gateway", "tokio", "tonic", "axum", "load"]),
    ("gateway", &["engine", "state", "replication", "bpmn", "feel"]),
    ("broker", &["gateway-interface", "tonic", "axum", "tokio", "hyper", "feel"]),
    ("exporters", &["engine", "state", "replication"]),
    ("readmodel", &["engine", "state", "replication", "bpmn", "tokio", "hyper"]),
    ("engine-fuzz", &["state", "replication", "tokio", "tonic"]),
    ("peers", &["protocol", "replication", "engine", "tokio", "tonic"]),
    ("replication", &["protocol", "engine", "bpmn", "feel", "state"]),
    ("state", &["protocol", "bpmn", "feel", "engine"]),
    ("engine", &["tokio", "crossbeam-channel", "metrics", "tracing", "jiff", "heed"]),
    ("bpmn", &["tokio", "tracing", "metrics"]),
    ("dmn", &["tokio", "tracing", "metrics", "protocol"]),
    ("feel", &["tokio", "tracing", "metrics", "protocol"]),
    ("model-file", &["tokio", "tracing", "metrics", "protocol", "feel"]),
    ("model-builder", &["tokio", "tracing", "metrics", "protocol", "feel"]),
    ("protocol", &["tokio", "tracing", "metrics"]),
];

/// Crates that compute and never perform.
const PURE: &[&str] = &["chance", "protocol", "feel", "model-file", "bpmn", "dmn", "engine"];

/// What pure crates must not call: clocks, random numbers, threads, input and output.
const BANNED: &[&str] = &[
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "std::thread",
    "thread::spawn",
    "std::fs",
    "std::net",
    "std::io::std",
    "std::env",
    "std::process",
    "println!",
    "eprintln!",
    "rand::",
    "RandomState",
    "thread_rng",
    // Results of the machine's own mathematics differ in the last digits.
    ".powf(",
    ".powi(",
    ".exp(",
    ".ln(",
    ".log(",
    ".log2(",
    ".log10(",
    "f64::powf",
    "f64::powi",
    "f64::exp",
    "f64::ln",
    "f64::log",
];

fn assert_none(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(lines.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
}

fn each_line(directory: &Path, mut check: impl FnMut(&Path, &[&str], usize) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in sources(directory) {
        let text = std::fs::read_to_string(&file).expect("readable source");
        let lines: Vec<&str> = text.lines().collect();
        for index in 0..lines.len() {
            if !is_lifted(&lines, index)
                && let Some(message) = check(&file, &lines, index)
            {
                findings.push(Finding { file: file.clone(), line: index + 1, message });
            }
        }
    }
    findings
}

/// The names under `[dependencies]` of a crate.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = root().join("crates").join(name).join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
    assert!(text.contains("[lints]\nworkspace = true"), "{} follows the workspace's lints", manifest.display());
    let section = text.split("\n[").find_map(|section| section.strip_prefix("dependencies]")).unwrap_or("");
    section
        .lines()
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_crate_has_a_floor() {
    let floors: BTreeMap<&str, u8> = FLOORS.iter().copied().collect();
    for entry in std::fs::read_dir(root().join("crates")).expect("crates").flatten() {
        let name = entry.file_name().into_string().expect("a name in Unicode");
        assert!(name == "tidy" || floors.contains_key(name.as_str()), "crate '{name}' has no floor; give it one here");
    }
}

#[test]
fn imports_go_downward() {
    let floors: BTreeMap<&str, u8> = FLOORS.iter().copied().collect();
    for (name, floor) in FLOORS {
        for dependency in dependencies(name) {
            if let Some(below) = floors.get(dependency.as_str()) {
                assert!(below < floor, "{name} (floor {floor}) imports {dependency} (floor {below})");
            }
        }
    }
}

/// The fuzz targets have a lock file of their own, which no build of the workspace brings up to date.
#[test]
fn the_lock_file_of_the_fuzz_targets_knows_every_dependency() {
    let lock = std::fs::read_to_string(root().join("fuzz/Cargo.lock")).expect("the lock file");
    let floors: BTreeMap<&str, u8> = FLOORS.iter().copied().collect();
    let mut packages = 0;
    for package in lock.split("[[package]]\n") {
        let Some(name) = package.strip_prefix("name = \"").and_then(|rest| rest.split('"').next()) else {
            continue;
        };
        // A crate of the workspace comes from no registry.
        if !floors.contains_key(name) || package.contains("\nsource = ") {
            continue;
        }
        packages += 1;
        for dependency in dependencies(name) {
            let is_there = [format!("\n \"{dependency}\""), format!("\n \"{dependency} ")]
                .iter()
                .any(|line| package.contains(line));
            assert!(is_there, "fuzz/Cargo.lock lacks {dependency} of {name}; `cargo metadata` in fuzz/ adds it");
        }
    }
    assert!(packages > 5, "{packages} packages of the workspace in fuzz/Cargo.lock");
}

#[test]
fn nobody_knows_what_is_not_theirs() {
    for (name, forbidden) in MUST_NOT_KNOW {
        for dependency in dependencies(name) {
            assert!(!forbidden.contains(&dependency.as_str()), "{name} must not know {dependency}");
        }
    }
}

/// What the gateway does for every protocol, by file or directory, and the words that would tie it to one.
const NEUTRAL: &[&str] = &[
    "acknowledged",
    "activation",
    "executor",
    "job_stream",
    "job_type",
    "long_polling",
    "openings",
    "outcome",
    "request",
    "starts",
    "tenants",
    "undelivered",
    "validation",
];
const PROTOCOLS: &[&str] = &["tonic", "prost", "gateway_interface", "hyper", "http_body", "crate::grpc", "crate::rest"];

#[test]
fn what_the_gateway_does_for_every_protocol_knows_none() {
    let gateway = root().join("crates/gateway/src");
    assert_none(&each_line(&gateway, |file, lines, index| {
        let inside = file.strip_prefix(&gateway).expect("a file of the gateway");
        let first = inside.iter().next().expect("a name").to_string_lossy();
        let code = code(lines[index]);
        let known = PROTOCOLS.iter().find(|words| mentions(&code, words))?;
        let is_neutral = NEUTRAL.contains(&first.trim_end_matches(".rs"));
        let is_other =
            first.starts_with("rest") && ["tonic", "prost", "gateway_interface", "crate::grpc"].contains(known);
        (is_neutral || is_other).then(|| format!("{first} is for every protocol, and '{known}' is one"))
    }));
}

/// Whether the code has these words, and not as the end of a longer one.
fn mentions(code: &str, words: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(words).any(|(at, _)| !code[..at].ends_with(is_part) || !words.starts_with(is_part))
}

#[test]
fn a_banned_word_is_not_the_end_of_another() {
    for (code, expected) in [("rand::random()", true), ("Operand::Point", false), ("operand::x(rand::y())", true)] {
        assert_eq!(mentions(code, "rand::"), expected, "{code}");
    }
    assert!(mentions("time.elapsed()", ".elapsed()"));
}

#[test]
fn pure_crates_perform_nothing() {
    for name in PURE {
        assert_none(&each_line(&root().join("crates").join(name).join("src"), |_, lines, index| {
            let code = code(lines[index]);
            let banned = BANNED.iter().find(|banned| mentions(&code, banned))?;
            Some(format!("the pure crate {name} must not use {banned}"))
        }));
    }
}

/// Commands decide, events apply. Handlers hold a view of the state that only reads; what could hold more is here.
const MAY_CHANGE_THE_STATE: &[&str] = &["apply", "apply.rs", "dispatch.rs", "lib.rs", "state.rs"];

#[test]
fn only_events_change_the_state() {
    let engine = root().join("crates/engine/src");
    assert_none(&each_line(&engine, |file, lines, index| {
        let inside = file.strip_prefix(&engine).expect("a file of the engine");
        let first = inside.iter().next().expect("a name");
        let may = MAY_CHANGE_THE_STATE.iter().any(|name| first == *name);
        (!may && code(lines[index]).contains("mut State"))
            .then(|| "the state changes only by events, in 'apply'; emit one, and read the state".to_owned())
    }));
}

#[test]
fn apply_stands_on_the_state_alone() {
    let engine = root().join("crates/engine/src");
    assert_none(&each_line(&engine, |file, lines, index| {
        let inside = file.strip_prefix(&engine).expect("a file of the engine");
        if !inside.starts_with("apply") && inside != Path::new("apply.rs") {
            return None;
        }
        let code = code(lines[index]);
        let mut imports = code.match_indices("crate::").map(|(at, words)| &code[at + words.len()..]);
        let upward = imports.find(|import| !import.starts_with("state::"))?;
        Some(format!("'apply' knows the state alone, not '{upward}'; move what it needs to 'state'"))
    }));
}

/// Clippy sees what line matching misses, such as an iteration over a hash map whose name is on another line.
#[test]
fn pure_crates_deny_what_clippy_can_see() {
    for name in PURE {
        let file = root().join("crates").join(name).join("src/lib.rs");
        let text = std::fs::read_to_string(&file).expect("readable source");
        let denies = "#![deny(clippy::disallowed_methods, clippy::iter_over_hash_type)]";
        assert!(text.lines().any(|line| line == denies), "{} says {denies}", file.display());
    }
}

#[test]
fn files_and_functions_are_short() {
    let mut findings = Vec::new();
    for file in sources(&root().join("crates")) {
        let text = std::fs::read_to_string(&file).expect("readable source");
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > FILE_LINES_MAX {
            let message =
                format!("the file has {} lines, more than {FILE_LINES_MAX}; split it by meaning", lines.len());
            findings.push(Finding { file: file.clone(), line: 1, message });
        }
        let is_test = file.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches");
        let lines_max = if is_test { TEST_FUNCTION_LINES_MAX } else { FUNCTION_LINES_MAX };
        for (line, name, length) in functions(&text) {
            if length > lines_max && !is_lifted(&lines, line - 1) {
                let message = format!("function '{name}' has {length} lines, more than {lines_max}");
                findings.push(Finding { file: file.clone(), line, message });
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn nothing_is_left_open() {
    // Written in parts, so that this file does not find itself.
    let open = [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("TO", "DO"), concat!("FIX", "ME")];
    assert_none(&each_line(&root().join("crates"), |_, lines, index| {
        open.iter().find(|mark| lines[index].contains(**mark)).map(|mark| format!("'{mark}' is left open"))
    }));
}

#[test]
fn unsafe_code_says_why_it_is_safe() {
    assert_none(&each_line(&root().join("crates"), |_, lines, index| {
        let code = code(lines[index]);
        let uses = code.contains("unsafe {") || code.contains("unsafe impl");
        let explained = lines[index.saturating_sub(6)..=index].iter().any(|line| line.contains("SAFETY:"));
        (uses && !explained).then(|| "unsafe code without a SAFETY comment".to_owned())
    }));
}

#[test]
fn the_checks_themselves_see_what_they_should() {
    assert_eq!(code(r#"let a = "// no comment"; // comment"#), r#"let a = ""; "#);
    let text = "fn one() { 1 }\n\npub(crate) async fn two() {\n    2;\n}\n";
    assert_eq!(functions(text), [(1, "one".to_owned(), 1), (3, "two".to_owned(), 3)]);
    let text = "fn three() {\n    if a { b }\n    c\n}\n";
    assert_eq!(functions(text), [(1, "three".to_owned(), 4)], "a block inside ends no function");
}

#[test]
fn every_limit_has_its_row_in_the_table_of_limits() {
    let table = std::fs::read_to_string(root().join("docs/limits.md")).expect("docs/limits.md is there");
    let declared = tidy::limits::declared(&root().join("crates"));
    assert!(declared.len() > 50, "the limits of the source are found");
    let wrong = tidy::limits::differences(&declared, &tidy::limits::rows(&table));
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn numbers_that_decide_about_results_are_what_they_were() {
    let table = std::fs::read_to_string(root().join("crates/tidy/frozen.tsv")).expect("the table is there");
    let declared = tidy::frozen::declared(&root().join("crates"));
    assert!(declared.len() > 100, "the numbers of the source are found");
    let wrong = tidy::frozen::differences(&declared, &table);
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn files_import_each_other_in_no_new_circle() {
    let crates = root().join("crates");
    let table = std::fs::read_to_string(crates.join("tidy/circles.tsv")).expect("crates/tidy/circles.tsv is there");
    let mut left: BTreeMap<&str, Vec<Circle>> = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (name, files) = line.split_once('\t').expect("a crate, and the files of a circle");
        let circle: Circle = files.split(' ').map(str::to_owned).collect();
        assert!(circle.len() <= CIRCLE_FILES_MAX, "{name}: a circle of {} files may not be listed", circle.len());
        left.entry(name).or_default().push(circle);
    }
    let names: Vec<&str> = FLOORS.iter().map(|(name, _)| *name).chain(["tidy"]).collect();
    let mut wrong = Vec::new();
    for name in names {
        let found = circles(&imports(&crates, name));
        wrong.extend(differences(name, &found, left.get(name).map_or(&[], Vec::as_slice)));
    }
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
}
