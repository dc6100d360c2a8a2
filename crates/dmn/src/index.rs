//! Which rules of a decision table an input can match, without looking at all of them.
//!
//! The constants in a column of tests divide the values of each kind into segments: each constant, and what lies between
//! two of them. For each segment the index knows the rules whose test in this column passes there. Besides, a column has
//! rules that are always looked at: tests that are no comparisons with constants, or pass almost everywhere.
//!
//! An evaluation must end like one that looks at all rules from the first to the last and at the tests of each from left
//! to right, up to the first that does not pass, also where a test fails. So a rule with a test that has to be evaluated
//! is always looked at by the columns behind that test.

use std::cmp::Ordering;

use feel::{ConstantTest, Value};

use crate::model::{InputTest, Rule};

/// Tables with fewer rules have no index.
const MINIMUM_RULES: usize = 12;
/// A test that passes in more segments is always looked at.
const MAXIMUM_SEGMENTS_PER_TEST: usize = 32;
/// A column is good enough if it leaves no more rules than this: the others are not asked.
const FEW_RULES: usize = 4;

pub(crate) struct RuleIndex {
    columns: Vec<Column>,
}

struct Column {
    input: usize,
    kinds: Vec<(Kind, Segments)>,
    always: Vec<u32>,
}

/// The segments of one kind of values: two for each constant, the one before it and itself, and one after the last.
struct Segments {
    constants: Vec<Value>,
    rules: Vec<Vec<u32>>,
}

/// Kinds of values with a total order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Boolean,
    Number,
    String,
    Date,
    YearMonthDuration,
    DayTimeDuration,
}

impl Kind {
    fn of(value: &Value) -> Option<Kind> {
        Some(match value {
            Value::Boolean(_) => Kind::Boolean,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Date(_) => Kind::Date,
            Value::YearMonthDuration(_) => Kind::YearMonthDuration,
            Value::DayTimeDuration(_) => Kind::DayTimeDuration,
            _ => return None,
        })
    }
}

/// The order of two values of one kind.
fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
        _ => left.compare(right).unwrap_or(Ordering::Equal),
    }
}

/// One test of a rule as an interval of values of one kind, each end with whether it belongs to it.
struct Interval<'a> {
    kind: Kind,
    start: Option<(&'a Value, bool)>,
    end: Option<(&'a Value, bool)>,
}

impl<'a> Interval<'a> {
    /// `None` if the test is not an interval of one kind.
    fn of(test: &'a ConstantTest) -> Option<Interval<'a>> {
        match test {
            ConstantTest::Any => None,
            ConstantTest::Equal(value) => {
                Some(Interval { kind: Kind::of(value)?, start: Some((value, true)), end: Some((value, true)) })
            }
            ConstantTest::Within(range) => {
                let end = |bound: &'a feel::Bound| {
                    let value = bound.value();
                    (!value.is_null()).then(|| (value, bound.is_included()))
                };
                let (start, end) = (end(range.start()), end(range.end()));
                let kinds = [start, end].map(|end| end.map(|(value, _)| Kind::of(value)));
                let kind = match kinds {
                    [Some(kind), None] | [None, Some(kind)] => kind?,
                    [Some(start), Some(end)] if start == end => start?,
                    _ => return None,
                };
                // Booleans are equal or not, but have no order.
                (kind != Kind::Boolean).then_some(Interval { kind, start, end })
            }
        }
    }
}

impl RuleIndex {
    pub(crate) fn build(rules: &[Rule]) -> RuleIndex {
        let inputs = rules.first().map_or(0, |rule| rule.tests.len());
        if rules.len() < MINIMUM_RULES {
            return RuleIndex { columns: Vec::new() };
        }
        // Whether a test to the left has to be evaluated.
        let mut evaluated = vec![false; rules.len()];
        let mut columns = Vec::new();
        for input in 0..inputs {
            let column = Column::build(rules, input, &evaluated);
            // Worth it only if it leaves something out.
            if column.always.len() < rules.len() {
                columns.push(column);
            }
            for (evaluated, rule) in evaluated.iter_mut().zip(rules) {
                *evaluated |= matches!(rule.tests[input], InputTest::Tests(_));
            }
        }
        RuleIndex { columns }
    }

    /// Calls `visit` with the rules that can match the inputs, in their order; all rules if there is no better way.
    pub(crate) fn visit<E>(
        &self,
        rules: usize,
        inputs: &[Value],
        mut visit: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut others: Vec<Candidates> = Vec::with_capacity(self.columns.len());
        let mut best: Option<Candidates> = None;
        for column in &self.columns {
            let found = column.candidates(&inputs[column.input]);
            let length = found.length();
            if best.as_ref().is_none_or(|best| length < best.length()) {
                others.extend(best.replace(found));
            } else {
                others.push(found);
            }
            if length <= FEW_RULES {
                others.clear();
                break;
            }
        }
        let Some(mut candidates) = best else {
            return (0..rules).try_for_each(visit);
        };
        // The shortest lists leave out the most.
        others.sort_by_key(Candidates::length);
        while let Some(rule) = candidates.next() {
            if others.iter_mut().all(|column| column.contains(rule)) {
                visit(rule as usize)?;
            }
        }
        Ok(())
    }
}

/// The rules that a column leaves: those of a segment and those that are always looked at, each in order.
struct Candidates<'a> {
    segment: &'a [u32],
    always: &'a [u32],
}

