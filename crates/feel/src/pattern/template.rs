//! What matches are replaced with.

/// A replacement with references to groups: `$1`, `${name}`; `\$` for a dollar sign.
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

enum Piece {
    Text(String),
    Group(usize),
}

impl Template {
    /// Of `$12`, as many digits count as name a group that exists. `None` if a reference names no group.
    pub(super) fn parse(text: &str, groups: u32, names: &[(Box<str>, u32)]) -> Option<Template> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            rest = &rest[character.len_utf8()..];
            match character {
                '\\' => {
                    let escaped = rest.chars().next()?;
                    rest = &rest[escaped.len_utf8()..];
                    literal.push(escaped);
                }
                '$' => {
                    let (group, after) = reference(rest, groups, names)?;
                    rest = after;
                    if !literal.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Group(group as usize));
                }
                other => literal.push(other),
            }
        }
        pieces.push(Piece::Text(literal));
        Some(Template { pieces })
    }

    /// The texts of a match, in order. Groups that did not take part in it are empty.
    pub(crate) fn expand<'a>(&'a self, text: &'a str, found: &'a [u32]) -> impl Iterator<Item = &'a str> {
        self.pieces.iter().map(move |piece| match piece {
            Piece::Text(piece) => piece,
            Piece::Group(group) => {
                let (start, end) = (found[group * 2] as usize, found[group * 2 + 1] as usize);
                text.get(start..end).unwrap_or("")
            }
        })
    }
}

/// The group after a dollar sign, and what follows.
fn reference<'a>(rest: &'a str, groups: u32, names: &[(Box<str>, u32)]) -> Option<(u32, &'a str)> {
    if let Some(named) = rest.strip_prefix('{') {
        let (name, after) = named.split_once('}')?;
        let (_, group) = names.iter().find(|(known, _)| **known == *name)?;
        return Some((*group, after));
    }
    let mut group = rest.chars().next()?.to_digit(10).filter(|group| *group < groups)?;
    let mut after = &rest[1..];
    while let Some(digit) = after.chars().next().and_then(|next| next.to_digit(10)) {
        let next = group.saturating_mul(10).saturating_add(digit);
        if next >= groups {
            break;
        }
        (group, after) = (next, &after[1..]);
    }
    Some((group, after))
}
