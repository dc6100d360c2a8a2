//! `if`, `for`, `some` and `every`.

use std::sync::Arc;

use super::{EvaluationError, Evaluator, Failure, Outcome};
use crate::environment::WarningKind;
use crate::node::{Domain, Loop, Node};
use crate::number::Number;
use crate::value::{DEPTH_LIMIT, List, Value};

/// What a loop does with the values of its body.
enum Collect {
    List(Vec<Value>),
    /// Like a list, but the body can see it.
    Visible(Arc<List>),
    /// `some` (looking for true) or `every` (looking for false).
    Search {
        wanted: bool,
        found: bool,
        undecided: bool,
    },
}

impl Evaluator<'_> {
    #[inline(never)]
    pub(super) fn if_clause(&mut self, parts: &[Node; 3]) -> Outcome {
        let condition = self.evaluate(&parts[0])?;
        match condition {
            Value::Boolean(true) => self.evaluate(&parts[1]),
            Value::Boolean(false) => self.evaluate(&parts[2]),
            other => {
                self.warn(WarningKind::InvalidType, || format!("Expected boolean but found '{other}'"));
                self.evaluate(&parts[2])
            }
        }
    }

    #[inline(never)]
    pub(super) fn for_clause(&mut self, node: &Loop) -> Outcome {
        let mut collect =
            if node.uses_partial { Collect::Visible(Arc::new(List::default())) } else { Collect::List(Vec::new()) };
        if !self.iterate(node, 0, &mut collect)? {
            return Ok(Value::Null);
        }
        Ok(match collect {
            Collect::List(values) => Value::list(values),
            Collect::Visible(values) => Value::List(values),
            Collect::Search { .. } => unreachable!("a for loop collects a list"),
        })
    }

    #[inline(never)]
    pub(super) fn quantified(&mut self, node: &Loop, wanted: bool) -> Outcome {
        let mut collect = Collect::Search { wanted, found: false, undecided: false };
        if !self.iterate(node, 0, &mut collect)? {
            return Ok(Value::Null);
        }
        let Collect::Search { found, undecided, .. } = collect else {
            unreachable!("a quantified expression searches");
        };
        Ok(match (found, undecided) {
            (true, _) => Value::Boolean(wanted),
            (false, true) => Value::Null,
            (false, false) => Value::Boolean(!wanted),
        })
    }

    /// Runs through the domain at `level` and, inside, the ones behind it. False if a domain is no list.
    fn iterate(&mut self, node: &Loop, level: usize, collect: &mut Collect) -> Result<bool, Failure> {
        match &node.domains[level] {
            Domain::Items(items) => {
                let items = match self.evaluate(items)? {
                    Value::List(items) => items,
                    Value::Range(range) => {
                        return match (range.start.value.as_i64(), range.end.value.as_i64()) {
                            (Some(start), Some(end)) if range.start.included && range.end.included && start <= end => {
                                self.numbers(node, level, start, end, collect)
                            }
                            _ => Ok(self.no_list(&Value::Range(range.clone()))),
                        };
                    }
                    other => return Ok(self.no_list(&other)),
                };
                for item in items.iter() {
                    if !self.step(node, level, item.clone(), collect)? {
                        return Ok(false);
                    }
                    if let Collect::Search { found: true, .. } = collect {
                        break;
                    }
                }
                Ok(true)
            }
            Domain::Numbers(start, end) => {
                let (start, end) = (self.evaluate(start)?, self.evaluate(end)?);
                match (start.as_i64(), end.as_i64()) {
                    (Some(start), Some(end)) => self.numbers(node, level, start, end, collect),
                    _ => match (start.as_number(), end.as_number()) {
                        (None, None) if matches!((&start, &end), (Value::Date(_), Value::Date(_))) => {
                            self.days(node, level, &start, &end, collect)
                        }
                        (Some(start), Some(end)) => self.fractions(node, level, start, end, collect),
                        (None, _) => Ok(self.no_number(&start)),
                        _ => Ok(self.no_number(&end)),
                    },
                }
            }
        }
    }

    fn numbers(
        &mut self,
        node: &Loop,
        level: usize,
        start: i64,
        end: i64,
        collect: &mut Collect,
    ) -> Result<bool, Failure> {
        let mut current = start;
        loop {
            if !self.step(node, level, Value::integer(current), collect)? {
                return Ok(false);
            }
            if current == end || matches!(collect, Collect::Search { found: true, .. }) {
                return Ok(true);
            }
            current += if start < end { 1 } else { -1 };
        }
    }

    /// Every day between two dates, upwards or downwards.
    fn days(
        &mut self,
        node: &Loop,
        level: usize,
        start: &Value,
        end: &Value,
        collect: &mut Collect,
    ) -> Result<bool, Failure> {
        let (Value::Date(start), Value::Date(end)) = (start, end) else {
            return Ok(false);
        };
        let mut current = *start;
        loop {
            if !self.step(node, level, Value::Date(current), collect)? {
                return Ok(false);
            }
            if current == *end || matches!(collect, Collect::Search { found: true, .. }) {
                return Ok(true);
            }
            match current.plus_days(if start < end { 1 } else { -1 }) {
                Some(next) => current = next,
                None => return Ok(true),
            }
        }
    }

    /// Like [`Self::numbers`] where the steps between the ends may have fractions: the last is the one before the end.
    // Loops in each other repeat the frame that calls this one, which would grow by what this one needs.
    #[inline(never)]
    fn fractions(
        &mut self,
        node: &Loop,
        level: usize,
        start: Number,
        end: Number,
        collect: &mut Collect,
    ) -> Result<bool, Failure> {
        let upwards = start < end;
        let mut current = start;
        while if upwards { current <= end } else { current >= end } {
            // Fractions take longer than whole numbers do.
            self.spend(2)?;
            if !self.step(node, level, Value::Number(current), collect)? {
                return Ok(false);
            }
            let next = current.plus(Number::Integer(if upwards { 1 } else { -1 }));
            match next {
                // A number so large that one more is the same would never end.
                Some(next) if next != current && !matches!(collect, Collect::Search { found: true, .. }) => {
                    current = next;
                }
                _ => break,
            }
        }
        Ok(true)
    }

    fn step(&mut self, node: &Loop, level: usize, value: Value, collect: &mut Collect) -> Result<bool, Failure> {
        self.spend(1)?;
        self.enter()?;
        self.stack.push(value);
        let goes_on = if level + 1 == node.domains.len() {
            self.body(node, collect)?;
            true
        } else {
            self.iterate(node, level + 1, collect)?
        };
        self.forget();
        self.budget.leave(1);
        Ok(goes_on)
    }

    #[cold]
    fn no_list(&mut self, value: &Value) -> bool {
        self.warn(WarningKind::InvalidType, || format!("Expected list but found '{value}'"));
        false
    }

    #[cold]
    fn no_number(&mut self, value: &Value) -> bool {
        self.warn(WarningKind::InvalidType, || format!("Expected number but found '{value}'"));
        false
    }

    fn body(&mut self, node: &Loop, collect: &mut Collect) -> Result<(), Failure> {
        match collect {
            Collect::List(values) => {
                self.stack.push(Value::Null);
                let value = self.evaluate(&node.body)?;
                self.forget();
                self.collected(values.len())?;
                values.push(value);
            }
            Collect::Visible(values) => {
                // The list is moved to the stack and back: as long as the body keeps no copy, adding to it copies nothing.
                self.stack.push(Value::List(std::mem::take(values)));
                let value = self.evaluate(&node.body)?;
                let Some(Value::List(mut list)) = self.stack.pop() else {
                    unreachable!("the body leaves the stack as it was");
                };
                // Each round may take the list of the one before into its value: thousands of rounds would nest as many
                // levels before the loop has an end.
                if value.depth() >= DEPTH_LIMIT {
                    return Err(EvaluationError::ValueTooDeep(DEPTH_LIMIT).into());
                }
                self.collected(list.len())?;
                if Arc::strong_count(&list) > 1 {
                    self.allocate_list(list.len())?;
                }
                Arc::make_mut(&mut list).push(value);
                *values = list;
            }
            Collect::Search { wanted, found, undecided } => match self.evaluate(&node.body)? {
                Value::Boolean(value) if value == *wanted => *found = true,
                Value::Boolean(_) => {}
                other => {
                    *undecided = true;
                    self.warn(WarningKind::InvalidType, || format!("Expected boolean but found '{other}'"));
                }
            },
        }
        Ok(())
    }

    fn collected(&mut self, length: usize) -> Result<(), Failure> {
        self.lengthen_list(length)
    }
}
