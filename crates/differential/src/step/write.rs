//! Writes steps as they are read.

use std::fmt::{Display, Formatter, Result};

use super::{Choice, Modification, Step};

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Step::Deploy { files } => write!(f, "deploy {}", files.join(" ")),
            Step::Create { .. } => self.write_create(f),
            Step::Activate { job_type, count, timeout, fetch } => {
                write!(f, "activate {} {count} timeout {}", word(job_type), duration(*timeout))?;
                list(f, "fetch", fetch)
            }
            Step::Complete { job, variables, result } => {
                write!(f, "complete {job}")?;
                optional(f, "", variables)?;
                optional(f, " result", result.as_deref().unwrap_or_default())
            }
            Step::Fail { job, retries, variables, backoff, message } => {
                write!(f, "fail {job} {retries}")?;
                optional(f, "", variables)?;
                if *backoff > 0 {
                    write!(f, " backoff {}", duration(*backoff))?;
                }
                optional(f, " message", &if message.is_empty() { String::new() } else { word(message) })
            }
            Step::Throw { job, code, variables } => {
                write!(f, "throw {job} {}", word(code))?;
                optional(f, "", variables)
            }
            Step::Retries { job, retries } => write!(f, "retries {job} {retries}"),
            Step::Timeout { job, timeout } => write!(f, "timeout {job} {}", duration(*timeout)),
            Step::UserTask { verb, task, attributes } => write!(f, "user-task {} {task} {attributes}", verb.name()),
            Step::Choose { ad_hoc, choice } => write!(f, "choose {ad_hoc}{choice}"),
            Step::Decide { job, variables, is_fulfilled, choice } => {
                write!(f, "decide {job}")?;
                optional(f, "", variables)?;
                write!(f, "{}{choice}", if *is_fulfilled { " fulfilled" } else { "" })
            }
            Step::Publish { name, key, time_to_live, variables, id } => {
                write!(f, "publish {} {} {}", word(name), word(key), duration(*time_to_live))?;
                optional(f, "", variables)?;
                optional(f, " id", id)
            }
            Step::Broadcast { signal, variables } => {
                write!(f, "broadcast {}", word(signal))?;
                optional(f, "", variables)
            }
            Step::Evaluate { decision, variables } => {
                write!(f, "evaluate {}", word(decision))?;
                optional(f, "", variables)
            }
            Step::Time { milliseconds } => write!(f, "time {}", duration(*milliseconds)),
            Step::Set { scope, variables, local, later } => {
                let later = if *later { " later" } else { "" };
                write!(f, "{} {scope} {variables}{later}", if *local { "set-local" } else { "set" })
            }
            Step::Resolve { element } => write!(f, "resolve {element}"),
            Step::Cancel { instance } => write!(f, "cancel {instance}"),
            Step::Modify { instance, changes } => {
                write!(f, "modify {instance}")?;
                changes.iter().try_for_each(|change| write!(f, " {change}"))
            }
            Step::Migrate { instance, process, version, mappings } => {
                write!(f, "migrate {instance} to {process}")?;
                write_version(f, *version)?;
                mappings.iter().try_for_each(|(source, target)| write!(f, " {source}=>{target}"))
            }
            Step::Delete { process, version } => {
                write!(f, "delete {process}")?;
                write_version(f, *version)
            }
        }
    }
}

impl Step {
    fn write_create(&self, f: &mut Formatter<'_>) -> Result {
        let Step::Create { process, variables, options } = self else { return Ok(()) };
        let with_result = if options.result.is_some() { "-with-result" } else { "" };
        write!(f, "create{with_result} {process}")?;
        optional(f, "", variables)?;
        optional(f, " as", options.name.as_deref().unwrap_or_default())?;
        write_version(f, options.version)?;
        list(f, "at", &options.at)?;
        list(f, "until", &options.until)?;
        list(f, "fetch", options.result.as_deref().unwrap_or_default())
    }
}

impl Display for Choice {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", if self.cancels { " cancelling" } else { "" })?;
        self.elements.iter().try_for_each(|(id, variables)| {
            write!(f, " activate {id}")?;
            optional(f, "", variables)
        })
    }
}

impl Display for Modification {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Modification::Activate { element, ancestor, variables } => {
                write!(f, "activate {element}")?;
                optional(f, " in", ancestor.as_deref().unwrap_or_default())?;
                variables.iter().try_for_each(|(document, scope)| {
                    write!(f, " {document}")?;
                    optional(f, " for", scope)
                })
            }
            Modification::Terminate { element } => write!(f, "terminate {element}"),
        }
    }
}

fn optional(f: &mut Formatter<'_>, keyword: &str, value: &str) -> Result {
    if value.is_empty() { Ok(()) } else { write!(f, "{keyword} {value}") }
}

fn list(f: &mut Formatter<'_>, keyword: &str, values: &[String]) -> Result {
    if values.is_empty() { Ok(()) } else { write!(f, " {keyword} {}", values.join(",")) }
}

fn write_version(f: &mut Formatter<'_>, version: i32) -> Result {
    if version < 0 { Ok(()) } else { write!(f, " version {version}") }
}

/// A text as one word.
fn word(text: &str) -> String {
    if text.is_empty() || text.contains([' ', '"', '{']) {
        serde_json::Value::from(text).to_string()
    } else {
        text.to_owned()
    }
}

fn duration(milliseconds: i64) -> String {
    format!("PT{}S", milliseconds / 1_000)
}

#[cfg(test)]
mod tests {
    use crate::step::read;

    #[test]
    fn steps_are_written_as_they_are_read() {
        for line in [
            "deploy one.bpmn two.bpmn",
            "create order {\"a\": 1} as A version 2 at x,y until z",
            "create-with-result order fetch a,b",
            "activate work 5 timeout PT60S fetch a",
            "complete a result {\"denied\":true}",
            "set a {\"x\":1} later",
            "complete A/task#2 {\"x\":[1,{\"y\":\"}\"}]}",
            "fail task 0 {\"a\":1} backoff PT10S message \"out of order\"",
            "throw task \"\" {\"a\":1}",
            "retries task 3",
            "timeout task PT30S",
            "publish paid \"\" PT3600S {\"a\":1} id m1",
            "broadcast alarm",
            "time PT86400S",
            "set task {\"a\":1}",
            "set-local sub[]#1 {\"a\":null}",
            "resolve gateway",
            "cancel A",
            "modify A activate b in sub#2 {\"x\":1} for sub {\"y\":2} terminate a#1",
            "migrate A to order version 2 a=>b c=>d",
            "delete order version 1",
        ] {
            assert_eq!(read(line).expect(line).to_string(), line);
        }
        for wrong in ["", "dance", "create", "activate work many", "time 10", "set a", "complete a {", "cancel A B"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
