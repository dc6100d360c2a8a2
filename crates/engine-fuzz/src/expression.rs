//! Random expressions with hostile functions, patterns and sizes.

use std::sync::OnceLock;

use crate::choices::Choices;

/// What expressions are made of: `n = text` is an operand of a kind, `n < text` one with operands in it, where `{s}` stands
/// for any of the kind `s`.
const GRAMMAR: &str = include_str!("expression/grammar.txt");
const DEPTH_MAX: usize = 5;
const LENGTH_MAX: usize = 4_000;

/// The operands and the operators of one kind.
#[derive(Default)]
struct Kind {
    operands: Vec<&'static str>,
    operators: Vec<&'static str>,
}

fn kinds() -> &'static [(char, Kind)] {
    static KINDS: OnceLock<Vec<(char, Kind)>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let mut kinds: Vec<(char, Kind)> = Vec::new();
        for line in GRAMMAR.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, rest) = line.split_at(1);
            let name = name.chars().next().unwrap_or(' ');
            let index = kinds.iter().position(|(kind, _)| *kind == name).unwrap_or_else(|| {
                kinds.push((name, Kind::default()));
                kinds.len() - 1
            });
            match rest.split_at(3) {
                (" = ", operand) => kinds[index].1.operands.push(operand),
                (" < ", operator) => kinds[index].1.operators.push(operator),
                _ => panic!("the grammar has a line that is neither an operand nor an operator: {line}"),
            }
        }
        kinds
    })
}

/// An expression of a kind of the grammar, without `=`.
pub fn expression(choices: &mut Choices<'_>, kind: char) -> String {
    let mut out = String::new();
    write(choices, kind, 0, &mut out);
    out
}

fn write(choices: &mut Choices<'_>, kind: char, depth: usize, out: &mut String) {
    let (_, kind) =
        kinds().iter().find(|(name, _)| *name == kind).expect("the grammar has every kind that it mentions");
    let is_operand = depth >= DEPTH_MAX || out.len() > LENGTH_MAX || !choices.percent(55);
    if is_operand || kind.operators.is_empty() {
        out.push_str(choices.pick(&kind.operands));
        return;
    }
    let mut rest: &str = choices.pick(&kind.operators);
    while let Some(place) = rest.find('{') {
        out.push_str(&rest[..place]);
        let inside = &rest[place + 1..];
        if let Some(after) = inside.strip_prefix('{') {
            out.push('{');
            rest = after;
            continue;
        }
        let name = inside.chars().next().expect("the grammar closes every bracket");
        write(choices, name, depth + 1, out);
        rest = &inside[2..];
    }
    out.push_str(rest);
}
