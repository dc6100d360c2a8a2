//! Differences of random models that are known. What follows one is not compared, as the sides are in different states
//! then; docs/conformance.md says the same to users.

use std::collections::BTreeMap;

use super::model::LEAVING;
use crate::model::{Item, Model};
use crate::step::Step;

const NESTED: &str = "what waits directly inside an event sub-process comes";
const LOOKED_AGAIN: &str = "an inclusive join looks again when a token has left its branches";
const CLOSED: &str = "what waits directly inside an event sub-process is closed with it";
const NOT_UNDONE: &str = "what may be undone in an instance that a modification ends is deleted";
const ASKED_AGAIN: &str = "an element goes on behind what its listeners have done when its incident is resolved";
const FORGOTTEN_LATER: &str = "what may be undone in a process is deleted behind its listeners";
const RESOLVED: &str =
    "the incident of a parallel gateway or of an inner instance of an ad-hoc sub-process is resolved when that ends";
const LOOPS: &str = "a loop begins in an ad-hoc sub-process that is a loop itself";
const MIXED_UP: &str = "an event finds an event sub-process beside it that waits for a listener before it begins";
const NOT_CAUGHT: &str = "an event sub-process does not catch an error from inside of it";
const ORDERED: &str = "a signal reaches those that wait in the order in which they began to wait";
const KEPT: &str = "a compensation handler uses up no token that waits at a join";
const NOT_OPENED: &str = "a message subscription is not opened of what ends in the command in which it begins";
const SIGNALLED: &str = "a signal begins something in the scope that the event that threw it was the last in";
const NOT_YET_UNDONE: &str = "an event that waits for a listener undoes only what was completed before it began";
const REMEMBERED_LATER: &str = "what may be undone is remembered when the inner instance of a loop can complete";
const BROUGHT: &str =
    "what a listener at the end of a scope brings is set after an event sub-process has interrupted the scope";
const CANCELED_LATER: &str = "a user task that a modification ends is canceled when nothing waits at it any more";
const NOT_ESCALATED: &str = "an escalation goes on when its event sub-process cannot come any more";

/// How the lines begin that say that something no longer waits.
const CLOSINGS: [&str; 5] = [
    "TIMER CANCELED ",
    "PROCESS_MESSAGE_SUBSCRIPTION DELETING ",
    "PROCESS_MESSAGE_SUBSCRIPTION DELETED ",
    "MESSAGE_SUBSCRIPTION DELETED ",
    "SIGNAL_SUBSCRIPTION DELETED ",
];

/// Why the lines of a step differ, if that is known.
pub(super) fn reason(model: &Model, step: &Step, reference: &[String], ours: &[String]) -> Option<&'static str> {
    if asks_again(model, step, reference, ours) {
        return Some(ASKED_AGAIN);
    }
    let known = [
        (fails_at_loop(model, reference, ours), LOOPS),
        (forgets_variables(model, step, reference, ours), BROUGHT),
        (cancels_elsewhere(step, reference, ours), CANCELED_LATER),
        (forgets_early(reference, ours), FORGOTTEN_LATER),
        (mixes_up_events(model, reference, ours), MIXED_UP),
        (catches_its_own_error(model, reference, ours), NOT_CAUGHT),
        (signals_in_other_order(model, step, reference, ours), ORDERED),
        (fails_at_signal(reference, ours), SIGNALLED),
        (opens_in_vain(reference, ours), NOT_OPENED),
        (uses_up_token(model, reference, ours), KEPT),
        (undoes_later_work(model, step, reference, ours), NOT_YET_UNDONE),
        (remembers_early(reference, ours), REMEMBERED_LATER),
    ];
    if let Some((_, reason)) = known.into_iter().find(|(is_known, _)| *is_known) {
        return Some(reason);
    }
    let nested = nested_event_sub_processes(model);
    let begins = |line: &str, id: &str, what: &str| {
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
        let is_of_ended =
            || ours.iter().any(|other| other.starts_with(owner_of(line)) && other.ends_with(": TERMINATED"));
        let leaves_incident = || line.contains("#innerInstance") || is_parallel(model, id);
        if what.starts_with("INCIDENT RESOLVED ") && leaves_incident() && is_of_ended() {
            return Some(RESOLVED);
        }
        let is_join = what == "ACTIVATING INCLUSIVE_GATEWAY" && id.starts_with(LEAVING) && id.ends_with("-join");
        is_join.then_some(LOOKED_AGAIN)
    };
    only_in(ours, reference).into_iter().find_map(|line| {
        let (id, what) = parts(line)?;
        let goes_on = what == "COMPLETING" && is_not_escalated(ours, id);
        if goes_on { Some(NOT_ESCALATED) } else { begins(line, id, what) }
    })
}

