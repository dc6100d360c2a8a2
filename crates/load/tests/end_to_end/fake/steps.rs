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
        let steps = xml.lines().filter_map(|line| {
            if line.starts_with("<bpmn:serviceTask") {
                return Some(Step::Task(attribute(line, "id")));
            }
            if !line.starts_with("<bpmn:intermediateCatchEvent") {
                return None;
            }
            let step = match (content(line, "timeDuration"), content(line, "timeDate")) {
                (Some(duration), _) => Step::Timer(read_duration(duration)),
                (_, Some(date)) => Step::DueDate(read_date(date)),
                (None, None) => {
                    let message = xml.lines().find(|line| line.starts_with("<bpmn:message ")).expect("a message");
                    assert!(message.contains("correlationKey=\"=loadTag\""), "{message}");
                    Step::Message(attribute(message, "name"))
                }
            };
            Some(step)
        });
        let process = xml.lines().find(|line| line.starts_with("<bpmn:process ")).expect("a process");
        let task = xml.lines().find(|line| line.starts_with("<bpmn:serviceTask")).expect("a task");
        Process {
            id: attribute(process, "id"),
            job_type: attribute(task, "type"),
            steps: steps.collect(),
            parallel: xml.contains("parallelGateway"),
        }
    }
}

fn attribute(line: &str, name: &str) -> String {
    let before = format!(" {name}=\"");
    let rest = &line[line.find(&before).expect("the attribute") + before.len()..];
    rest.chars().take_while(|character| *character != '"').collect()
}

fn content<'a>(line: &'a str, element: &str) -> Option<&'a str> {
    let rest = &line[line.find(&format!("<bpmn:{element} "))?..];
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
