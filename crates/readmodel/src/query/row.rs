//! A row as JSON.

use super::entity::{Field, Kind};
use super::instant::instant;
use crate::database::{Cell, Result, Row};

/// A value that is longer is shortened where that is allowed.
pub(super) const VALUE_CHARACTERS_MAX: usize = 8_191;

/// Writes the fields of a row, from this column on, as an object.
pub(super) fn write(
    out: &mut Vec<u8>,
    row: &Row<'_>,
    fields: impl Iterator<Item = &'static Field>,
    first: usize,
    truncates: bool,
) -> Result<()> {
    out.push(b'{');
    for (index, field) in fields.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(field.name.as_bytes());
        out.extend_from_slice(b"\":");
        write_value(out, field.kind, row.cell(first + index)?, truncates);
    }
    out.push(b'}');
    Ok(())
}

fn write_value(out: &mut Vec<u8>, kind: Kind, value: Cell<'_>, truncates: bool) {
    match (kind, value) {
        (Kind::Constant(text), _) => write_text(out, text),
        (Kind::Object, Cell::Null | Cell::Text("")) => out.extend_from_slice(b"{}"),
        (Kind::List, Cell::Null | Cell::Text("")) => out.extend_from_slice(b"[]"),
        (Kind::KeyOrMinusOne, Cell::Null) => out.extend_from_slice(b"\"-1\""),
        (Kind::IsTruncated, Cell::Text(text)) => {
            let is_longer = truncates && shortened(text).is_some();
            out.extend_from_slice(if is_longer { b"true" } else { b"false" });
        }
        (_, Cell::Null) => out.extend_from_slice(b"null"),
        (Kind::Object | Kind::List, Cell::Text(json)) => out.extend_from_slice(json.as_bytes()),
        (Kind::Key | Kind::KeyOrMinusOne, Cell::Integer(key)) => out.extend_from_slice(format!("\"{key}\"").as_bytes()),
        (Kind::Instant, Cell::Integer(moment)) => out.extend_from_slice(format!("\"{}\"", instant(moment)).as_bytes()),
        (Kind::Boolean, Cell::Integer(number)) => {
            out.extend_from_slice(if number == 0 { b"false" } else { b"true" });
        }
        (Kind::Enumeration(names), Cell::Integer(number)) => {
            let name = usize::try_from(number).ok().and_then(|number| names.get(number));
            write_text(out, name.copied().unwrap_or("UNKNOWN"));
        }
        (_, Cell::Integer(number)) => out.extend_from_slice(number.to_string().as_bytes()),
        (Kind::Value, Cell::Text(text)) => {
            let shorter = if truncates { shortened(text) } else { None };
            write_text(out, shorter.unwrap_or(text));
        }
        (_, Cell::Text(text)) => write_text(out, text),
        (_, Cell::Bytes(bytes)) => write_text(out, &String::from_utf8_lossy(bytes)),
    }
}

/// The beginning of a text that is too long.
fn shortened(text: &str) -> Option<&str> {
    let end = text.char_indices().nth(VALUE_CHARACTERS_MAX).map(|(end, _)| end)?;
    Some(&text[..end])
}

pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("writing a text to memory cannot fail");
}
