//! The steps of a process, read from models as the load generator writes them.

use std::time::Duration;

/// A process without branches, or with a parallel gateway to all its tasks.
pub struct Process {
    pub id: String,
    pub job_type: String,
    pub steps: Vec<Step>,
    pub parallel: bool,
}

#[derive(Clone)]
pub enum Step {
    /// A task with this id.
    Task(String),
    Timer(Duration),
    /// Seconds since the Unix epoch.
    DueDate(u64),
    /// A message of this name.
    Message(String),
}

impl Process {
    pub fn read(xml: &str) -> Process {
        let steps = elements(xml, &["serviceTask", "intermediateCatchEvent"]).map(|(kind, element)| {
            if kind == "serviceTask" {
                return Step::Task(attribute(element, "id"));
            }
            match (content(element, "timeDuration"), content(element, "timeDate")) {
                (Some(duration), _) => Step::Timer(read_duration(duration)),
                (_, Some(date)) => Step::DueDate(read_date(date)),
                (None, None) => {
                    let message = first(xml, "message");
                    assert!(message.contains("correlationKey=\"=loadTag\""), "{message}");
                    Step::Message(attribute(message, "name"))
                }
            }
        });
        Process {
            id: attribute(first(xml, "process"), "id"),
            job_type: attribute(first(xml, "serviceTask"), "type"),
            steps: steps.collect(),
            parallel: xml.contains("parallelGateway"),
        }
    }
}

/// The elements of these kinds with their content, in the order of the text.
fn elements<'a, 'k>(xml: &'a str, kinds: &'k [&'k str]) -> impl Iterator<Item = (&'k str, &'a str)> + use<'a, 'k> {
    xml.match_indices("<bpmn:").filter_map(move |(start, prefix)| {
        let rest = &xml[start..];
        let kind = kinds.iter().find(|kind| rest[prefix.len()..].starts_with(&format!("{kind} ")))?;
        let end = rest.find(&format!("</bpmn:{kind}>")).expect("the end of the element");
        Some((*kind, &rest[..end]))
    })
}

fn first<'a>(xml: &'a str, kind: &str) -> &'a str {
    elements(xml, &[kind]).map(|(_, element)| element).next().expect("such an element")
}

fn attribute(element: &str, name: &str) -> String {
    let before = format!(" {name}=\"");
    let rest = &element[element.find(&before).expect("the attribute") + before.len()..];
    rest.chars().take_while(|character| *character != '"').collect()
}

fn content<'a>(element: &'a str, inner: &str) -> Option<&'a str> {
    let rest = &element[element.find(&format!("<bpmn:{inner} "))?..];
    let start = rest.find('>')? + 1;
    Some(&rest[start..start + rest[start..].find('<')?])
}

/// Of the form `PT1.250S`.
fn read_duration(text: &str) -> Duration {
    let seconds = text.strip_prefix("PT").and_then(|text| text.strip_suffix('S')).expect("a duration in seconds");
    Duration::from_secs_f64(seconds.parse().expect("a number"))
}

/// Of the form `2025-12-31T23:59:59Z`.
fn read_date(text: &str) -> u64 {
    let mut fields = text.split(['-', 'T', ':', 'Z']).map_while(|field| field.parse::<u64>().ok());
    let mut next = || fields.next().expect("a date");
    let (year, month, day, hour, minute, second) = (next(), next(), next(), next(), next(), next());
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let days_of_years: u64 = (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum();
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let days = days_of_years + lengths.iter().take(month as usize - 1).sum::<u64>() + day - 1;
    ((days * 24 + hour) * 60 + minute) * 60 + second
}

/// Which creation of a surge this is; the upper half of its tag.
pub fn send_number(variables: &str) -> u64 {
    u64::from_str_radix(&correlation_key(variables), 16).expect("a tag is a hexadecimal number") >> 32
}

/// What the expression of the subscription evaluates to.
pub fn correlation_key(variables: &str) -> String {
    let name = "\"loadTag\":\"";
    let rest = &variables[variables.find(name).expect("a tag") + name.len()..];
    rest.chars().take_while(|character| *character != '"').collect()
}
