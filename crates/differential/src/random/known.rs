//! Differences of random models that are known. What follows one is not compared, as the sides are in different states
//! then; docs/conformance.md says the same to users.

use std::collections::BTreeMap;

use super::model::LEAVING;
use crate::model::{Item, Model};

const NESTED: &str = "what waits directly inside an event sub-process comes";
const LOOKED_AGAIN: &str = "an inclusive join looks again when a token has left its branches";
const CLOSED: &str = "what waits directly inside an event sub-process is closed with it";
const NOT_UNDONE: &str = "what may be undone in an instance that a modification ends is deleted";
const NOT_ESCALATED: &str = "an escalation goes on when its event sub-process cannot come any more";

/// How the lines begin that say that something no longer waits.
const CLOSINGS: [&str; 4] = [
    "TIMER CANCELED ",
    "PROCESS_MESSAGE_SUBSCRIPTION DELETING ",
    "PROCESS_MESSAGE_SUBSCRIPTION DELETED ",
    "MESSAGE_SUBSCRIPTION DELETED ",
];

/// Why the lines of a step differ, if that is known.
pub(super) fn reason(model: &Model, reference: &[String], ours: &[String]) -> Option<&'static str> {
    let nested = nested_event_sub_processes(model);
    let begins = |id: &str, what: &str| {
        if what == "ACTIVATING EVENT_SUB_PROCESS" && nested.iter().any(|(_, inner)| inner == id) {
            return Some(NESTED);
        }
        let is_closed = CLOSINGS.iter().any(|closing| what.starts_with(closing));
        if is_closed && nested.iter().any(|(outer, _)| outer == id) {
            return Some(CLOSED);
        }
        let is_modified = || ours.iter().any(|line| line.ends_with(": PROCESS_INSTANCE_MODIFICATION MODIFIED"));
        if what.starts_with("COMPENSATION_SUBSCRIPTION DELETED ") && is_modified() {
            return Some(NOT_UNDONE);
        }
        let is_join = what == "ACTIVATING INCLUSIVE_GATEWAY" && id.starts_with(LEAVING) && id.ends_with("-join");
        is_join.then_some(LOOKED_AGAIN)
    };
    only_ours(reference, ours).into_iter().find_map(|line| {
        let (id, what) = parts(line)?;
        let goes_on = what == "COMPLETING" && is_not_escalated(ours, id);
        if goes_on { Some(NOT_ESCALATED) } else { begins(id, what) }
    })
}

/// The id of the element that a line is about, and what happened.
fn parts(line: &str) -> Option<(&str, &str)> {
    let (owner, what) = line.split_once(": ")?;
    let (_, label) = owner.split_once(' ')?;
    Some((label.split('#').next().unwrap_or(label), what))
}

/// Whether the element has thrown an escalation in this step that should have been caught.
fn is_not_escalated(lines: &[String], id: &str) -> bool {
    let thrown = format!(" from {id} to ");
    lines.iter().any(|line| line.contains("ESCALATION NOT_ESCALATED ") && line.contains(&thrown))
}

fn only_ours<'a>(reference: &'a [String], ours: &'a [String]) -> Vec<&'a str> {
    let mut theirs: BTreeMap<&str, usize> = BTreeMap::new();
    for line in reference {
        *theirs.entry(line).or_default() += 1;
    }
    let mut only_ours = Vec::new();
    for line in ours {
        match theirs.get_mut(line.as_str()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => only_ours.push(line.as_str()),
        }
    }
    only_ours
}

/// Event sub-processes directly inside of others: the ids of the outer and the inner one.
fn nested_event_sub_processes(model: &Model) -> Vec<(String, String)> {
    fn collect(item: &Item, nested: &mut Vec<(String, String)>) {
        for inner in &item.items {
            if item.keyword == "event" && inner.keyword == "event" {
                nested.push((item.id.clone(), inner.id.clone()));
            }
            collect(inner, nested);
        }
    }
    let mut nested = Vec::new();
    model.processes.iter().for_each(|process| collect(process, &mut nested));
    nested
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn only_what_is_known_is_known() {
        let model = crate::model::read(
            "process main\n  event outer error\n    event inner timer=PT1M\n  event beside message=m key=k",
        );
        let model = model.expect("readable");
        let reason = |reference: &str, ours: &str| reason(&model, &lines(reference), &lines(ours));
        assert_eq!(reason("", "main inner#2: ACTIVATING EVENT_SUB_PROCESS"), Some(NESTED));
        assert_eq!(reason("", "main beside: ACTIVATING EVENT_SUB_PROCESS"), None);
        assert_eq!(reason("main inner: ACTIVATING EVENT_SUB_PROCESS", ""), None);
        assert_eq!(reason("", "main outer: TIMER CANCELED inner-start due 60s repetitions 1"), Some(CLOSED));
        assert_eq!(reason("", "main beside: TIMER CANCELED inner-start due 60s repetitions 1"), None);
        let both = "main inner: ACTIVATING EVENT_SUB_PROCESS";
        assert_eq!(reason(both, &format!("{both}\nmain t: TERMINATED")), None);
        assert_eq!(reason("", "main leaving3-join: ACTIVATING INCLUSIVE_GATEWAY"), Some(LOOKED_AGAIN));
        assert_eq!(reason("", "main inclusive3-join: ACTIVATING INCLUSIVE_GATEWAY"), None);
        let thrown = "main: ESCALATION NOT_ESCALATED S1 from throw1 to start1";
        assert_eq!(reason(thrown, &format!("{thrown}\nmain throw1: COMPLETING")), Some(NOT_ESCALATED));
        assert_eq!(reason("", "main throw1: COMPLETING"), None);
    }
}
