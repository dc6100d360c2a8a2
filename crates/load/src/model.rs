//! The processes that are deployed, and the variables of their instances.

use std::fmt::{Display, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model_builder::{Event, ProcessBuilder};

use crate::profile::{Kind, WaitsFor};

/// Names of a run, unique so that runs on one server do not mix.
#[derive(Clone, Debug)]
pub(crate) struct RunNames {
    run: String,
    pub job_type: String,
    /// The name of all messages; the correlation key tells the instances apart.
    pub message: String,
}

impl RunNames {
    pub fn unique() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = format!("{:x}-{:x}", since_epoch.as_millis(), std::process::id());
        RunNames { job_type: format!("osmia-load-{run}"), message: format!("osmia-load-{run}"), run }
    }

    pub fn process_id(&self, kind: Kind) -> String {
        format!("osmia-load-{kind}-{}", self.run)
    }
}

/// What a boundary timer waits that is cancelled in every instance.
const BOUNDARY_TIMER: Duration = Duration::from_secs(3_600);

/// The BPMN of a process, in which every task has the same job type.
pub(crate) fn bpmn(kind: Kind, names: &RunNames) -> String {
    let mut process = ProcessBuilder::new(&names.process_id(kind)).start("start");
    if kind.in_sequence() {
        for number in 1..=kind.tasks() {
            if let Some((task, waits_for)) = kind.waits_before()
                && task == number
            {
                process = catch_event(process, waits_for, names);
            }
            process = process.service_task(&task_id(number), &names.job_type);
        }
        process = process.end("end");
        if matches!(kind, Kind::TenTasksTwoTimers { .. }) {
            process = process.boundary("late", &task_id(1), Event::Duration(&duration(BOUNDARY_TIMER))).end("too-late");
        }
    } else {
        process = process.parallel_gateway("fork");
        for number in 1..=kind.tasks() {
            process = process.move_to("fork").service_task(&task_id(number), &names.job_type);
            process = if number == 1 { process.parallel_gateway("join") } else { process.connect_to("join") };
        }
        process = process.move_to("join").end("end");
    }
    process.to_xml()
}

fn catch_event(process: ProcessBuilder, waits_for: WaitsFor, names: &RunNames) -> ProcessBuilder {
    let id = "wait";
    match waits_for {
        WaitsFor::Timer(timer) => process.catch_event(id, Event::Duration(&duration(timer))),
        WaitsFor::DueDate(due) => process.catch_event(id, Event::Date(&date(due))),
        WaitsFor::Message => process.catch_event(id, Event::Message(&names.message, &format!("={TAG}"))),
    }
}

/// A duration in ISO 8601, to the millisecond.
fn duration(duration: Duration) -> String {
    format!("PT{}.{:03}S", duration.as_secs(), duration.subsec_millis())
}

