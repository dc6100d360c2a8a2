//! Relations between points and ranges (chapter 10.3.4.9 of the standard), and ranges from texts.

use std::cmp::Ordering;

use crate::evaluate::{Evaluator, Outcome};
use crate::functions::builtin::{Builtin, failed, illegal};
use crate::node::{Node, Target};
use crate::value::{Bound, Value};

const POINT_RANGE: &[&[&str]] = &[&["point", "range"], &["range1", "range2"]];
const RANGE_POINT: &[&[&str]] = &[&["range", "point"], &["range1", "range2"]];
const RANGES: &[&[&str]] = &[&["range1", "range2"]];
const ANY: &[&[&str]] = &[&["point1", "point2"], &["point", "range"], &["range", "point"], &["range1", "range2"]];

/// No range is shown with more text.
const LONGEST_TEXT_BYTES: usize = 1_024;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("before", ANY, |evaluator, arguments| relate(evaluator, "before", arguments, before)),
    Builtin::new("after", ANY, |evaluator, arguments| relate(evaluator, "after", arguments, |a, b| before(b, a))),
    Builtin::new("meets", RANGES, |evaluator, arguments| relate(evaluator, "meets", arguments, meets)),
    Builtin::new("met by", RANGES, |evaluator, arguments| relate(evaluator, "met by", arguments, |a, b| meets(b, a))),
    Builtin::new("overlaps", RANGES, |evaluator, arguments| relate(evaluator, "overlaps", arguments, overlaps)),
    Builtin::new("overlaps before", RANGES, |evaluator, arguments| {
        relate(evaluator, "overlaps before", arguments, overlaps_before)
    }),
    Builtin::new("overlaps after", RANGES, |evaluator, arguments| {
        relate(evaluator, "overlaps after", arguments, |a, b| overlaps_before(b, a))
    }),
    Builtin::new("finishes", POINT_RANGE, |evaluator, arguments| relate(evaluator, "finishes", arguments, finishes)),
    Builtin::new("finished by", RANGE_POINT, |evaluator, arguments| {
        relate(evaluator, "finished by", arguments, |a, b| finishes(b, a))
    }),
    Builtin::new("includes", RANGE_POINT, |evaluator, arguments| {
        relate(evaluator, "includes", arguments, |a, b| during(b, a))
    }),
    Builtin::new("during", POINT_RANGE, |evaluator, arguments| relate(evaluator, "during", arguments, during)),
    Builtin::new("starts", POINT_RANGE, |evaluator, arguments| relate(evaluator, "starts", arguments, starts)),
    Builtin::new("started by", RANGE_POINT, |evaluator, arguments| {
        relate(evaluator, "started by", arguments, |a, b| starts(b, a))
    }),
    Builtin::new("coincides", &[&["point1", "point2"], &["range1", "range2"]], |evaluator, arguments| {
        relate(evaluator, "coincides", arguments, coincides)
    }),
    Builtin::new("range", &[&["from"]], range),
];

/// What is related: a point, or a range with both its ends.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Point(&'a Value),
    Range(&'a Bound, &'a Bound),
}

