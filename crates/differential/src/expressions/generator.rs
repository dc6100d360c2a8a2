//! Random expressions and unary tests, mostly of the right types, from a seed.

use crate::grammar::Grammar;

/// The variables that the expressions mention, as a JSON object. `missing` is none of them.
pub const VARIABLES: &str = include_str!("variables.json").trim_ascii_end();

/// The operands and templates of each type.
const GRAMMAR: &str = include_str!("grammar.txt");
/// The types that expressions and ill-typed operands have.
const TYPES: [char; 14] = ['n', 'i', 's', 'b', 'd', 'T', 'D', 'y', 'u', 'N', 'S', 'l', 'c', 'a'];
/// Whole numbers, comparisons, patterns, ranges and names of entries: never of another type.
const EXACT: [char; 5] = ['w', 'o', 'p', 'r', 'k'];
/// The type of unary tests.
const TESTS: char = '?';
const INPUTS: [&str; 11] =
    ["1", "2.5", "-3", "7", "\"a\"", "\"Hello\"", "null", "true", "false", "[1, 2]", "{\"a\": 1}"];

/// A generator of random expressions.
pub struct Generator {
    grammar: Grammar,
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The text of an expression or of unary tests.
    pub text: String,
    /// The input value of unary tests, as JSON.
    pub input: Option<&'static str>,
}

impl Generator {
    /// A generator with a seed.
    pub fn new(seed: u64) -> Generator {
        Generator { grammar: Grammar::new(GRAMMAR, &TYPES, &EXACT, seed) }
    }

    /// The next case: one of eight is a unary test.
    pub fn case(&mut self) -> Case {
        let depth = *self.grammar.random().choose(&[1, 1, 1, 2, 2, 3]);
        if self.grammar.random().index(8) > 0 {
            let wanted = *self.grammar.random().choose(&TYPES);
            return Case { text: self.grammar.expression(wanted, depth), input: None };
        }
        let text = self.grammar.composed(TESTS, depth - 1).unwrap_or_else(|| "-".to_owned());
        Case { text, input: Some(self.grammar.random().copy_of(&INPUTS)) }
    }
}
