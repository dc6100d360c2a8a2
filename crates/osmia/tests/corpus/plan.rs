//! What people and workers do in the instances of a model, and what must come out.

use std::path::Path;

use serde_json::{Map, Value};

/// How an instance begins.
pub enum Begin {
    Creation,
    /// A message with this name.
    Message(String),
    /// A signal with this name; which instance it begins is seen by its process.
    Signal(String),
    /// A timer: the clock is moved anyway.
    Timer,
}

/// One instance of a process.
pub struct Run {
    pub begin: Begin,
    pub variables: Value,
    /// By job type: variables, or what else is done with the job; a list for one job after the other.
    pub jobs: Map<String, Value>,
    /// By element id: variables.
    pub tasks: Map<String, Value>,
    /// By name of the message: variables.
    pub messages: Map<String, Value>,
    /// Variables at the end.
    pub expect: Map<String, Value>,
    /// Elements that must have been completed, or with `!` in front must not.
    pub completed: Vec<String>,
}

/// All instances of a process.
pub struct Plan {
    pub file: String,
    pub process: String,
    pub runs: Vec<Run>,
    /// Signals, in the order in which they are broadcast when nothing else happens.
    pub signals: Vec<String>,
}

impl Plan {
    pub fn read(path: &Path, beside: &Value) -> Plan {
        let file = path.file_name().expect("a file").to_string_lossy().into_owned();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let known = ["process", "runs", "signals", "jobs", "tasks", "messages"];
        let members = beside.as_object().into_iter().flat_map(|members| members.keys());
        members.for_each(|member| assert!(known.contains(&member.as_str()), "{file} has an unknown member {member}"));
        let process = beside["process"].as_str().unwrap_or(&name).to_owned();
        let runs = beside["runs"].as_array().map_or_else(
            || vec![Run::read(&Value::Null, beside)],
            |runs| runs.iter().map(|run| Run::read(run, beside)).collect(),
        );
        Plan { runs, file, process, signals: texts(&beside["signals"]) }
    }
}

impl Run {
    fn read(run: &Value, plan: &Value) -> Run {
        let text = |name: &str| run[name].as_str().map(str::to_owned);
        let begin = match (text("message"), text("signal"), run["timer"].as_bool()) {
            (Some(message), ..) => Begin::Message(message),
            (_, Some(signal), _) => Begin::Signal(signal),
            (.., Some(true)) => Begin::Timer,
            _ => Begin::Creation,
        };
        // What is said of this instance goes before what is said of all.
        let both = |name: &str| {
            let mut members = plan[name].as_object().cloned().unwrap_or_default();
            members.extend(run[name].as_object().cloned().unwrap_or_default());
            members
        };
        let variables = if run["variables"].is_object() { run["variables"].clone() } else { Value::Object(Map::new()) };
        Run {
            begin,
            variables,
            jobs: both("jobs"),
            tasks: both("tasks"),
            messages: both("messages"),
            expect: run["expect"].as_object().cloned().unwrap_or_default(),
            completed: texts(&run["completed"]),
        }
    }
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten();
    texts.map(|text| text.as_str().expect("a text").to_owned()).collect()
}
