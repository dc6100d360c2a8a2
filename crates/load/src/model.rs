//! The processes that are deployed, and the variables of their instances.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::options::Profile;

/// Names of a run, unique so that runs on one server do not mix.
#[derive(Clone, Debug)]
pub(crate) struct RunNames {
    pub process_id: String,
    pub job_type: String,
}

impl RunNames {
    pub fn unique(profile: impl std::fmt::Display) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = format!("{:x}-{:x}", since_epoch.as_millis(), std::process::id());
        RunNames { process_id: format!("osmia-load-{profile}-{run}"), job_type: format!("osmia-load-{run}") }
    }
}

/// The BPMN of a profile, in which every task has the same job type.
pub(crate) fn bpmn(profile: Profile, names: &RunNames) -> String {
    let mut model = Model::default();
    model.element("startEvent", "start");
    match profile {
        Profile::OneTask | Profile::TenTasks => {
            let mut before = "start".to_owned();
            for number in 1..=profile.tasks() {
                let task = model.service_task(number, &names.job_type);
                model.flow(&before, &task);
                before = task;
            }
            model.element("endEvent", "end");
            model.flow(&before, "end");
        }
        Profile::Parallel { tasks } => {
            model.element("parallelGateway", "fork");
            model.element("parallelGateway", "join");
            model.flow("start", "fork");
            for number in 1..=tasks {
                let task = model.service_task(number, &names.job_type);
                model.flow("fork", &task);
                model.flow(&task, "join");
            }
            model.element("endEvent", "end");
            model.flow("join", "end");
        }
    }
    model.document(&names.process_id)
}

#[derive(Default)]
struct Model {
    elements: Vec<Element>,
    flows: Vec<(String, String)>,
}

struct Element {
    kind: &'static str,
    id: String,
    extension: String,
}

impl Model {
    fn element(&mut self, kind: &'static str, id: &str) {
        self.elements.push(Element { kind, id: id.to_owned(), extension: String::new() });
    }

    fn service_task(&mut self, number: u16, job_type: &str) -> String {
        let id = format!("task-{number}");
        self.elements.push(Element {
            kind: "serviceTask",
            id: id.clone(),
            extension: format!(
                "<bpmn:extensionElements><zeebe:taskDefinition type=\"{job_type}\"/></bpmn:extensionElements>"
            ),
        });
        id
    }

    fn flow(&mut self, source: &str, target: &str) {
        self.flows.push((source.to_owned(), target.to_owned()));
    }

    fn document(&self, process_id: &str) -> String {
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <bpmn:definitions xmlns:bpmn=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" \
             xmlns:zeebe=\"http://camunda.org/schema/zeebe/1.0\" id=\"definitions\" \
             targetNamespace=\"http://bpmn.io/schema/bpmn\">\n\
             <bpmn:process id=\"{process_id}\" isExecutable=\"true\">\n"
        );
        for element in &self.elements {
            let (kind, id) = (element.kind, &element.id);
            let mut body = element.extension.clone();
            for (number, (source, target)) in self.flows.iter().enumerate() {
                if target == id {
                    push(&mut body, format_args!("<bpmn:incoming>flow-{number}</bpmn:incoming>"));
                }
                if source == id {
                    push(&mut body, format_args!("<bpmn:outgoing>flow-{number}</bpmn:outgoing>"));
                }
            }
            push(&mut xml, format_args!("<bpmn:{kind} id=\"{id}\">{body}</bpmn:{kind}>\n"));
        }
        for (number, (source, target)) in self.flows.iter().enumerate() {
            push(
                &mut xml,
                format_args!(
                    "<bpmn:sequenceFlow id=\"flow-{number}\" sourceRef=\"{source}\" targetRef=\"{target}\"/>\n"
                ),
            );
        }
        xml.push_str("</bpmn:process>\n</bpmn:definitions>\n");
        xml
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string cannot fail");
}

/// Names an instance in its own variables, so that a job says to which instance it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(pub u64);

const TAG_NAME: &str = "\"loadTag\"";
const TAG_DIGITS: usize = 16;

impl Tag {
    /// Finds the tag in the variables of a job, however the server arranged them.
    pub fn find(variables: &str) -> Option<Tag> {
        let after_name = &variables[variables.find(TAG_NAME)? + TAG_NAME.len()..];
        let value = after_name.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        u64::from_str_radix(value.get(..TAG_DIGITS)?, 16).ok().map(Tag)
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
        let fixed = before_tag.len() + TAG_DIGITS;
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

    pub fn variables(&self, tag: Tag) -> String {
        let size = self.before_tag.len() + TAG_DIGITS + self.after_tag.len();
        let mut text = String::with_capacity(size);
        text.push_str(&self.before_tag);
        push(&mut text, format_args!("{:016x}", tag.0));
        text.push_str(&self.after_tag);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::PAYLOAD_MINIMUM_BYTES;

    #[test]
    fn every_flow_of_a_model_has_both_ends() {
        let names = RunNames::unique("test");
        let ten = bpmn(Profile::TenTasks, &names);
        assert_eq!(ten.matches("<bpmn:serviceTask").count(), 10);
        assert_eq!(ten.matches("<bpmn:sequenceFlow").count(), 11);
        assert_eq!(ten.matches("<bpmn:incoming>").count(), 11);
        let parallel = bpmn(Profile::Parallel { tasks: 3 }, &names);
        assert_eq!(parallel.matches("<bpmn:parallelGateway").count(), 2);
        assert_eq!(parallel.matches("<bpmn:sequenceFlow").count(), 8);
        assert_eq!(parallel.matches("<bpmn:outgoing>").count(), 8);
        assert!(parallel.contains(&names.job_type) && parallel.contains(&names.process_id));
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