impl<'a> Subject<'a> {
    /// A value that has an order, or a range of such values.
    fn of(value: &'a Value) -> Option<Subject<'a>> {
        match value {
            Value::Range(range) => {
                range.start.value.compare(&range.end.value)?;
                Some(Subject::Range(&range.start, &range.end))
            }
            value => value.compare(value).map(|_| Subject::Point(value)),
        }
    }
}

fn relate(
    evaluator: &mut Evaluator<'_>,
    name: &str,
    arguments: &[Value],
    relation: fn(Subject<'_>, Subject<'_>) -> Option<bool>,
) -> Outcome {
    // Texts are compared at most a few times.
    for value in arguments {
        match value {
            Value::Range(range) => {
                evaluator.spend_on_texts(&range.start.value, &range.start.value)?;
                evaluator.spend_on_texts(&range.end.value, &range.end.value)?;
            }
            value => evaluator.spend_on_texts(value, value)?,
        }
    }
    let related = match (Subject::of(&arguments[0]), Subject::of(&arguments[1])) {
        (Some(first), Some(second)) => relation(first, second),
        _ => None,
    };
    match related {
        Some(related) => Ok(Value::Boolean(related)),
        None => illegal(evaluator, name, arguments),
    }
}

fn order(a: &Bound, b: &Bound) -> Option<Ordering> {
    a.value.compare(&b.value)
}

/// Whether the range that starts at `inner` does so no earlier than the one that starts at `outer`; with the order of
/// ends reversed, the same of ends.
fn within(inner: &Bound, outer: &Bound, direction: Ordering) -> Option<bool> {
    let order = order(inner, outer)?;
    Some(order == direction || order.is_eq() && (outer.included || !inner.included))
}

fn before(a: Subject<'_>, b: Subject<'_>) -> Option<bool> {
    Some(match (a, b) {
        (Subject::Point(a), Subject::Point(b)) => a.compare(b)?.is_lt(),
        (Subject::Point(point), Subject::Range(start, _)) => {
            let order = point.compare(&start.value)?;
            order.is_lt() || order.is_eq() && !start.included
        }
        (Subject::Range(_, end), Subject::Point(point)) => {
            let order = end.value.compare(point)?;
            order.is_lt() || order.is_eq() && !end.included
        }
        (Subject::Range(_, end), Subject::Range(start, _)) => {
            let order = order(end, start)?;
            order.is_lt() || order.is_eq() && !(end.included && start.included)
        }
    })
}

fn meets(a: Subject<'_>, b: Subject<'_>) -> Option<bool> {
    let (Subject::Range(_, end), Subject::Range(start, _)) = (a, b) else {
        return None;
    };
    Some(order(end, start)?.is_eq() && end.included && start.included)
}

/// Whether the ranges that end and start here have a point in common there.
fn touch(end: &Bound, start: &Bound) -> Option<bool> {
    let order = order(end, start)?;
    Some(order.is_gt() || order.is_eq() && end.included && start.included)
}

fn overlaps(a: Subject<'_>, b: Subject<'_>) -> Option<bool> {
    let (Subject::Range(start_a, end_a), Subject::Range(start_b, end_b)) = (a, b) else {
        return None;
    };
    Some(touch(end_a, start_b)? && touch(end_b, start_a)?)
}

/// The first begins earlier, reaches into the second and does not end later.
fn overlaps_before(a: Subject<'_>, b: Subject<'_>) -> Option<bool> {
    let (Subject::Range(start_a, end_a), Subject::Range(start_b, end_b)) = (a, b) else {
        return None;
    };
    let starts = order(start_a, start_b)?;
    let earlier = starts.is_lt() || starts.is_eq() && start_a.included && !start_b.included;
    Some(earlier && touch(end_a, start_b)? && within(end_a, end_b, Ordering::Less)?)
}

fn finishes(a: Subject<'_>, b: Subject<'_>) -> Option<bool> {
    match (a, b) {
        (Subject::Point(point), Subject::Range(_, end)) => Some(point.compare(&end.value)?.is_eq() && end.included),
        (Subject::Range(start_a, end_a), Subject::Range(start_b, end_b)) => Some(
            order(end_a, end_b)?.is_eq()
                && end_a.included == end_b.included
                && within(start_a, start_b, Ordering::Greater)?,
        ),
        _ => None,
    }
}

fn starts(a: Subject<'_>, b: Subject<'_>) -> Option<bool> {
    match (a, b) {
        (Subject::Point(point), Subject::Range(start, _)) => {
            Some(point.compare(&start.value)?.is_eq() && start.included)
        }
        (Subject::Range(start_a, end_a), Subject::Range(start_b, end_b)) => Some(
            order(start_a, start_b)?.is_eq()
                && start_a.included == start_b.included
                && within(end_a, end_b, Ordering::Less)?,
        ),
        _ => None,
    }
}

fn during(a: Subject<'_>, b: Subject<'_>) -> Option<bool> {
    match (a, b) {
        (Subject::Point(point), Subject::Range(start, end)) => {
            let (from, to) = (point.compare(&start.value)?, point.compare(&end.value)?);
            Some(from.is_gt() && to.is_lt() || from.is_eq() && start.included || to.is_eq() && end.included)
        }
        (Subject::Range(start_a, end_a), Subject::Range(start_b, end_b)) => {
            Some(within(start_a, start_b, Ordering::Greater)? && within(end_a, end_b, Ordering::Less)?)
        }
        _ => None,
    }
}

fn coincides(a: Subject<'_>, b: Subject<'_>) -> Option<bool> {
    let same = |a: &Bound, b: &Bound| Some(order(a, b)?.is_eq() && a.included == b.included);
    match (a, b) {
        (Subject::Point(a), Subject::Point(b)) => Some(a.compare(b)?.is_eq()),
        (Subject::Range(start_a, end_a), Subject::Range(start_b, end_b)) => {
            Some(same(start_a, start_b)? && same(end_a, end_b)?)
        }
        _ => None,
    }
}

/// A literal, or one of the functions that make temporal values of literals.
fn is_literal(node: &Node) -> bool {
    let Node::Call(call) = node else {
        return matches!(node, Node::Constant(_));
    };
    let Target::Builtin(builtin) = &call.target else {
        return false;
    };
    matches!(builtin.name, "date" | "time" | "date and time" | "duration")
        && call.arguments.iter().all(|argument| matches!(argument, Node::Constant(_)))
}

/// `range("[1..3]")`: the text of a range whose ends are constants of one ordered type.
fn range(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Some(text) = arguments[0].as_str() else {
        return illegal(evaluator, "range", arguments);
    };
    evaluator.spend(crate::CONSTANT_STEP_LIMIT as usize)?;
    let read = || {
        let expression = crate::Expression::parse(text).ok()?;
        let Node::Range(ends) = expression.root() else {
            return None;
        };
        let constant =
            (is_literal(&ends.start) && ends.end.as_ref().is_some_and(is_literal)).then(|| expression.constant())??;
        let Value::Range(range) = &constant else {
            return None;
        };
        range.start.value.compare(&range.end.value).filter(|order| order.is_le())?;
        Some(constant)
    };
    match if text.len() <= LONGEST_TEXT_BYTES { read() } else { None } {
        Some(range) => Ok(range),
        None => failed(evaluator, "range", || format!("Can't parse '{text}' as a range")),
    }
}
