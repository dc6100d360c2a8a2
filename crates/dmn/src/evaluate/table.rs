//! Decision tables: which rules match, and what they give together.

use std::cmp::Ordering;

use feel::{ConstantTest, Context, Number, Scope, Value};

use super::{Details, Evaluator, Failed, Failure, Outcome};
use crate::model::{Aggregation, DecisionTable, HitPolicy, InputTest, Rule, RuleResult, TableOutput};
use crate::result::{EvaluatedInput, EvaluatedOutput, MatchedRule};

/// About the memory of an input or output that is reported, besides its value.
const REPORTED_VALUE_BYTES: usize = 96;

/// How many rows a message quotes.
const SHOWN_ROWS: usize = 10;

/// The outputs of a rule that matched.
type Row = Vec<Value>;

impl Evaluator<'_> {
    #[inline(never)]
    pub(super) fn table(
        &mut self,
        table: &DecisionTable,
        scope: &dyn Scope,
        mut details: Option<&mut Details>,
    ) -> Outcome {
        self.budget.build(table.inputs.len().saturating_mul(REPORTED_VALUE_BYTES))?;
        let mut inputs = Vec::with_capacity(table.inputs.len());
        for input in &table.inputs {
            inputs.push(self.expression(&input.expression, scope)?);
        }
        if let Some(details) = &mut details {
            let reported = table.inputs.iter().zip(&inputs);
            details.inputs = reported
                .map(|(input, value)| EvaluatedInput {
                    id: input.id.clone(),
                    name: input.name.clone(),
                    value: value.clone(),
                })
                .collect();
        }
        let mut matched = self.matching(table, &inputs, scope)?;
        if matched.is_empty() {
            return self.defaults(&table.outputs, scope);
        }
        // As in the reference, a test that fails counts also behind the first rule that matches, an output does not.
        if table.hit_policy == HitPolicy::First {
            matched.truncate(1);
        }
        let mut rows: Vec<Row> = Vec::with_capacity(matched.len());
        for rule in &matched {
            rows.push(self.results(&table.rules[*rule], *rule, scope)?);
        }
        if let Some(details) = details {
            details.matched_rules =
                matched.iter().zip(&rows).map(|(rule, row)| matched_rule(table, *rule, row)).collect();
        }
        self.hit(table, rows)
    }

    /// The positions of the rules that match, in order.
    fn matching(&mut self, table: &DecisionTable, inputs: &[Value], scope: &dyn Scope) -> Result<Vec<usize>, Failure> {
        let mut matched = Vec::new();
        table.index.visit(table.rules.len(), inputs, |position| -> Result<(), Failure> {
            self.spend(1)?;
            let rule = &table.rules[position];
            for (test, input) in rule.tests.iter().zip(inputs) {
                let passes = match test {
                    InputTest::Any => true,
                    InputTest::Constants(tests) => tests.iter().any(|test| holds(test, input)),
                    InputTest::Tests(tests) => {
                        self.tests(tests, input, scope).map_err(|failure| at(failure, position))?
                    }
                };
                if !passes {
                    return Ok(());
                }
            }
            self.allocate(1 + table.outputs.len())?;
            self.budget.build(REPORTED_VALUE_BYTES + table.outputs.len().saturating_mul(REPORTED_VALUE_BYTES))?;
            matched.push(position);
            Ok(())
        })?;
        Ok(matched)
    }

    fn results(&mut self, rule: &Rule, position: usize, scope: &dyn Scope) -> Result<Row, Failure> {
        let mut row = Vec::with_capacity(rule.results.len());
        for result in &rule.results {
            row.push(match result {
                RuleResult::Constant(value) => value.clone(),
                RuleResult::Expression(expression) => {
                    self.expression(expression, scope).map_err(|failure| at(failure, position))?
                }
            });
        }
        Ok(row)
    }

    /// Without a matching rule, the default outputs, if any.
    fn defaults(&mut self, outputs: &[TableOutput], scope: &dyn Scope) -> Outcome {
        let mut context = Context::new();
        for output in outputs {
            if let Some(default) = &output.default {
                let value = self.expression(default, scope)?;
                context.put(output.name.clone(), value);
            }
        }
        Ok(match context.entries() {
            [] => Value::Null,
            [(_, value)] => value.clone(),
            _ => Value::context(context),
        })
    }

    /// The combined result of the matched rules, of which there is at least one.
    fn hit(&mut self, table: &DecisionTable, mut rows: Vec<Row>) -> Outcome {
        let outputs = &table.outputs;
        self.allocate(rows.len())?;
        if outputs.len() > 1 {
            self.allocate_entries(rows.len().saturating_mul(outputs.len() + 1))?;
        }
        match table.hit_policy {
            HitPolicy::Unique if rows.len() > 1 => Err(Failed::message(format!(
                "multiple values aren't allowed for UNIQUE hit policy. found: '{}'",
                shown(outputs, &rows)
            ))),
            HitPolicy::Any => {
                self.spend(rows.len())?;
                let mut distinct: Vec<Row> = Vec::new();
                for row in &rows {
                    // One more than are shown, to say that there are more.
                    if distinct.len() <= SHOWN_ROWS && !self.is_among(row, &distinct)? {
                        distinct.push(row.clone());
                    }
                }
                if distinct.len() > 1 {
                    return Err(Failed::message(format!(
                        "different values aren't allowed for ANY hit policy. found: '{}'",
                        shown(outputs, &distinct)
                    )));
                }
                Ok(single(outputs, rows))
            }
            HitPolicy::Unique | HitPolicy::First => Ok(single(outputs, rows)),
            HitPolicy::Priority => {
                self.sort(outputs, &mut rows)?;
                Ok(single(outputs, rows))
            }
            HitPolicy::OutputOrder => {
                self.sort(outputs, &mut rows)?;
                Ok(several(outputs, rows))
            }
            HitPolicy::RuleOrder | HitPolicy::Collect(None) => Ok(several(outputs, rows)),
            HitPolicy::Collect(Some(aggregation)) => self.aggregate(aggregation, rows),
        }
    }

    /// Whether a row has the values of one of the others.
    fn is_among(&mut self, row: &Row, others: &[Row]) -> Result<bool, Failure> {
        let equal = |other: &Row, steps: &mut usize| {
            row.iter().zip(other).all(|(left, right)| left.equals(right, steps) == Some(true))
        };
        Ok(self.budget.counted(|steps| others.iter().any(|other| equal(other, steps)))?)
    }

    /// Sorts by the places of the outputs among the output values; what is not among them comes last.
    fn sort(&mut self, outputs: &[TableOutput], rows: &mut Vec<Row>) -> Result<(), Failure> {
        let mut keyed: Vec<(Vec<usize>, Row)> = Vec::with_capacity(rows.len());
        for row in rows.drain(..) {
            let mut key = Vec::with_capacity(outputs.len());
            for (output, value) in outputs.iter().zip(&row) {
                self.spend(output.priorities.len())?;
                key.push(output.priorities.iter().position(|known| known == value).unwrap_or(usize::MAX));
            }
            keyed.push((key, row));
        }
        keyed.sort_by(|left, right| left.0.cmp(&right.0));
        rows.extend(keyed.into_iter().map(|(_, row)| row));
        Ok(())
    }

    fn aggregate(&mut self, aggregation: Aggregation, rows: Vec<Row>) -> Outcome {
        self.spend(rows.len())?;
        if aggregation == Aggregation::Count {
            return Ok(Value::integer(i64::try_from(rows.len()).unwrap_or(i64::MAX)));
        }
        let mut result: Option<Number> = None;
        for value in rows.into_iter().flatten() {
            let Some(number) = value.as_number() else {
                return Err(Failed::message(format!("expected number but found '{value}'")));
            };
            result = Some(match result {
                None => number,
                Some(result) => match aggregation {
                    Aggregation::Minimum => {
                        if number.cmp(&result) == Ordering::Less {
                            number
                        } else {
                            result
                        }
                    }
                    Aggregation::Maximum => {
                        if number.cmp(&result) == Ordering::Greater {
                            number
                        } else {
                            result
                        }
                    }
                    Aggregation::Sum | Aggregation::Count => result.plus(number).ok_or_else(|| {
                        Failed::message(format!("the sum of '{result}' and '{number}' is beyond the range of numbers"))
                    })?,
                },
            });
        }
        Ok(result.map_or(Value::Null, Value::Number))
    }
}