/// Whether the reference has deleted what may be undone in a process that still waits for its listeners.
fn forgets_early(reference: &[String], ours: &[String]) -> bool {
    let waits = |line: &String| line.contains(": JOB CREATED ") && line.ends_with(" EXECUTION_LISTENER END");
    let early = only_in(reference, ours);
    let are_deletions = || early.iter().all(|line| line.contains(": COMPENSATION_SUBSCRIPTION DELETED "));
    !early.is_empty() && are_deletions() && only_in(ours, reference).is_empty() && ours.iter().any(waits)
}

/// Whether the reference has mapped and asked again at an element with listeners when its incident was resolved.
fn asks_again(model: &Model, step: &Step, reference: &[String], ours: &[String]) -> bool {
    let Step::Resolve { element } = step else { return false };
    let place = element.replacen('/', " ", 1);
    let id = place.split(' ').nth(1).unwrap_or_default().split('#').next().unwrap_or_default();
    let is_again = |line: &str| {
        let (owner, what) = line.split_once(": ").unwrap_or_default();
        let is_listener = what.starts_with("JOB CREATED ") && what.contains(" EXECUTION_LISTENER ");
        let is_mapped = what.starts_with("VARIABLE ") || what.starts_with("INCIDENT CREATED IO_MAPPING_ERROR");
        owner == place && (is_listener || is_mapped)
    };
    is_listened(model, id) && only_in(reference, ours).into_iter().any(is_again)
}

/// Whether the reference does not begin a loop as such, or fails internally, in an ad-hoc sub-process that is a loop itself.
fn fails_at_loop(model: &Model, reference: &[String], ours: &[String]) -> bool {
    let is_loop = |item: &Item| item.has("each");
    let is_around_loop = |item: &Item| item.keyword == "ad-hoc" && is_loop(item) && item.items.iter().any(is_loop);
    let begins = |line: &&str| line.ends_with("[]: ACTIVATING MULTI_INSTANCE_BODY") || line.contains("[]#");
    let fails = reference == ["= refused PROCESSING_ERROR"];
    let begins_inside = || only_in(reference, ours).iter().any(|line| line.contains(": ACTIVATING "));
    any_item(&model.processes, &is_around_loop)
        && (fails || begins_inside())
        && only_in(ours, reference).iter().any(begins)
}

/// Whether the reference takes one event of a scope for another, because an event sub-process there waits for a listener before it
/// begins.
fn mixes_up_events(model: &Model, reference: &[String], ours: &[String]) -> bool {
    let begins = |item: &Item| {
        let begins = |line: &String| parts(line) == Some((item.id.as_str(), "ACTIVATING EVENT_SUB_PROCESS"));
        item.keyword == "event" && ours.iter().any(begins)
    };
    let theirs = only_in(reference, ours);
    let happens = |line: &str, item: &Item, what: &str| parts(line) == Some((item.id.as_str(), what));
    let ends = |item: &Item| ours.iter().any(|line| happens(line, item, "TERMINATED"));
    let begins_anew =
        |item: &Item| theirs.iter().any(|line| happens(line, item, "ACTIVATING EVENT_SUB_PROCESS")) && ends(item);
    let waits = |item: &Item| item.keyword == "event" && item.has("listen.start");
    let is_around = |item: &Item| {
        let are_variables = theirs.iter().all(|line| line.contains(": VARIABLE "));
        let loses = |inner: &Item| are_variables && (ends(inner) || item.items.iter().any(begins));
        item.items.iter().any(|inner| waits(inner) && (loses(inner) || begins_anew(inner)))
    };
    any_item(&model.processes, &is_around)
}

