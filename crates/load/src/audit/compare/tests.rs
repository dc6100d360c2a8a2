//! Each kind of wrong, made by hand.

use super::*;
use crate::audit::view::Job;
use crate::ledger::{Entry, What};

const REFUSED: &str = "RESOURCE_EXHAUSTED";

/// Creations 1 to 4 are acknowledged with the keys 101 to 104 and completed by the jobs 201 to 204; 5 is refused, and of
/// 6 nobody knows the outcome.
fn book() -> Book {
    let mut book = Book::default();
    let mut add = |what| book.add(Entry { at: 1_000, what }).expect("it was intended before");
    for number in 1..=6 {
        let tag = Tag(number);
        add(What::Creating { tag, kind: 0 });
        let key = 100 + i64::try_from(number).expect("small");
        match number {
            5 => add(What::NotCreated { tag, code: REFUSED.to_owned() }),
            6 => {}
            _ => {
                add(What::Created { tag, key });
                add(What::Completing { job: key + 100, instance: key });
                add(What::Completed { job: key + 100 });
            }
        }
    }
    book
}

/// A node that has all of it, and nothing else.
fn view() -> View {
    let mut view = View::default();
    for number in 1..=4 {
        put(&mut view, number, 100 + i64::try_from(number).expect("small"), State::Completed);
    }
    view
}

fn put(view: &mut View, number: u64, key: i64, state: State) {
    view.instances.insert(key, Instance { tag: Some(Tag(number)), state, has_incident: false });
    view.jobs.insert(key + 100, Job { instance: key, task: Some(1), is_completed: state == State::Completed });
}

fn findings_of(views: Vec<View>) -> Findings {
    let book = book();
    let addresses = ["A", "B", "C"].map(str::to_owned);
    let nodes: Vec<(String, View)> = addresses.into_iter().zip(views).collect();
    Comparison { book: &book, nodes: &nodes }.findings()
}

/// What is found when the second of three nodes, or all of them, are changed.
fn changed(all: bool, change: impl Fn(&mut View)) -> (Vec<FindingKind>, String) {
    let mut views = vec![view(), view(), view()];
    views.iter_mut().enumerate().filter(|(place, _)| all || *place == 1).for_each(|(_, view)| change(view));
    let findings = findings_of(views);
    assert_eq!(findings.total(), findings.first.len() as u64);
    let kinds = findings.first.iter().map(|finding| finding.kind).collect();
    (kinds, findings.first.iter().map(|finding| finding.sentence.as_str()).collect::<Vec<_>>().join("\n"))
}

#[test]
fn nodes_that_have_everything_are_clean() {
    assert_eq!(changed(false, |_| ()).0, []);
    // A creation of unknown outcome may be done, at all nodes.
    assert_eq!(changed(true, |view| put(view, 6, 106, State::Completed)).0, []);
    // A server that shows no tags is compared by the keys that were acknowledged.
    let without = |view: &mut View| view.instances.values_mut().for_each(|instance| instance.tag = None);
    assert_eq!(changed(true, without).0, []);
}

#[test]
fn what_was_acknowledged_and_is_missing_is_lost() {
    let (kinds, text) = changed(false, |view| {
        view.instances.remove(&102);
    });
    assert_eq!(kinds, [FindingKind::Lost]);
    assert!(text.starts_with("Instance 102 (0000000000000002)") && text.ends_with("not found at B."), "{text}");
    let (kinds, text) = changed(true, |view| {
        view.jobs.remove(&203);
    });
    assert_eq!(kinds, [FindingKind::Lost]);
    assert!(text.contains("job 203 of instance 103") && text.ends_with("not completed at A, B, C."), "{text}");
    // An instance that lost its completion is active again, at one node or at all.
    let undone = |view: &mut View| put(view, 3, 103, State::Active);
    assert_eq!(changed(false, undone).0, [FindingKind::Lost, FindingKind::Disagreeing]);
    assert_eq!(changed(true, undone).0, [FindingKind::Lost, FindingKind::Stuck]);
}

#[test]
fn what_is_there_twice_is_doubled() {
    let (kinds, text) = changed(true, |view| put(view, 2, 109, State::Completed));
    assert_eq!(kinds, [FindingKind::Doubled]);
    assert!(text.contains("made 2 instances: 102, 109."), "{text}");
    // One of unknown outcome may be there once, not twice.
    let twice = |view: &mut View| {
        put(view, 6, 106, State::Completed);
        put(view, 6, 107, State::Completed);
    };
    assert_eq!(changed(true, twice).0, [FindingKind::Doubled]);
    assert_eq!(changed(true, |view| put(view, 5, 105, State::Completed)).0, [FindingKind::Doubled]);
    let (kinds, text) = changed(true, |view| {
        view.jobs.insert(301, Job { instance: 101, task: Some(1), is_completed: true });
    });
    assert_eq!(kinds, [FindingKind::Doubled]);
    assert!(text.contains("task 1 more than once: jobs 201, 301"), "{text}");
}

#[test]
fn what_waits_differs_or_is_foreign_is_found() {
    let (kinds, text) = changed(true, |view| put(view, 6, 106, State::Active));
    assert_eq!(kinds, [FindingKind::Stuck]);
    assert_eq!(text, "Instance 106 does not go on: ACTIVE at A, ACTIVE at B, ACTIVE at C.");
    let (kinds, text) = changed(false, |view| put(view, 6, 106, State::Completed));
    assert_eq!(kinds, [FindingKind::Disagreeing]);
    assert_eq!(text, "Instance 106 is not found at A, COMPLETED at B, not found at C.");
    assert_eq!(changed(true, |view| put(view, 77, 177, State::Completed)).0, [FindingKind::Unexpected]);
    let untagged = |view: &mut View| {
        put(view, 6, 106, State::Completed);
        view.instances.get_mut(&106).expect("it is there").tag = None;
    };
    assert_eq!(changed(true, untagged).0, [FindingKind::Unexpected]);
    let terminated = |view: &mut View| {
        view.instances.get_mut(&104).expect("it is there").state = State::Terminated;
    };
    assert_eq!(changed(true, terminated).0, [FindingKind::Unexpected]);
}

#[test]
fn only_the_first_findings_are_described() {
    let stuck = |mut view: View| {
        (300..400).for_each(|key| put(&mut view, 6, key, State::Active));
        view
    };
    let findings = findings_of(vec![stuck(view()), stuck(view()), stuck(view())]);
    assert_eq!(findings.first.len(), DESCRIBED_MAX);
    assert_eq!((findings.count(FindingKind::Stuck), findings.count(FindingKind::Doubled)), (100, 1));
}
