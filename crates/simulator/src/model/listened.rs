//! Which elements are listened to: their ids say so, and what listens.

use std::sync::Arc;

use model_builder::ProcessBuilder;
use protocol::{GlobalListenerEventType, GlobalListenerSource, GlobalListenerValue, JobListenerEventType};

use chance::Chance;

use super::JOB_TYPE;

/// The retries that the first listener to an event has at first, the second has one more: so jobs say whose they are.
pub const FIRST_RETRIES: i32 = 3;
/// Global listeners have more than this: the first of clients one more, the second two more, and so on.
pub const GLOBAL_RETRIES: i32 = 1_000;
/// The global listeners that the configuration of the nodes may define, with their retries.
pub const CONFIGURED: [(&str, i32); 2] = [("configured-0", 500), ("configured-1", 501)];
/// To how much of a user task may be listened, in the order of the digits in ids.
const TASK_EVENTS: [(&str, JobListenerEventType); 5] = [
    ("creating", JobListenerEventType::Creating),
    ("assigning", JobListenerEventType::Assigning),
    ("updating", JobListenerEventType::Updating),
    ("completing", JobListenerEventType::Completing),
    ("canceling", JobListenerEventType::Canceling),
];

/// How many listeners an element has, as `_` and the digits for start, end and what happens to a user task at the end of its id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listened {
    start: usize,
    end: usize,
    task: [usize; 5],
}

impl Listened {
    /// Reads the id of an element. Without digits nothing listens.
    pub fn read(id: &str) -> Self {
        let digits = id.rsplit_once('_').map_or("", |(_, digits)| digits);
        let mut counts = digits.chars().map(|digit| digit.to_digit(10).map_or(0, |digit| digit as usize));
        let mut next = || counts.next().unwrap_or(0);
        Listened { start: next(), end: next(), task: std::array::from_fn(|_| next()) }
    }

    /// Sometimes something for the start and the end of an element.
    pub fn draw(chance: &mut Chance) -> Self {
        let mut count = || if chance.one_in(3) { 1 + chance.index(2) } else { 0 };
        let listened = Listened { start: count(), end: count(), ..Listened::default() };
        if chance.one_in(3) { listened } else { Listened::default() }
    }

    /// The same with something for what happens to a user task.
    pub fn draw_task(chance: &mut Chance) -> Self {
        let of_element = Self::draw(chance);
        let is_listened = chance.one_in(2);
        let task = std::array::from_fn(|_| if is_listened && chance.one_in(2) { 1 + chance.index(2) } else { 0 });
        Listened { task, ..of_element }
    }

    /// Both for its start and its end.
    pub const BOTH: Self = Listened { start: 2, end: 1, task: [0; 5] };
    /// All that can be listened to.
    pub const ALL: Self = Listened { start: 1, end: 1, task: [1, 1, 2, 2, 2] };

    /// An id that says so.
    pub fn name(&self, id: &str) -> String {
        if *self == Listened::default() {
            return id.to_owned();
        }
        let task: String = self.task.iter().map(ToString::to_string).collect();
        format!("{id}_{}{}{task}", self.start, self.end)
    }

    /// How many listen to an event.
    pub fn count(&self, event: JobListenerEventType) -> usize {
        match event {
            JobListenerEventType::Start => self.start,
            JobListenerEventType::End => self.end,
            _ => TASK_EVENTS.iter().position(|(_, of)| *of == event).map_or(0, |at| self.task[at]),
        }
    }
}

/// Gives what was added last, or the process when there is nothing yet, the listeners that its id tells of.
pub fn listen(mut builder: ProcessBuilder, id: &str) -> ProcessBuilder {
    let listened = Listened::read(id);
    let retries = |number: usize| (FIRST_RETRIES as usize + number).to_string();
    for (event, count) in [("start", listened.start), ("end", listened.end)] {
        for number in 0..count {
            // Two listeners to one event must not look the same.
            let job_type = format!("={}\"{JOB_TYPE}\"", " ".repeat(number));
            builder = builder.execution_listener(event, &job_type).listener_retries(&retries(number));
        }
    }
    for ((event, _), count) in TASK_EVENTS.iter().zip(listened.task) {
        for number in 0..count {
            builder = builder.task_listener(event, JOB_TYPE).listener_retries(&retries(number));
        }
    }
    builder
}

/// So many of the global listeners that the configuration of the nodes may define.
pub fn configured_listeners(count: usize) -> Arc<[GlobalListenerValue]> {
    let listener = |(id, retries): &(&str, i32)| GlobalListenerValue {
        id: (*id).into(),
        job_type: JOB_TYPE.into(),
        retries: *retries,
        event_types: vec![GlobalListenerEventType::Assigning, GlobalListenerEventType::Canceling],
        source: GlobalListenerSource::Configuration,
        ..GlobalListenerValue::default()
    };
    CONFIGURED.iter().take(count).map(listener).collect()
}
