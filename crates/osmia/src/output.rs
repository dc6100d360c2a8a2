//! What commands print.

use std::fmt::Display;
use std::io::{self, Write};

use serde_json::Value;

/// Prints for people, or as JSON for programs.
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Output {
        Output { json }
    }

    /// Prints one answer: the text, or the JSON on one line.
    pub(crate) fn say(&self, text: impl Display, json: impl FnOnce() -> Value) -> io::Result<()> {
        if self.json { print_line(json()) } else { print_line(text) }
    }

    /// Whether programs read it.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Tells people something besides the answer, on standard error, so that it does not disturb scripts.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.json {
            // Who closed it does not want to know.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
}

/// A line on standard output. A full disk or a reader that went away is an error and no panic.
pub(crate) fn print_line(line: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// A key in JSON: a string, because most programs read numbers of that size inexactly.
pub(crate) fn key(key: i64) -> Value {
    Value::String(key.to_string())
}

/// A JSON document inside of a text; the text itself if it is none.
pub(crate) fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
