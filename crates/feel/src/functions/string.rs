//! Functions on strings. Positions count characters (Unicode code points) from 1, or from -1 at the end.

use crate::evaluate::{Evaluator, Failure, Outcome};
use crate::functions::builtin::{Builtin, excerpt, failed, illegal};
use crate::pattern::{Pattern, Stop};
use crate::value::Value;

const STRING: &[&[&str]] = &[&["string"]];
const MATCH: &[&[&str]] = &[&["string", "match"]];

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("substring", &[&["string", "start position"], &["string", "start position", "length"]], substring),
    Builtin::new("string length", STRING, |evaluator, arguments| {
        one(evaluator, "string length", arguments, |text| Value::integer(text.chars().count() as i64))
    }),
    Builtin::new("upper case", STRING, |evaluator, arguments| {
        one(evaluator, "upper case", arguments, |text| Value::string(text.to_uppercase()))
    }),
    Builtin::new("lower case", STRING, |evaluator, arguments| {
        one(evaluator, "lower case", arguments, |text| Value::string(text.to_lowercase()))
    }),
    Builtin::new("trim", STRING, |evaluator, arguments| {
        one(evaluator, "trim", arguments, |text| Value::string(text.trim_matches(|character| character <= ' ')))
    }),
    Builtin::new("is blank", STRING, |evaluator, arguments| {
        one(evaluator, "is blank", arguments, |text| Value::Boolean(text.chars().all(is_blank)))
    }),
    Builtin::new("to base64", &[&["value"]], |evaluator, arguments| {
        one(evaluator, "to base64", arguments, |text| Value::string(base64(text.as_bytes())))
    }),
    Builtin::new("from base64", &[&["value"]], from_base64),
    Builtin::new("substring before", MATCH, |evaluator, arguments| {
        two(evaluator, "substring before", arguments, |text, part| {
            Value::string(text.split_once(part).map_or("", |(before, _)| before))
        })
    }),
    Builtin::new("substring after", MATCH, |evaluator, arguments| {
        two(evaluator, "substring after", arguments, |text, part| {
            Value::string(text.split_once(part).map_or("", |(_, after)| after))
        })
    }),
    Builtin::new("contains", MATCH, |evaluator, arguments| {
        two(evaluator, "contains", arguments, |text, part| Value::Boolean(text.contains(part)))
    }),
    Builtin::new("starts with", MATCH, |evaluator, arguments| {
        two(evaluator, "starts with", arguments, |text, part| Value::Boolean(text.starts_with(part)))
    }),
    Builtin::new("ends with", MATCH, |evaluator, arguments| {
        two(evaluator, "ends with", arguments, |text, part| Value::Boolean(text.ends_with(part)))
    }),
    Builtin::new("matches", &[&["input", "pattern"], &["input", "pattern", "flags"]], matches),
    Builtin::new(
        "replace",
        &[&["input", "pattern", "replacement"], &["input", "pattern", "replacement", "flags"]],
        replace,
    ),
    Builtin::new("split", &[&["string", "delimiter"]], split),
    Builtin::new("extract", &[&["input", "pattern"], &["string", "pattern"]], extract),
    Builtin::new(
        "string join",
        &[&["list"], &["list", "delimiter"], &["list", "delimiter", "prefix", "suffix"]],
        string_join,
    ),
];

/// What separates words, as the platform of the reference has it: no space that forbids to break a line.
fn is_blank(character: char) -> bool {
    match character {
        '\u{1c}'..='\u{1f}' => true,
        '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}' => false,
        other => other.is_whitespace(),
    }
}

/// The results are at most three times as long as the argument (case mapping of some letters).
fn one(evaluator: &mut Evaluator<'_>, name: &str, arguments: &[Value], compute: fn(&str) -> Value) -> Outcome {
    let Some(text) = arguments[0].as_str() else {
        return illegal(evaluator, name, arguments);
    };
    evaluator.scan(text.len())?;
    evaluator.allocate_string(text.len())?;
    evaluator.allocate(text.len().saturating_mul(2))?;
    Ok(compute(text))
}

fn two(evaluator: &mut Evaluator<'_>, name: &str, arguments: &[Value], compute: fn(&str, &str) -> Value) -> Outcome {
    let (Some(text), Some(part)) = (arguments[0].as_str(), arguments[1].as_str()) else {
        return illegal(evaluator, name, arguments);
    };
    evaluator.scan(text.len().saturating_add(part.len()))?;
    evaluator.allocate_string(text.len())?;
    Ok(compute(text, part))
}

