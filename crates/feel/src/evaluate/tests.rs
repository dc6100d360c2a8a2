//! Unary tests: behind `in`, and of decision tables.

use super::{Evaluator, Failure, Outcome};
use crate::environment::WarningKind;
use crate::node::{Comparison, Node, Test};
use crate::value::{Range, Value};

impl Evaluator<'_> {
    /// Whether the input passes one of the tests; null if that is unknown.
    pub(super) fn unary_tests(&mut self, tests: &[Test], input: Value) -> Outcome {
        self.stack.push(input);
        let result = self.any_test(tests)?;
        self.forget();
        Ok(result.map_or(Value::Null, Value::Boolean))
    }

    #[inline(never)]
    pub(super) fn in_tests(&mut self, value: &Node, tests: &[Test]) -> Outcome {
        let value = self.evaluate(value)?;
        self.unary_tests(tests, value)
    }

    /// Whether one of the tests holds for the value on top of the stack; `None` if that is unknown.
    fn any_test(&mut self, tests: &[Test]) -> Result<Option<bool>, Failure> {
        let mut unknown = false;
        for (position, test) in tests.iter().enumerate() {
            self.spend(usize::from(position > 0))?;
            match self.test(test)? {
                Some(true) => return Ok(Some(true)),
                Some(false) => {}
                None => unknown = true,
            }
        }
        Ok(if unknown { None } else { Some(false) })
    }

    fn input(&self) -> Value {
        self.stack.last().cloned().expect("a unary test has its input on the stack")
    }

    pub(super) fn test(&mut self, test: &Test) -> Result<Option<bool>, Failure> {
        match test {
            Test::Any => Ok(Some(true)),
            Test::Not(tests) => {
                // It takes as much of the stack as two levels.
                self.budget.enter(2)?;
                let holds = self.any_test(tests)?;
                self.budget.leave(2);
                Ok(holds.map(|holds| !holds))
            }
            Test::Compare(comparison, node) => {
                let right = self.evaluate(node)?;
                let input = self.input();
                Ok(self.compare(*comparison, &input, &right)?.as_bool())
            }
            Test::Value { node, boolean } => {
                let value = self.evaluate(node)?;
                if *boolean && !matches!(value, Value::Range(_)) {
                    return Ok(value.as_bool());
                }
                let input = self.input();
                // A condition without the input decides alone; a literal is compared.
                match value {
                    Value::Boolean(true) if !matches!(node, Node::Constant(_)) => return Ok(Some(true)),
                    Value::Boolean(false) if !matches!(node, Node::Constant(_)) => {
                        return Ok(Some(self.equal(&input, &value)? == Some(true)));
                    }
                    _ => {}
                }
                if let (Node::Range(_), Value::Range(range)) = (node, &value)
                    && (range.start.value.is_null() || range.end.value.is_null())
                {
                    self.warn(WarningKind::NotComparable, || format!("Can't compare '{input}' with '{value}'"));
                    return Ok(None);
                }
                self.matches(&input, &value)
            }
        }
    }

    fn spend_on_range(&mut self, range: &Range, value: &Value) -> Result<(), Failure> {
        self.spend_on_texts(value, &range.start.value)?;
        self.spend_on_texts(value, &range.end.value)
    }

    /// Equal to the value, or contained in it.
    fn matches(&mut self, input: &Value, value: &Value) -> Result<Option<bool>, Failure> {
        match value {
            Value::Range(range) => {
                self.spend_on_range(range, input)?;
                let result = range.contains(input);
                if result.is_none() {
                    self.warn(WarningKind::NotComparable, || {
                        format!("Can't compare '{input}' with '{}' and '{}'", range.start.value, range.end.value)
                    });
                }
                Ok(result)
            }
            Value::List(items) => {
                for item in items.iter() {
                    self.spend(1)?;
                    let holds = match item {
                        Value::Range(range) => {
                            self.spend_on_range(range, input)?;
                            range.contains(input) == Some(true)
                        }
                        item => self.equal(input, item)? == Some(true),
                    };
                    if holds {
                        return Ok(Some(true));
                    }
                }
                Ok(Some(self.equal(input, value)? == Some(true)))
            }
            other => Ok(self.compare(Comparison::Equal, input, other)?.as_bool()),
        }
    }
}