impl Candidates<'_> {
    fn length(&self) -> usize {
        self.segment.len() + self.always.len()
    }

    /// The next rule of both; no rule is in both.
    fn next(&mut self) -> Option<u32> {
        let from = match (self.segment.first(), self.always.first()) {
            (Some(first), Some(second)) if second < first => &mut self.always,
            (None, _) => &mut self.always,
            _ => &mut self.segment,
        };
        let (first, rest) = from.split_first()?;
        *from = rest;
        Some(*first)
    }

    /// Whether the rule is among them. It must be larger than in the last question: what is before it is forgotten.
    fn contains(&mut self, rule: u32) -> bool {
        advance(&mut self.segment, rule) || advance(&mut self.always, rule)
    }
}

/// Drops what is before the rule, in steps that double; whether the rule comes first then.
fn advance(list: &mut &[u32], rule: u32) -> bool {
    let (mut low, mut high, mut step) = (0, 0, 1);
    while high < list.len() && list[high] < rule {
        low = high + 1;
        high += step;
        step *= 2;
    }
    let high = high.min(list.len());
    let position = low + list[low..high].partition_point(|known| *known < rule);
    *list = &list[position..];
    list.first() == Some(&rule)
}

impl Column {
    fn build(rules: &[Rule], input: usize, evaluated: &[bool]) -> Column {
        let intervals: Vec<Option<Vec<Interval>>> = rules
            .iter()
            .zip(evaluated)
            .map(|(rule, evaluated)| match &rule.tests[input] {
                InputTest::Constants(tests) if !evaluated => tests.iter().map(Interval::of).collect(),
                _ => None,
            })
            .collect();
        let mut constants: Vec<(Kind, &Value)> = intervals
            .iter()
            .flatten()
            .flatten()
            .flat_map(|interval| [interval.start, interval.end].into_iter().flatten().map(|end| (interval.kind, end.0)))
            .collect();
        constants.sort_by(|left, right| left.0.cmp(&right.0).then_with(|| order(left.1, right.1)));
        constants.dedup_by(|left, right| left.0 == right.0 && order(left.1, right.1).is_eq());
        let mut kinds: Vec<(Kind, Segments)> = Vec::new();
        for (kind, value) in constants {
            match kinds.last_mut() {
                Some((last, segments)) if *last == kind => segments.constants.push(value.clone()),
                _ => kinds.push((kind, Segments { constants: vec![value.clone()], rules: Vec::new() })),
            }
        }
        for (_, segments) in &mut kinds {
            segments.rules = vec![Vec::new(); 2 * segments.constants.len() + 1];
        }
        let mut column = Column { input, kinds, always: Vec::new() };
        for (number, intervals) in (0_u32..).zip(&intervals) {
            column.add(number, intervals.as_deref());
        }
        column
    }

    fn add(&mut self, rule: u32, intervals: Option<&[Interval]>) {
        let Some(intervals) = intervals else {
            return self.always.push(rule);
        };
        let mut found = Vec::with_capacity(intervals.len());
        for interval in intervals {
            let Some(kind) = self.kinds.iter().position(|(kind, _)| *kind == interval.kind) else {
                return self.always.push(rule);
            };
            let segments = self.kinds[kind].1.covered(interval);
            if segments.len() > MAXIMUM_SEGMENTS_PER_TEST {
                return self.always.push(rule);
            }
            found.push((kind, segments));
        }
        for (kind, segments) in found {
            for rules in &mut self.kinds[kind].1.rules[segments] {
                // Two tests of the rule may pass in the same segment.
                if rules.last() != Some(&rule) {
                    rules.push(rule);
                }
            }
        }
    }

    /// The rules whose test may pass: those of the segment, and those that are always looked at. No interval contains a
    /// value of another kind.
    fn candidates(&self, input: &Value) -> Candidates<'_> {
        let kind = Kind::of(input);
        let segment = match self.kinds.iter().find(|(known, _)| Some(*known) == kind) {
            Some((_, segments)) => &segments.rules[segments.position(input)],
            None => &[][..],
        };
        Candidates { segment, always: &self.always }
    }
}

impl Segments {
    /// The segment of a value of this kind.
    fn position(&self, value: &Value) -> usize {
        match self.constants.binary_search_by(|constant| order(constant, value)) {
            Ok(found) => 2 * found + 1,
            Err(next) => 2 * next,
        }
    }

    fn covered(&self, interval: &Interval) -> std::ops::Range<usize> {
        let first = interval.start.map_or(0, |(value, included)| self.position(value) + usize::from(!included));
        let end = match interval.end {
            None => self.rules.len(),
            Some((value, included)) => self.position(value) + usize::from(included),
        };
        first.min(end)..end
    }
}
