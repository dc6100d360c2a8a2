//! The arguments of an exporter.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::ExporterError;

/// The longest time that an argument may say.
const DURATION_MAX: Duration = Duration::from_secs(86_400);

/// Arguments by name. As in the reference's configuration, a name counts without regard to case, dashes and underscores, so
/// that `maxFiles`, `max-files` and the `MAXFILES` of an environment variable are the same. What nobody takes is refused.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments {
    exporter: String,
    /// What the names begin with in messages.
    prefix: String,
    values: Map<String, Value>,
}

/// The name without what does not count.
pub(crate) fn relaxed(name: &str) -> String {
    let letters = name.chars().filter(|letter| !matches!(letter, '-' | '_'));
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

impl Arguments {
    /// The arguments of the exporter with a name.
    pub fn new(exporter: &str, values: Map<String, Value>) -> Self {
        Arguments { exporter: exporter.to_owned(), prefix: String::new(), values }
    }

    /// An argument is missing or wrong; `problem` ends the sentence "the argument … of the exporter …".
    pub fn error(&self, name: &str, problem: &str) -> ExporterError {
        ExporterError::argument(&self.exporter, format!("{}{name}", self.prefix), problem)
    }

    /// Takes the value with a name.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let wanted = relaxed(name);
        let found = self.values.keys().find(|name| relaxed(name) == wanted)?.clone();
        self.values.remove(&found)
    }

    /// Takes a text that is not empty.
    ///
    /// # Errors
    /// When there is something else.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>, ExporterError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(self.error(name, "must be a text that is not empty")),
        }
    }

    /// Takes a switch.
    ///
    /// # Errors
    /// When there is something else.
    pub fn take_switch(&mut self, name: &str) -> Result<Option<bool>, ExporterError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(switch)) => Ok(Some(switch)),
            Some(_) => Err(self.error(name, "must be true or false")),
        }
    }

    /// Takes a number in a range.
    ///
    /// # Errors
    /// When there is something else.
    pub fn take_number(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, ExporterError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_u64().filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.error(name, &format!("must be a number from {} to {}", range.start(), range.end()))),
        }
    }

    /// Takes a number of bytes: a number, or a text such as `64KB`, `100MB`, `1GiB` (units are powers of 1,024).
    ///
    /// # Errors
    /// When there is something else.
    pub fn take_bytes(&mut self, name: &str) -> Result<Option<u64>, ExporterError> {
        let bytes = match self.take(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) => bytes(&text),
            Some(_) => None,
        };
        let problem = "must be a number of bytes, or one with a unit, such as 64KB, 100MB or 1GB";
        bytes.map(Some).ok_or_else(|| self.error(name, problem))
    }

    /// Takes a time: a number of seconds, or a text such as `500ms`, `5s`, `2m` or `PT0.5S`.
    ///
    /// # Errors
    /// When there is something else, or more than a day.
    pub fn take_duration(&mut self, name: &str) -> Result<Option<Duration>, ExporterError> {
        let duration = match self.take(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => {
                number.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            }
            Some(Value::String(text)) => duration(text.trim()),
            Some(_) => None,
        };
        let problem =
            "must be a number of seconds, or a time with a unit of at most a day, such as 500ms, 5s or PT0.5S";
        let duration = duration.filter(|duration| *duration <= DURATION_MAX);
        duration.map(Some).ok_or_else(|| self.error(name, problem))
    }

    /// Takes some words: a list, or a text with commas between them.
    ///
    /// # Errors
    /// When there is something else.
    pub fn take_words(&mut self, name: &str) -> Result<Option<Vec<String>>, ExporterError> {
        let words = match self.take(name) {
            None => return Ok(None),
            Some(Value::String(text)) => Some(text.split(',').map(str::trim).map(str::to_owned).collect::<Vec<_>>()),
            Some(Value::Array(words)) => words.into_iter().map(|word| word.as_str().map(str::to_owned)).collect(),
            Some(_) => None,
        };
        let words = words.map(|words| words.into_iter().filter(|word| !word.is_empty()).collect());
        words.map(Some).ok_or_else(|| self.error(name, "must be a list of words"))
    }

    /// Takes the arguments below a name.
    ///
    /// # Errors
    /// When there is something else.
    pub fn take_group(&mut self, name: &str) -> Result<Option<Arguments>, ExporterError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(values)) => {
                let prefix = format!("{}{name}.", self.prefix);
                Ok(Some(Arguments { exporter: self.exporter.clone(), prefix, values }))
            }
            Some(_) => Err(self.error(name, "must be a mapping of names to values")),
        }
    }

    /// The group with a name, of which nothing is said.
    pub(crate) fn empty_group(&self, name: &str) -> Arguments {
        Arguments { exporter: self.exporter.clone(), prefix: format!("{}{name}.", self.prefix), values: Map::new() }
    }

    /// Puts back what is left of a group that was taken, for somebody else.
    pub(crate) fn put_back(&mut self, name: &str, group: Arguments) {
        if !group.values.is_empty() {
            self.values.insert(name.to_owned(), Value::Object(group.values));
        }
    }

    /// Refuses what was not taken.
    ///
    /// # Errors
    /// When there is something left.
    pub fn finish(self, known: &str) -> Result<(), ExporterError> {
        match self.values.keys().next() {
            None => Ok(()),
            Some(unknown) => Err(self.error(unknown, &format!("is not known; known are {known}"))),
        }
    }

    /// The names of what was not taken.
    pub fn names(&self) -> Vec<String> {
        self.values.keys().cloned().collect()
    }
}