/// Whether the reference begins an event sub-process anew because of an error from inside of it.
fn catches_its_own_error(model: &Model, reference: &[String], ours: &[String]) -> bool {
    let only_theirs = only_in(reference, ours);
    let happens = |id: &str, what: &str| only_theirs.iter().any(|line| parts(line) == Some((id, what)));
    let is_anew = |item: &Item| {
        item.keyword == "event"
            && item.has("error")
            && happens(&item.id, "TERMINATING")
            && happens(&item.id, "ACTIVATING EVENT_SUB_PROCESS")
    };
    any_item(&model.processes, &is_anew)
}

/// Whether a signal has reached the same in another order; it shows perhaps only in the order of the jobs that came of it.
fn signals_in_other_order(model: &Model, step: &Step, reference: &[String], ours: &[String]) -> bool {
    let (theirs, only_ours) = (only_in(reference, ours), only_in(ours, reference));
    if let Step::Activate { .. } = step {
        let are_jobs =
            |lines: &[&str]| lines.iter().all(|line| line.starts_with("= job of ") || line.contains(" JOB_BATCH "));
        let waits_for_signal =
            |item: &Item| item.has("signal") && matches!(item.keyword.as_str(), "catch" | "on" | "event");
        return theirs.len() == only_ours.len()
            && are_jobs(&theirs)
            && are_jobs(&only_ours)
            && any_item(&model.processes, &waits_for_signal);
    }
    ours.iter().any(|line| is_broadcast(line)) && theirs.is_empty() && only_ours.is_empty()
}

fn is_broadcast(line: &str) -> bool {
    line.starts_with("signal ") && line.contains(": SIGNAL BROADCASTED")
}

/// Whether the reference fails internally when a signal begins something in the scope that the event that threw it was the last in.
fn fails_at_signal(reference: &[String], ours: &[String]) -> bool {
    let begins = |line: &String| line.ends_with(": ACTIVATING EVENT_SUB_PROCESS");
    reference == ["= refused PROCESSING_ERROR"] && ours.iter().any(|line| is_broadcast(line)) && ours.iter().any(begins)
}

/// Whether the reference completes a scope in which a token waits at a join, because a compensation handler has used it up.
fn uses_up_token(model: &Model, reference: &[String], ours: &[String]) -> bool {
    let is_handled = |line: &String| line.contains(": COMPENSATION_SUBSCRIPTION COMPLETED ");
    let theirs = only_in(reference, ours);
    let completes = theirs.first().is_some_and(|line| line.ends_with(": COMPLETING"));
    let has_join = || any_item(&model.processes, &|item| item.keyword == "parallel");
    completes && only_in(ours, reference).is_empty() && ours.iter().any(is_handled) && has_join()
}

/// Whether the reference opens what is closed at once, because the element that waits ends in the step in which it begins.
fn opens_in_vain(reference: &[String], ours: &[String]) -> bool {
    let theirs = only_in(reference, ours);
    let is_in_vain = |line: &&str| {
        let ended = format!("{}: TERMINATED", owner_of(line));
        line.contains(": MESSAGE_SUBSCRIPTION ") && ours.contains(&ended)
    };
    !theirs.is_empty() && theirs.iter().all(is_in_vain) && only_in(ours, reference).is_empty()
}

/// Whether the reference undoes what was completed while the event that undoes it waited for its listener.
fn undoes_later_work(model: &Model, step: &Step, reference: &[String], ours: &[String]) -> bool {
    let Step::Complete { job, .. } = step else { return false };
    let (_, label) = job.split_once('/').unwrap_or_default();
    let id = label.split('#').next().unwrap_or_default();
    let throws = |item: &Item| item.id == id && item.has("compensation") && item.has("listen.start");
    let is_triggered = |line: &&str| line.contains(": COMPENSATION_SUBSCRIPTION TRIGGERED ");
    any_item(&model.processes, &throws) && only_in(reference, ours).iter().any(is_triggered)
}

