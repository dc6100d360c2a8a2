//! Whether the steps and bytes of expressions cost what they should: a command that has spent all of its budget must not have
//! taken longer than a command may.

use feel::{Environment, Expression, Scope, VariableText};

use crate::choices::Choices;
use crate::expression::expression;
use crate::measure::processor_nanoseconds;
use crate::memory::{Memory, measure};

/// What an expression took.
#[derive(Clone, Debug)]
pub struct Price {
    /// The expression.
    pub text: String,
    /// Processor time of the thread, the least of several evaluations of what took long.
    pub nanoseconds: u64,
    /// Steps of the budget.
    pub steps: u64,
    /// Bytes built.
    pub built: u64,
    /// Memory.
    pub memory: Memory,
}

/// What took longer is measured again, because other work on the machine makes it longer.
const LONG_NANOSECONDS: u64 = 30_000_000;
const REPETITIONS: usize = 4;

struct Variables(Vec<(&'static str, String)>);

impl Scope for Variables {
    fn variable(&self, name: &str) -> Option<VariableText<'_>> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| VariableText::from(text))
    }
}

fn variables(choices: &mut Choices<'_>) -> Variables {
    let letters = choices.pick(&[3, 100, 10_000, 1_000_000]);
    let items = choices.pick(&[3, 100, 10_000]);
    let numbers: Vec<String> = (0..items).map(|number| number.to_string()).collect();
    let rows: Vec<String> = (0..items / 10).map(|number| format!("{{\"a\":{{\"b\":{number}}},\"c\":\"x\"}}")).collect();
    Variables(vec![
        ("text", format!("\"{}\"", choices.pick(&["a", "xy", "é"]).repeat(letters))),
        ("items", format!("[{}]", numbers.join(","))),
        ("table", format!("[{}]", rows.join(","))),
        ("results", "[[1,2],[3,4],null]".to_owned()),
        ("document", "{\"a\":{\"b\":{\"c\":[1,2,3]}}}".to_owned()),
        ("n", choices.pick(&["3", "100", "1000000", "0.5"]).to_owned()),
        ("choice", "1".to_owned()),
        ("item", "7".to_owned()),
        ("s", "\"abc\"".to_owned()),
        ("key", "\"k0\"".to_owned()),
        ("i", "1".to_owned()),
    ])
}

/// Evaluates the expression of these bytes, or this one, with all that a command may spend.
pub fn price(bytes: &[u8], text: Option<&str>) -> Option<Price> {
    let mut choices = Choices::new(bytes);
    let variables = variables(&mut choices);
    let text = text.map_or_else(|| expression(&mut choices, 'a'), str::to_owned);
    let parsed = Expression::parse(&text).ok()?;
    let environment = Environment::at(1_600_000_000_000);
    let mut least: Option<Price> = None;
    for _ in 0..REPETITIONS {
        let budget = feel::Budget::of(&environment);
        let before = processor_nanoseconds();
        // What it built is given back in time, too.
        let (_, memory) = measure(|| parsed.evaluate_within(&variables, &environment, &budget).is_ok());
        let nanoseconds = processor_nanoseconds() - before;
        if least.as_ref().is_none_or(|least| nanoseconds < least.nanoseconds) {
            let (steps, built) = (u64::from(budget.steps_used()), budget.bytes_built() as u64);
            least = Some(Price { text: text.clone(), nanoseconds, steps, built, memory });
        }
        if nanoseconds < LONG_NANOSECONDS {
            break;
        }
    }
    least
}