/// A time in seconds since the Unix epoch, as a date in ISO 8601.
pub(crate) fn date(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from the first of March, so that the leap day is the last of its year, and in spans of 400
    // years, which all have as many days.
    let days = days + 719_468;
    let (span, of_span) = (days / 146_097, days % 146_097);
    let year_of_span = (of_span - of_span / 1_460 + of_span / 36_524 - of_span / 146_096) / 365;
    let of_year = of_span - (365 * year_of_span + year_of_span / 4 - year_of_span / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = span * 400 + year_of_span + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

const TASK_ID: &str = "task-";

fn task_id(number: u16) -> String {
    format!("{TASK_ID}{number}")
}

/// The number of the task with this id.
pub(crate) fn task_number(element_id: &str) -> Option<u16> {
    element_id.strip_prefix(TASK_ID)?.parse().ok()
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string cannot fail");
}

/// Names an instance in its own variables, so that a job shows which instance it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tag(pub u64);

/// The variable that holds the tag.
pub(crate) const TAG: &str = "loadTag";
const TAG_NAME: &str = "\"loadTag\"";

impl Tag {
    pub const DIGITS: usize = 16;

    /// Contains which send this is, and when it was made, in microseconds since the start of the run.
    pub fn of_send(number: u32, sent: u32) -> Tag {
        Tag(u64::from(number) << 32 | u64::from(sent))
    }

    /// What [`Tag::of_send`] was given.
    pub fn send(self) -> (u32, u32) {
        ((self.0 >> 32) as u32, self.0 as u32)
    }

    /// Reads what it is written as.
    pub fn parse(text: &str) -> Option<Tag> {
        let is_tag = text.len() == Tag::DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_tag.then(|| u64::from_str_radix(text, 16).ok().map(Tag)).flatten()
    }

    /// As a tag of its process instance, by which searches find it.
    pub fn of_instance(self) -> String {
        format!("{TAG}:{self}")
    }

    /// Finds it among the tags of a process instance.
    pub fn among<'a>(tags: impl IntoIterator<Item = &'a str>) -> Option<Tag> {
        let own = |tag: &'a str| tag.strip_prefix(TAG)?.strip_prefix(':').and_then(Tag::parse);
        tags.into_iter().find_map(own)
    }

    /// Finds the tag in the variables of a job, however the server arranged them.
    pub fn find(variables: &str) -> Option<Tag> {
        let after_name = &variables[variables.find(TAG_NAME)? + TAG_NAME.len()..];
        let value = after_name.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        u64::from_str_radix(value.get(..Tag::DIGITS)?, 16).ok().map(Tag)
    }
}

/// As it is written in the variables, and as a correlation key.
impl Display for Tag {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// Variables of a given size in which only the tag differs between instances.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    before_tag: String,
    after_tag: String,
}

impl Payload {
    /// At small sizes the tag alone, then an order, then a text that fills the rest.
    pub fn of_bytes(bytes: usize) -> Self {
        let before_tag = format!("{{{TAG_NAME}:\"");
        let mut after_tag = String::from("\"");
        let fixed = before_tag.len() + Tag::DIGITS;
        let order = ",\"order\":{\"id\":4711,\"express\":true,\"total\":129.95}";
        let text = ",\"text\":\"";
        if fixed + after_tag.len() + order.len() + "}".len() <= bytes {
            after_tag.push_str(order);
        }
        let with_text = fixed + after_tag.len() + text.len() + "\"}".len();
        if with_text <= bytes {
            after_tag.push_str(text);
            let alphabet = "abcdefghijklmnopqrstuvwxyz ".chars().cycle();
            after_tag.extend(alphabet.take(bytes - with_text));
            after_tag.push('"');
        }
        after_tag.push('}');
        Payload { before_tag, after_tag }
    }

    /// Where in the variables the tag begins.
    pub fn tag_at(&self) -> usize {
        self.before_tag.len()
    }

    pub fn variables(&self, tag: Tag) -> String {
        let size = self.before_tag.len() + Tag::DIGITS + self.after_tag.len();
        let mut text = String::with_capacity(size);
        text.push_str(&self.before_tag);
        push(&mut text, format_args!("{tag}"));
        text.push_str(&self.after_tag);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::PAYLOAD_MINIMUM_BYTES;

    const TWO_TIMERS: Kind = Kind::TenTasksTwoTimers { timer: Duration::from_millis(1_250) };
    const TIMER_TASK: Kind = Kind::TimerTask { due: 1_767_225_599 };

    fn model(kind: Kind) -> String {
        bpmn(kind, &RunNames::unique())
    }

    #[test]
    fn every_flow_of_a_model_has_both_ends() {
        let ten = model(Kind::TenTasks);
        assert_eq!(ten.matches("<bpmn:serviceTask").count(), 10);
        let parallel = model(Kind::Parallel { tasks: 3 });
        assert_eq!(parallel.matches("<bpmn:parallelGateway").count(), 2);
        for (xml, flows) in [
            (ten, 11),
            (parallel, 8),
            (model(Kind::OneTask), 2),
            (model(TWO_TIMERS), 13),
            (model(Kind::TaskMessageTask), 4),
            (model(Kind::MessageTask), 3),
            (model(TIMER_TASK), 3),
        ] {
            assert_eq!(xml.matches("<bpmn:sequenceFlow").count(), flows, "{xml}");
            assert_eq!(xml.matches("<bpmn:incoming>").count(), flows, "{xml}");
            assert_eq!(xml.matches("<bpmn:outgoing>").count(), flows, "{xml}");
        }
    }

    #[test]
    fn models_hold_the_names_of_the_run() {
        let names = RunNames::unique();
        let xml = bpmn(Kind::TaskMessageTask, &names);
        assert!(xml.contains(&names.process_id(Kind::TaskMessageTask)), "{xml}");
        assert!(xml.contains(&format!("name=\"{}\"", names.message)), "{xml}");
        assert!(xml.contains(&format!("type=\"{}\"", names.job_type)), "{xml}");
        assert!(xml.contains("correlationKey=\"=loadTag\""), "{xml}");
        assert_ne!(names.process_id(Kind::OneTask), names.process_id(Kind::TenTasks));
    }

    #[test]
    fn timers_have_their_times() {
        let two = model(TWO_TIMERS);
        assert!(two.contains(">PT1.250S</bpmn:timeDuration>"), "{two}");
        assert!(two.contains(">PT3600.000S</bpmn:timeDuration>"), "{two}");
        // The catch event stands between the fifth and the sixth task.
        let at = |id: &str| two.find(&format!("id=\"{id}\"")).expect("the element is there");
        assert!(at("task-5") < at("wait") && at("wait") < at("task-6"), "{two}");
        let dated = model(TIMER_TASK);
        assert!(dated.contains(">2025-12-31T23:59:59Z</bpmn:timeDate>"), "{dated}");
    }

    #[test]
    fn dates_are_right_around_leap_days_and_centuries() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_772_325_000, "2026-03-01T00:30:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn tasks_are_known_by_their_ids() {
        assert_eq!(task_number("task-10"), Some(10));
        assert_eq!(task_number("wait"), None);
        assert_eq!(task_number("task-"), None);
    }

    #[test]
    fn payloads_have_their_size_and_give_the_tag_back() {
        for bytes in [PAYLOAD_MINIMUM_BYTES, 50, 120, 512, 32 * 1024] {
            let text = Payload::of_bytes(bytes).variables(Tag(0xfeed_0000_0000_0001));
            assert!(text.len() <= bytes, "{} bytes for {bytes}", text.len());
            assert!(bytes < 120 || text.len() == bytes, "{} bytes for {bytes}", text.len());
            serde_json::from_str::<serde_json::Value>(&text).expect("a JSON document");
            assert_eq!(Tag::find(&text), Some(Tag(0xfeed_0000_0000_0001)));
        }
    }

    #[test]
    fn tags_are_found_in_rearranged_variables() {
        let rearranged = r#"{ "text": "x", "loadTag" : "00000000000000ff" }"#;
        assert_eq!(Tag::find(rearranged), Some(Tag(255)));
        assert_eq!(Tag::find(r#"{"loadTag":12}"#), None);
        assert_eq!(Tag::find("{}"), None);
    }
}
