//! Random expressions and unary tests, mostly of the right types, from a seed.

use std::collections::BTreeMap;

/// The variables that the expressions mention, as a JSON object. `missing` is none of them.
pub const VARIABLES: &str = include_str!("variables.json").trim_ascii_end();

/// The operands and templates of each type; a type is a letter.
const GRAMMAR: &str = include_str!("grammar.txt");
/// The types that expressions and ill-typed operands have.
const TYPES: [char; 14] = ['n', 'i', 's', 'b', 'd', 'T', 'D', 'y', 'u', 'N', 'S', 'l', 'c', 'a'];
/// Whole numbers, comparisons, patterns, ranges and names of entries: never of another type.
const EXACT: [char; 5] = ['w', 'o', 'p', 'r', 'k'];
/// The type of unary tests.
const TESTS: char = '?';
const INPUTS: [&str; 11] =
    ["1", "2.5", "-3", "7", "\"a\"", "\"Hello\"", "null", "true", "false", "[1, 2]", "{\"a\": 1}"];

/// What makes a value of a type.
#[derive(Default)]
struct Makers {
    operands: Vec<&'static str>,
    templates: Vec<&'static str>,
}

/// A generator of random expressions (SplitMix64).
pub struct Generator {
    state: u64,
    types: BTreeMap<char, Makers>,
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
        let mut types: BTreeMap<char, Makers> = BTreeMap::new();
        for line in GRAMMAR.lines().filter(|line| !line.starts_with('#')) {
            let Some(letter) = line.chars().next() else {
                continue;
            };
            let makers = types.entry(letter).or_default();
            match (line.get(1..4), line.get(4..)) {
                (Some(" = "), Some(text)) => makers.operands.push(text),
                (Some(" < "), Some(text)) => makers.templates.push(text),
                _ => panic!("the line '{line}' of the grammar is neither an operand nor a template"),
            }
        }
        Generator { state: seed, types }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ value >> 31) % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// One of the operands or templates of a type; `None` if it has none.
    fn made(&mut self, wanted: char, of: fn(&Makers) -> &Vec<&'static str>) -> Option<&'static str> {
        let count = self.types.get(&wanted).map_or(0, |makers| of(makers).len());
        if count == 0 {
            return None;
        }
        let position = self.below(count);
        self.types.get(&wanted).map(|makers| of(makers)[position])
    }

    /// The next case: one of eight is a unary test.
    pub fn case(&mut self) -> Case {
        let depth = self.pick(&[1, 1, 1, 2, 2, 3]);
        if self.below(8) > 0 {
            let wanted = self.pick(&TYPES);
            return Case { text: self.expression(wanted, depth), input: None };
        }
        let template = self.made(TESTS, |makers| &makers.templates).unwrap_or("-");
        let text = self.fill(template, depth - 1);
        Case { text, input: Some(self.pick(&INPUTS)) }
    }

    fn expression(&mut self, wanted: char, depth: usize) -> String {
        // Now and then something of another type.
        let wanted = if !EXACT.contains(&wanted) && self.below(25) == 0 { self.pick(&TYPES) } else { wanted };
        let composed = depth > 0 && self.below(6) > 0;
        match if composed { self.made(wanted, |makers| &makers.templates) } else { None } {
            Some(template) => self.fill(template, depth - 1),
            None => self.made(wanted, |makers| &makers.operands).unwrap_or("null").to_owned(),
        }
    }

    /// The template with an operand in place of each `{x}`; doubled braces stand for braces.
    fn fill(&mut self, template: &str, depth: usize) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let inside = rest[at..].strip_prefix('{').and_then(|inside| inside.chars().next());
            let wanted = inside.filter(|letter| letter.is_ascii_alphabetic() && rest[at + 2..].starts_with('}'));
            if let Some(wanted) = wanted {
                let operand = self.expression(wanted, depth);
                // What is no single operand is put in parentheses.
                let single = matches!(wanted, 'o' | 'r') || !operand.contains(' ') || is_closed(&operand);
                text.push_str(&if single { operand } else { format!("({operand})") });
                rest = &rest[at + 3..];
            } else {
                text.push_str(&rest[at..=at]);
                rest = rest[at + 1..].strip_prefix(&rest[at..=at]).unwrap_or(&rest[at + 1..]);
            }
        }
        text.push_str(rest);
        text
    }
}

/// Whether the text is one list, context, string or parenthesised expression.
fn is_closed(text: &str) -> bool {
    if text.starts_with('"') || text.starts_with("@\"") {
        return text.ends_with('"') && text.matches('"').count() == 2;
    }
    [('[', ']'), ('{', '}'), ('(', ')')].iter().any(|(open, close)| {
        let once = text.matches(*open).count() == 1 && text.matches(*close).count() == 1;
        text.starts_with(*open) && text.ends_with(*close) && once
    })
}
