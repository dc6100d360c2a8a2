//! Reads JSON into values.

use std::sync::Arc;

use super::reader::Reader;
use super::{JsonError, Parsed};
use crate::value::{CONTEXT_BYTES, Context, ENTRY_BYTES, LIST_BYTES, STRING_BYTES, Value};

/// About the memory of an item of a list that grows.
const ITEM_BYTES: usize = 2 * size_of::<Value>();

/// A value that is not complete yet; of a context, also the name of the entry to come.
enum Open {
    List(Vec<Value>),
    Context(Context, Arc<str>),
}

impl Open {
    fn complete(self) -> Value {
        match self {
            Open::List(items) => Value::list(items),
            Open::Context(context, _) => Value::context(context),
        }
    }
}

/// Names read before, to share their allocation between the objects of a list.
#[derive(Default)]
pub(super) struct SharedNames {
    known: Vec<Arc<str>>,
    next: usize,
}

impl SharedNames {
    /// How many names are remembered.
    const LIMIT: usize = 32;

    /// Reads the name of a member; the cursor ends at its value.
    #[inline]
    fn read(&mut self, reader: &mut Reader<'_>) -> Parsed<Arc<str>> {
        // Objects in a list mostly have the same names in the same order: the next name is guessed before it is read.
        if let Some(guess) = self.known.get(self.next)
            && reader.peek() == Some(b'"')
            && reader.bytes()[reader.position + 1..].starts_with(guess.as_bytes())
            && reader.bytes().get(reader.position + 1 + guess.len()) == Some(&b'"')
        {
            self.next = (self.next + 1) % self.known.len();
            reader.position = reader.behind_colon(reader.position + guess.len() + 2)?;
            return Ok(guess.clone());
        }
        let name = reader.name()?;
        Ok(self.shared(&name))
    }

    #[inline]
    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(index) = self.known.iter().position(|known| **known == *name) {
            self.next = (index + 1) % self.known.len();
            return self.known[index].clone();
        }
        let fresh: Arc<str> = Arc::from(name);
        // A name that needs escapes cannot be compared with the raw text.
        if self.known.len() < Self::LIMIT && !name.contains(['"', '\\']) {
            self.known.push(fresh.clone());
        }
        self.next = 0;
        fresh
    }
}

/// Takes the memory of a part before it is built.
#[inline]
fn take(room: &mut usize, bytes: usize) -> Parsed<()> {
    match room.checked_sub(bytes) {
        Some(left) => *room = left,
        None => return Err(out_of_room()),
    }
    Ok(())
}

#[cold]
fn out_of_room() -> Box<JsonError> {
    Box::new(JsonError::OutOfRoom)
}

/// Reads one value that is no list or object.
#[inline]
pub(super) fn scalar(reader: &mut Reader<'_>, room: &mut usize) -> Parsed<Value> {
    let value = reader.scalar()?;
    if let Value::String(text) = &value {
        take(room, STRING_BYTES + text.len())?;
    }
    Ok(value)
}

/// Reads one value. Not recursive, because documents may be deeper than stacks.
/// What is built takes its memory from `room`.
pub(super) fn value(reader: &mut Reader<'_>, names: &mut SharedNames, room: &mut usize) -> Parsed<Value> {
    if !matches!(reader.peek(), Some(b'{' | b'[')) {
        return scalar(reader, room);
    }
    let mut open: Vec<Open> = Vec::new();
    loop {
        let mut complete = match reader.peek() {
            Some(b'{') => {
                take(room, CONTEXT_BYTES)?;
                if reader.open(b'}')? {
                    Some(Value::context(Context::new()))
                } else {
                    open.push(Open::Context(Context::new(), names.read(reader)?));
                    None
                }
            }
            Some(b'[') => {
                take(room, LIST_BYTES)?;
                if reader.open(b']')? {
                    Some(Value::list(Vec::new()))
                } else {
                    open.push(Open::List(Vec::new()));
                    None
                }
            }
            _ => Some(scalar(reader, room)?),
        };
        // A complete value goes into the one around it, which may be complete then.
        while let Some(value) = complete.take() {
            let close = match open.last_mut() {
                None => return Ok(value),
                Some(Open::List(items)) => {
                    take(room, ITEM_BYTES)?;
                    items.push(value);
                    b']'
                }
                Some(Open::Context(context, name)) => {
                    take(room, ENTRY_BYTES + name.len())?;
                    context.put(name.clone(), value);
                    b'}'
                }
            };
            if reader.separator(close)? {
                complete = open.pop().map(Open::complete);
            } else if let Some(Open::Context(_, name)) = open.last_mut() {
                *name = names.read(reader)?;
            }
        }
    }
}