fn holds(test: &ConstantTest, input: &Value) -> bool {
    match test {
        ConstantTest::Any => true,
        ConstantTest::Equal(value) => value == input,
        ConstantTest::Within(range) => range.contains(input) == Some(true),
    }
}

/// Adds in which rule, counted from 1, something failed.
fn at(mut failure: Failure, position: usize) -> Failure {
    if let Failed::Message(_, rule @ None) = &mut *failure {
        *rule = u32::try_from(position).ok().and_then(|position| position.checked_add(1));
    }
    failure
}

fn matched_rule(table: &DecisionTable, position: usize, row: &Row) -> MatchedRule {
    let outputs = table.outputs.iter().zip(row);
    MatchedRule {
        id: table.rules[position].id.clone(),
        index: u32::try_from(position).unwrap_or(u32::MAX).saturating_add(1),
        outputs: outputs
            .map(|(output, value)| EvaluatedOutput {
                id: output.id.clone(),
                name: output.shown_name.clone(),
                value: value.clone(),
            })
            .collect(),
    }
}

/// The value of a single output, or a context of several.
fn value(outputs: &[TableOutput], row: Row) -> Value {
    let mut values = row.into_iter();
    if outputs.len() == 1 {
        return values.next().unwrap_or_default();
    }
    let mut context = Context::new();
    for (output, value) in outputs.iter().zip(values) {
        context.put(output.name.clone(), value);
    }
    Value::context(context)
}

fn single(outputs: &[TableOutput], rows: Vec<Row>) -> Value {
    rows.into_iter().next().map(|row| value(outputs, row)).unwrap_or_default()
}

fn several(outputs: &[TableOutput], rows: Vec<Row>) -> Value {
    rows.into_iter().map(|row| value(outputs, row)).collect()
}

/// The rows as messages quote them, the first ones of many.
fn shown(outputs: &[TableOutput], rows: &[Row]) -> String {
    // The only output may have no name.
    let name = |output: &TableOutput| if output.name.is_empty() { "null".to_owned() } else { output.name.to_string() };
    let row = |row: &Row| {
        let entries: Vec<String> =
            outputs.iter().zip(row).map(|(output, value)| format!("{} -> {value}", name(output))).collect();
        format!("Map({})", entries.join(", "))
    };
    let mut texts: Vec<String> = rows.iter().take(SHOWN_ROWS).map(row).collect();
    if rows.len() > SHOWN_ROWS {
        texts.push("…".to_owned());
    }
    format!("List({})", texts.join(", "))
}
