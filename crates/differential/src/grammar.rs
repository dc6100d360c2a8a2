//! Texts from a grammar of operands and templates, by chance and from a seed.

use std::collections::BTreeMap;

use chance::Chance;

/// What makes a value of a type.
#[derive(Default)]
struct Makers {
    operands: Vec<&'static str>,
    templates: Vec<&'static str>,
}

/// The operands and templates of each type. A type is a letter.
pub struct Grammar {
    random: Chance,
    types: BTreeMap<char, Makers>,
    /// The types that occasionally replace another one.
    exchanged: &'static [char],
    /// The types whose place is never taken.
    exact: &'static [char],
    /// More operands with their types.
    further: Vec<(char, String)>,
}

impl Grammar {
    /// Reads lines: `x = text` is an operand of the type `x`, `x < text` a template with operands in it: `{y}` means any of
    /// the type `y`, doubled braces mean braces. Lines that begin with `#` are comments.
    ///
    /// # Panics
    /// When a line is none of these.
    pub fn new(lines: &'static str, exchanged: &'static [char], exact: &'static [char], seed: u64) -> Grammar {
        let mut types: BTreeMap<char, Makers> = BTreeMap::new();
        for line in lines.lines().filter(|line| !line.starts_with('#')) {
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
        Grammar { random: Chance::new(seed), types, exchanged, exact, further: Vec::new() }
    }

    /// The chance that everything follows from.
    pub fn random(&mut self) -> &mut Chance {
        &mut self.random
    }

    /// Sets more operands, in place of those that were set before.
    pub fn set_further(&mut self, operands: Vec<(char, String)>) {
        self.further = operands;
    }

    /// One of the operands or templates of a type; `None` if it has none.
    fn made(&mut self, wanted: char, of: fn(&Makers) -> &Vec<&'static str>) -> Option<&'static str> {
        let makers = of(self.types.get(&wanted)?);
        if makers.is_empty() {
            return None;
        }
        Some(makers[self.random.index(makers.len())])
    }

    /// An operand of a type; `null` if it has none.
    pub fn operand(&mut self, wanted: char) -> String {
        let further: Vec<&String> =
            self.further.iter().filter(|(letter, _)| *letter == wanted).map(|(_, text)| text).collect();
        if !further.is_empty() && self.random.index(3) == 0 {
            return further[self.random.index(further.len())].clone();
        }
        self.made(wanted, |makers| &makers.operands).unwrap_or("null").to_owned()
    }

    /// One of the templates of a type with its operands, which are nested at most so deeply.
    pub fn composed(&mut self, wanted: char, depth: usize) -> Option<String> {
        let template = self.made(wanted, |makers| &makers.templates)?;
        Some(self.fill(template, depth))
    }

    /// An expression of a type, occasionally of another one.
    pub fn expression(&mut self, wanted: char, depth: usize) -> String {
        let is_exchanged = !self.exact.contains(&wanted) && self.random.index(25) == 0;
        let wanted = if is_exchanged { *self.random.choose(self.exchanged) } else { wanted };
        let is_composed = depth > 0 && self.random.index(6) > 0;
        let composed = if is_composed { self.composed(wanted, depth - 1) } else { None };
        composed.unwrap_or_else(|| self.operand(wanted))
    }

    /// The template with an operand in place of each `{x}`.
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
