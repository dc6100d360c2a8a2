//! The names in `\p{…}`.

use regex_syntax::hir::{Class, ClassUnicode, HirKind};

use super::escape::class_of;
use crate::pattern::blocks;

/// What a name stands for.
pub(super) enum Found {
    /// A range of code points.
    Block(ClassUnicode),
    /// Characters that have something in common.
    Property(ClassUnicode),
}

/// No name is longer.
const LONGEST_NAME_BYTES: usize = 100;

/// A name of `java.util.regex` or of the standard: `L`, `Alpha`, `javaLetter`, `IsLatin`, `InBasicLatin`, `script=Greek`.
pub(super) fn find(name: &str) -> Option<Found> {
    if name.len() > LONGEST_NAME_BYTES {
        return None;
    }
    let block = |block: &blocks::Block| {
        Some(Found::Block(class_of(&[(char::from_u32(block.first)?, char::from_u32(block.last)?)])))
    };
    if let Some(named) = ["In", "block=", "blk="].iter().find_map(|prefix| name.strip_prefix(prefix)) {
        return block(blocks::find(named)?);
    }
    if let Some(named) = name.strip_prefix("Is") {
        // It is a script if there is one of this name.
        return match blocks::find(named).filter(|found| !found.is_script_too) {
            Some(found) => block(found),
            None => unicode(named).map(Found::Property),
        };
    }
    if let Some(ranges) = ascii(name) {
        return Some(Found::Property(class_of(ranges)));
    }
    let class = match name.strip_prefix("java") {
        Some(named) => of_java(named)?,
        None => unicode(name)?,
    };
    Some(Found::Property(class))
}

/// The classes of POSIX, which are those of ASCII.
fn ascii(name: &str) -> Option<&'static [(char, char)]> {
    Some(match name {
        "Lower" => &[('a', 'z')],
        "Upper" => &[('A', 'Z')],
        "ASCII" => &[('\0', '\u{7f}')],
        "Alpha" => &[('a', 'z'), ('A', 'Z')],
        "Digit" => &[('0', '9')],
        "Alnum" => &[('0', '9'), ('a', 'z'), ('A', 'Z')],
        "Punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "Graph" => &[('!', '~')],
        "Print" => &[(' ', '~')],
        "Blank" => &[(' ', ' '), ('\t', '\t')],
        "Cntrl" => &[('\0', '\u{1f}'), ('\u{7f}', '\u{7f}')],
        "XDigit" => &[('0', '9'), ('a', 'f'), ('A', 'F')],
        "Space" => &[('\t', '\r'), (' ', ' ')],
        "L1" => &[('\0', '\u{ff}')],
        "all" | "All" => &[('\0', char::MAX)],
        _ => return None,
    })
}

/// The questions that a Java character answers, without `java` before their names.
fn of_java(name: &str) -> Option<ClassUnicode> {
    Some(match name {
        "LowerCase" => unicode("Lowercase")?,
        "UpperCase" => unicode("Uppercase")?,
        "Alphabetic" => unicode("Alphabetic")?,
        "Ideographic" => unicode("Ideographic")?,
        "TitleCase" => unicode("Lt")?,
        "Digit" => unicode("Nd")?,
        "Letter" => unicode("L")?,
        "LetterOrDigit" => union(&["L", "Nd"])?,
        "SpaceChar" => unicode("Z")?,
        "ISOControl" => class_of(&[('\0', '\u{1f}'), ('\u{7f}', '\u{9f}')]),
        "Whitespace" => {
            let mut blanks = unicode("Z")?;
            blanks.difference(&class_of(&[('\u{a0}', '\u{a0}'), ('\u{2007}', '\u{2007}'), ('\u{202f}', '\u{202f}')]));
            blanks.union(&class_of(&[('\t', '\r'), ('\u{1c}', '\u{1f}')]));
            blanks
        }
        "Defined" => {
            let mut defined = unicode("Cn")?;
            defined.negate();
            defined
        }
        "JavaIdentifierStart" => union(&["L", "Nl", "Sc", "Pc"])?,
        "UnicodeIdentifierStart" => union(&["L", "Nl"])?,
        "JavaIdentifierPart" => union(&["L", "Nl", "Sc", "Pc", "Nd", "Mn", "Mc"])?,
        "UnicodeIdentifierPart" => union(&["L", "Nl", "Pc", "Nd", "Mn", "Mc"])?,
        _ => return None,
    })
}

fn union(names: &[&str]) -> Option<ClassUnicode> {
    let mut class = ClassUnicode::empty();
    for name in names {
        class.union(&unicode(name)?);
    }
    Some(class)
}

/// A category, script or property of Unicode.
fn unicode(name: &str) -> Option<ClassUnicode> {
    match name {
        "LC" => return union(&["Lu", "Ll", "Lt"]),
        "LD" => return union(&["L", "Nd"]),
        _ => {}
    }
    let is_name = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '=');
    if name.is_empty() || !name.chars().all(is_name) { None } else { parsed(&format!("\\p{{{name}}}")) }
}

/// `\d`, `\s` or `\w` of all scripts.
pub(super) fn perl(class: &str) -> ClassUnicode {
    parsed(class).expect("the library knows these classes")
}

fn parsed(class: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(class).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        // A class of one character is a literal.
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            let mut characters = text.chars();
            let (one, None) = (characters.next()?, characters.next()) else { return None };
            Some(class_of(&[(one, one)]))
        }
        _ => None,
    }
}