/// Whether the reference remembers already what may be undone, although an inner instance of a loop cannot complete.
fn remembers_early(reference: &[String], ours: &[String]) -> bool {
    let early = only_in(reference, ours);
    let is_early = |line: &&str| {
        let incident = format!("{}: INCIDENT CREATED ", owner_of(line));
        line.contains(": COMPENSATION_SUBSCRIPTION CREATED ") && ours.iter().any(|other| other.starts_with(&incident))
    };
    !early.is_empty() && early.iter().all(is_early) && only_in(ours, reference).is_empty()
}

/// Whether the reference has forgotten what a listener at the end of a scope brings, which an event sub-process has interrupted.
fn forgets_variables(model: &Model, step: &Step, reference: &[String], ours: &[String]) -> bool {
    let Step::Complete { job, .. } = step else { return false };
    let (_, label) = job.split_once('/').unwrap_or_default();
    let id = label.split('#').next().unwrap_or_default();
    let interrupts = |item: &Item| item.keyword == "event" && !item.has("non-interrupting");
    let is_interrupted = |item: &Item| item.id == id && item.items.iter().any(interrupts);
    let is_result = |line: &str| line.starts_with("= result of ");
    let forgotten = only_in(ours, reference);
    let are_variables = || forgotten.iter().all(|line| line.contains(": VARIABLE ") || is_result(line));
    !forgotten.is_empty()
        && are_variables()
        && only_in(reference, ours).into_iter().all(is_result)
        && any_item(&model.processes, &is_interrupted)
}

/// Whether a modification tells the end of user tasks at another place between what it closes at them, and nothing else differs.
fn cancels_elsewhere(step: &Step, reference: &[String], ours: &[String]) -> bool {
    let is_end = |line: &&String| line.contains(": USER_TASK CANCEL");
    let split = |lines: &[String]| -> (Vec<String>, Vec<String>) {
        (lines.iter().filter(is_end).cloned().collect(), lines.iter().filter(|line| !is_end(line)).cloned().collect())
    };
    matches!(step, Step::Modify { .. }) && split(reference) == split(ours)
}

fn any_item(items: &[Item], holds: &dyn Fn(&Item) -> bool) -> bool {
    items.iter().any(|item| holds(item) || any_item(&item.items, holds))
}

fn is_parallel(model: &Model, id: &str) -> bool {
    let id = id.strip_suffix("-join").unwrap_or(id);
    any_item(&model.processes, &|item| item.id == id && item.keyword == "parallel")
}

fn is_listened(model: &Model, id: &str) -> bool {
    let listens = |item: &Item| match id.strip_prefix(&item.id) {
        Some("") => item.prefixed("listen.").next().is_some(),
        Some("-start") => item.has("start-listen"),
        Some("-join") => item.has("join-listen"),
        _ => false,
    };
    any_item(&model.processes, &listens)
}