fn duration(text: &str) -> Option<Duration> {
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => text.parse::<jiff::SignedDuration>().ok()?.try_into().ok(),
    }
}

fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_have_the_units_that_they_say() {
        for (value, expected) in [
            (json!(1), Some(1_000)),
            (json!("1"), Some(1_000)),
            (json!(0), Some(0)),
            (json!(0.25), Some(250)),
            (json!("500ms"), Some(500)),
            (json!("5s"), Some(5_000)),
            (json!("2m"), Some(120_000)),
            (json!("PT0.5S"), Some(500)),
            (json!("-1s"), None),
            (json!(-1), None),
            (json!("2d"), None),
            (json!("soon"), None),
            (json!("P1M"), None),
            (json!(true), None),
        ] {
            let mut arguments = Arguments::new("debug", Map::from_iter([("delay".to_owned(), value.clone())]));
            let taken = arguments.take_duration("delay").ok().flatten();
            assert_eq!(taken, expected.map(Duration::from_millis), "{value}");
        }
    }

    #[test]
    fn arguments_are_found_however_they_are_written_and_refused_by_name() {
        let Value::Object(values) = json!({
            "max-files": 3, "MAXFILESIZE": "2 MB", "words": "a, b,,c", "index": {"jobBatch": false, "odd": 1}, "big": "17EB",
        }) else {
            unreachable!()
        };
        let mut arguments = Arguments::new("debug", values);
        assert_eq!(arguments.take_number("maxFiles", 1..=9).expect("in range"), Some(3));
        assert_eq!(arguments.take_number("maxFiles", 1..=9).expect("taken"), None);
        assert_eq!(arguments.take_bytes("max-file-size").expect("a size"), Some(2 << 20));
        assert_eq!(arguments.take_words("words").expect("words"), Some(vec!["a".into(), "b".into(), "c".into()]));
        arguments.take_bytes("big").expect_err("no unit");
        let mut index = arguments.take_group("index").expect("a mapping").expect("there");
        assert_eq!(index.take_switch("job_batch").expect("a switch"), Some(false));
        assert_eq!(
            index.finish("'event'").expect_err("odd").to_string(),
            "The argument 'index.odd' of the exporter 'debug' is not known; known are 'event'"
        );
        arguments.finish("nothing").expect("everything was taken");
    }
}