fn substring(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Some(text), Some(start)) = (arguments[0].as_str(), arguments[1].as_whole()) else {
        return illegal(evaluator, "substring", arguments);
    };
    let length = match arguments.get(2) {
        None => usize::MAX,
        Some(length) => match length.as_whole() {
            Some(length) => usize::try_from(length).unwrap_or(0),
            None => return illegal(evaluator, "substring", arguments),
        },
    };
    evaluator.allocate_string(text.len())?;
    let magnitude = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
    let skipped = match start {
        1.. => Some(magnitude - 1),
        0 => None,
        _ => text.chars().count().checked_sub(magnitude),
    };
    let Some(skipped) = skipped else {
        return Ok(Value::string(""));
    };
    let Some((from, _)) = text.char_indices().nth(skipped) else {
        return Ok(Value::string(""));
    };
    let rest = &text[from..];
    let until = rest.char_indices().nth(length).map_or(rest.len(), |(at, _)| at);
    Ok(Value::string(&rest[..until]))
}

fn matches(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Some(text), Some(pattern)) = (arguments[0].as_str(), arguments[1].as_str()) else {
        return illegal(evaluator, "matches", arguments);
    };
    with_pattern(evaluator, "matches", pattern, arguments.get(2), |evaluator, pattern| {
        Ok(Value::Boolean(pattern.search(text, evaluator.budget, false).has_match()?))
    })
}

fn replace(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Some(text), Some(pattern), Some(replacement)) =
        (arguments[0].as_str(), arguments[1].as_str(), arguments[2].as_str())
    else {
        return illegal(evaluator, "replace", arguments);
    };
    with_pattern(evaluator, "replace", pattern, arguments.get(3), |evaluator, pattern| {
        evaluator.spend(replacement.len() / 4)?;
        evaluator.allocate(replacement.len().saturating_mul(32))?;
        let Some(template) = pattern.template(replacement) else {
            return Ok(failed(evaluator, "replace", || {
                format!(
                    "The replacement '{}' refers to a group that the pattern does not have; write '\\$' for a dollar sign",
                    excerpt(replacement)
                )
            })?);
        };
        let mut out = String::new();
        let mut copied = 0;
        let mut search = pattern.search(text, evaluator.budget, true);
        while let Some(found) = search.next()? {
            append(evaluator, &mut out, &text[copied..found.start])?;
            for piece in template.expand(text, found.groups) {
                append(evaluator, &mut out, piece)?;
            }
            copied = found.end;
        }
        append(evaluator, &mut out, &text[copied..])?;
        Ok(Value::string(out))
    })
}

/// Adds to a text that is being built; its length is checked before it grows.
fn append(evaluator: &mut Evaluator<'_>, out: &mut String, piece: &str) -> Result<(), Failure> {
    evaluator.lengthen_string(out.len(), piece.len())?;
    out.push_str(piece);
    Ok(())
}

fn split(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Some(text), Some(pattern)) = (arguments[0].as_str(), arguments[1].as_str()) else {
        return illegal(evaluator, "split", arguments);
    };
    with_pattern(evaluator, "split", pattern, None, |evaluator, pattern| {
        let mut parts = Vec::new();
        let mut start = 0;
        let mut search = pattern.search(text, evaluator.budget, false);
        while let Some(found) = search.next()? {
            // An empty match at the start separates nothing.
            if found.end > 0 {
                push(evaluator, &mut parts, &text[start..found.start])?;
            }
            start = found.end;
        }
        push(evaluator, &mut parts, &text[start..])?;
        Ok(Value::list(parts))
    })
}

fn extract(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Some(text), Some(pattern)) = (arguments[0].as_str(), arguments[1].as_str()) else {
        return illegal(evaluator, "extract", arguments);
    };
    with_pattern(evaluator, "extract", pattern, None, |evaluator, pattern| {
        let mut parts = Vec::new();
        let mut search = pattern.search(text, evaluator.budget, false);
        while let Some(found) = search.next()? {
            push(evaluator, &mut parts, &text[found.start..found.end])?;
        }
        Ok(Value::list(parts))
    })
}

/// Adds a part of a text to a list that is being built.
fn push(evaluator: &mut Evaluator<'_>, parts: &mut Vec<Value>, part: &str) -> Result<(), Failure> {
    evaluator.lengthen_list(parts.len())?;
    evaluator.allocate_string(part.len())?;
    parts.push(Value::string(part));
    Ok(())
}