fn owner_of(line: &str) -> &str {
    line.split(": ").next().unwrap_or_default()
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

/// The lines of one side that the other one does not have.
fn only_in<'a>(side: &'a [String], other: &'a [String]) -> Vec<&'a str> {
    let mut theirs: BTreeMap<&str, usize> = BTreeMap::new();
    for line in other {
        *theirs.entry(line).or_default() += 1;
    }
    let mut only_here = Vec::new();
    for line in side {
        match theirs.get_mut(line.as_str()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => only_here.push(line.as_str()),
        }
    }
    only_here
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
    use crate::step::read;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn only_what_is_known_is_known() {
        let model = crate::model::read(
            "process main\n  event outer error\n    event inner timer=PT1M\n  event beside message=m key=k",
        );
        let model = model.expect("readable");
        let passes = Step::Time { milliseconds: 1 };
        let reason = |reference: &str, ours: &str| reason(&model, &passes, &lines(reference), &lines(ours));
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
        assert_eq!(reason("", "main outer: SIGNAL_SUBSCRIPTION DELETED s inner-start"), Some(CLOSED));
        let broadcast = "signal s: SIGNAL BROADCASTED";
        assert_eq!(
            reason(&format!("main a: X\nmain b: X\n{broadcast}"), &format!("main b: X\nmain a: X\n{broadcast}")),
            Some(ORDERED)
        );
        assert_eq!(reason("main a: X\nmain b: X", "main b: X\nmain a: X"), None);
    }

    #[test]
    fn what_the_reference_does_about_listeners_is_known_of_what_has_some_only() {
        let model = crate::model::read(
            "process main listen.end=a\n  service t type=a listen.start=a\n  service u type=a\n  event stop message=m key=k\n  \
             event beside signal=s non-interrupting listen.start=a\n  parallel p\n    branch\n  ad-hoc ad each=`=[1]`\n    \
             task loop each=`=[1]`",
        );
        let model = model.expect("readable");
        let reason = |step: &str, reference: &str, ours: &str| {
            reason(&model, &read(step).expect("readable"), &lines(reference), &lines(ours))
        };
        let job = |id: &str| format!("main {id}: JOB CREATED a retries 3 headers {{}} EXECUTION_LISTENER START");
        assert_eq!(reason("resolve main/t", &job("t"), "main t: ACTIVATED"), Some(ASKED_AGAIN));
        assert_eq!(reason("resolve main/u", &job("u"), "main u: ACTIVATED"), None);
        assert_eq!(reason("time PT1S", &job("t"), "main t: ACTIVATED"), None);
        let result = "main main: VARIABLE CREATED x = 1";
        assert_eq!(reason("complete main/main", "", result), Some(BROUGHT));
        assert_eq!(reason("complete main/u", "", result), None);
        assert_eq!(reason("complete main/main", "", &format!("{result}\nmain u: TERMINATED")), None);
        let early = "main u: COMPENSATION_SUBSCRIPTION DELETED of u handler 'h' throw ''";
        let waits = "main main: JOB CREATED a retries 3 headers {} EXECUTION_LISTENER END";
        assert_eq!(reason("time PT1S", &format!("{early}\n{waits}"), waits), Some(FORGOTTEN_LATER));
        assert_eq!(reason("time PT1S", early, ""), None);
        let stops = "main stop: ACTIVATING EVENT_SUB_PROCESS";
        assert_eq!(reason("publish m k PT0S", "", &format!("{stops}\n{result}")), Some(MIXED_UP));
        assert_eq!(reason("publish m k PT0S", "main u: TERMINATED", stops), None);
        let ended = "main p: TERMINATED";
        let opened = "main p: MESSAGE_SUBSCRIPTION CREATED m 'k'";
        assert_eq!(reason("time PT1S", &format!("{ended}\n{opened}"), ended), Some(NOT_OPENED));
        assert_eq!(reason("time PT1S", opened, ""), None);
        let resolved = format!("main p: INCIDENT RESOLVED EXTRACT_VALUE_ERROR\n{ended}");
        assert_eq!(reason("time PT1S", ended, &resolved), Some(RESOLVED));
        assert_eq!(reason("time PT1S", "main u: TERMINATED", &resolved.replace(" p:", " u:")), None);
        let begins = "main loop[]: ACTIVATING MULTI_INSTANCE_BODY";
        assert_eq!(reason("choose main/ad activate loop", "= refused PROCESSING_ERROR", begins), Some(LOOPS));
        assert_eq!(reason("choose main/ad activate loop", "= refused NOT_FOUND", begins), None);
        let canceled = "main u: USER_TASK CANCELED priority 50 headers {}";
        let (before, after) = (format!("{canceled}\nmain u: X"), format!("main u: X\n{canceled}"));
        assert_eq!(reason("modify main terminate main/u", &after, &before), Some(CANCELED_LATER));
        assert_eq!(reason("cancel main", &after, &before), None);
    }
}