/// Why work with a pattern has no result.
enum Interrupted {
    /// The evaluation ends.
    Failure(Failure),
    /// The pattern tries too many ways: the function gives null.
    TooManyWays,
}

impl From<Failure> for Interrupted {
    fn from(failure: Failure) -> Interrupted {
        Interrupted::Failure(failure)
    }
}

impl From<Stop> for Interrupted {
    fn from(stop: Stop) -> Interrupted {
        match stop {
            Stop::Exceeded(exceeded) => Interrupted::Failure(exceeded.into()),
            Stop::TooManyWays => Interrupted::TooManyWays,
        }
    }
}

/// Does work with the compiled pattern; null with a warning if it or the flags are invalid, or if it takes too long.
fn with_pattern<'e>(
    evaluator: &mut Evaluator<'e>,
    name: &str,
    pattern: &str,
    flags: Option<&Value>,
    work: impl FnOnce(&mut Evaluator<'e>, &Pattern) -> Result<Value, Interrupted>,
) -> Outcome {
    let flags = match flags {
        None | Some(Value::Null) => "",
        Some(Value::String(flags)) => flags,
        Some(_) => return failed(evaluator, name, || "the flags are no string".to_owned()),
    };
    // Finding the pattern takes time in proportion to its length.
    evaluator.spend(pattern.len() / 64)?;
    let compiled = match evaluator.pattern(pattern, flags)? {
        Ok(compiled) => compiled,
        Err(fault) => return failed(evaluator, name, || format!("Invalid pattern '{}': {fault}", shown(pattern))),
    };
    match work(evaluator, &compiled) {
        Ok(value) => Ok(value),
        Err(Interrupted::Failure(failure)) => Err(failure),
        Err(Interrupted::TooManyWays) => failed(evaluator, name, || {
            format!(
                "The pattern '{}' was stopped, because it tries too many ways to match. Nest no repetitions in it, and let \
                 it search in shorter texts",
                shown(pattern)
            )
        }),
    }
}

/// The beginning of a pattern, so short that a message has room for what is wrong with it.
fn shown(pattern: &str) -> &str {
    const SHOWN_BYTES: usize = 1_000;
    &pattern[..pattern.floor_char_boundary(SHOWN_BYTES)]
}

/// Nulls in the list are left out.
fn string_join(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let items = match &arguments[0] {
        Value::List(items) => &items[..],
        Value::String(_) => &arguments[..1],
        _ => return illegal(evaluator, "string join", arguments),
    };
    let mut affixes = [""; 3];
    for (affix, argument) in affixes.iter_mut().zip(&arguments[1..]) {
        *affix = match argument {
            Value::Null => "",
            Value::String(text) => text,
            _ => return illegal(evaluator, "string join", arguments),
        };
    }
    let [delimiter, prefix, suffix] = affixes;
    evaluator.spend(items.len())?;
    let mut out = String::new();
    append(evaluator, &mut out, prefix)?;
    let mut first = true;
    for item in items.iter() {
        match item {
            Value::Null => continue,
            Value::String(text) => {
                if !first {
                    append(evaluator, &mut out, delimiter)?;
                }
                append(evaluator, &mut out, text)?;
                first = false;
            }
            other => {
                return failed(evaluator, "string join", || format!("expected a list of strings but found '{other}'"));
            }
        }
    }
    append(evaluator, &mut out, suffix)?;
    Ok(Value::string(out))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            if position > chunk.len() {
                out.push('=');
            } else {
                out.push(char::from(ALPHABET[(group >> (18 - 6 * position) & 63) as usize]));
            }
        }
    }
    out
}

fn from_base64(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Some(text) = arguments[0].as_str() else {
        return illegal(evaluator, "from base64", arguments);
    };
    evaluator.scan(text.len())?;
    evaluator.allocate_string(text.len())?;
    match decoded(text).and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(decoded) => Ok(Value::string(decoded)),
        None => {
            failed(evaluator, "from base64", || format!("Can't decode '{}' as Base64 of a UTF-8 text", excerpt(text)))
        }
    }
}

/// The bytes of a text in Base64, with or without padding; `None` if it is none.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let unpadded = text.trim_end_matches('=');
    let padding = text.len() - unpadded.len();
    if unpadded.len() % 4 == 1 || padding > 0 && (padding > 2 || !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut bytes = Vec::with_capacity(unpadded.len() / 4 * 3 + 2);
    let (mut group, mut bits) = (0u32, 0);
    for byte in unpadded.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        group = group << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((group >> bits) as u8);
            group &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}
