//! What one command may spend on expressions and decisions.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::sync::Arc;

use crate::environment::{Environment, EvaluationError};
use crate::json::{self, JsonError};
use crate::value::{DEPTH_LIMIT, JsonForm, Value};

/// The account of one command: what its expressions and decisions may still spend together. It is lent to each of them, and
/// whatever reads, computes or builds charges it first. So what a failed evaluation has used is known exactly, and nothing
/// is given back: memory that was freed has taken time.
///
/// It also keeps what was read of long variables, so that many expressions on the same text read it once.
#[derive(Debug)]
pub struct Budget {
    /// Steps that may be taken: a step is about 20 nanoseconds of a processor.
    steps_max: u32,
    bytes_read_max: usize,
    bytes_built_max: usize,
    depth_max: u32,
    steps: Cell<u32>,
    bytes_read: Cell<usize>,
    bytes_built: Cell<usize>,
    /// How many levels the evaluation under way is nested.
    depth: Cell<u32>,
    /// Random numbers that were taken.
    randoms: Cell<u64>,
    texts: RefCell<Vec<Known>>,
}

/// A long text that was looked at.
#[derive(Debug)]
struct Known {
    text: Arc<str>,
    /// Bytes of it that were searched for members.
    searched: usize,
    value: Option<Value>,
}

/// Shorter texts are read again: that is cheaper than to look for them.
const KNOWN_TEXT_BYTES_MIN: usize = 512;
/// How many long texts are kept.
const KNOWN_TEXTS_MAX: usize = 32;
/// How many bytes of a text are passed over in a step.
const BYTES_READ_PER_STEP: usize = 32;
/// How many bytes are built in a step: fresh memory is given by the system page by page, filled, and given back.
const BYTES_BUILT_PER_STEP: usize = 16;

/// The limit that would be exceeded, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// Steps.
    Steps(u32),
    /// Bytes of variables that are read.
    BytesRead(usize),
    /// Bytes of values and texts that are built.
    BytesBuilt(usize),
    /// Levels of nested evaluation.
    Depth(u32),
}

impl From<Exceeded> for EvaluationError {
    fn from(exceeded: Exceeded) -> EvaluationError {
        match exceeded {
            Exceeded::Steps(max) => EvaluationError::TooManySteps(max),
            Exceeded::BytesRead(max) => EvaluationError::TooMuchRead(max),
            Exceeded::BytesBuilt(max) => EvaluationError::TooMuchMemory(max),
            Exceeded::Depth(max) => EvaluationError::TooDeep(max),
        }
    }
}

impl From<Exceeded> for Box<EvaluationError> {
    #[cold]
    fn from(exceeded: Exceeded) -> Box<EvaluationError> {
        Box::new(exceeded.into())
    }
}

impl Budget {
    /// With the limits of an environment, nothing spent yet.
    pub fn of(environment: &Environment) -> Budget {
        Budget {
            steps_max: environment.step_limit,
            bytes_read_max: environment.read_limit_bytes,
            bytes_built_max: environment.memory_limit_bytes,
            depth_max: environment.depth_limit,
            steps: Cell::new(0),
            bytes_read: Cell::new(0),
            bytes_built: Cell::new(0),
            depth: Cell::new(0),
            randoms: Cell::new(0),
            texts: RefCell::new(Vec::new()),
        }
    }

    /// Steps taken so far.
    pub fn steps_used(&self) -> u32 {
        self.steps.get()
    }

    /// Bytes of variables read so far.
    pub fn bytes_read(&self) -> usize {
        self.bytes_read.get()
    }

    /// Bytes of values and texts built so far.
    pub fn bytes_built(&self) -> usize {
        self.bytes_built.get()
    }

    /// Steps that are left.
    pub fn steps_left(&self) -> u32 {
        self.steps_max - self.steps.get()
    }

    /// Call before this many steps of work are done.
    #[inline]
    pub fn spend(&self, steps: usize) -> Result<(), Exceeded> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let used = self.steps.get().saturating_add(steps);
        if used > self.steps_max {
            return Err(Exceeded::Steps(self.steps_max));
        }
        self.steps.set(used);
        Ok(())
    }

    /// Charges steps that were taken although nobody knew before how many: when they are too many, whatever comes next fails.
    #[inline]
    pub fn charge(&self, steps: usize) {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.steps.set(self.steps.get().saturating_add(steps).min(self.steps_max));
    }

    /// Call before this many bytes of a variable are read.
    #[inline]
    pub fn read(&self, bytes: usize) -> Result<(), Exceeded> {
        let read = self.bytes_read.get().saturating_add(bytes);
        if read > self.bytes_read_max {
            return Err(Exceeded::BytesRead(self.bytes_read_max));
        }
        self.spend(bytes / BYTES_READ_PER_STEP)?;
        self.bytes_read.set(read);
        Ok(())
    }

    /// Call before this much memory is taken. The time to take and fill it is charged, too.
    #[inline]
    pub fn build(&self, bytes: usize) -> Result<(), Exceeded> {
        let built = self.bytes_built.get().saturating_add(bytes);
        if built > self.bytes_built_max {
            return Err(Exceeded::BytesBuilt(self.bytes_built_max));
        }
        self.spend(bytes / BYTES_BUILT_PER_STEP)?;
        self.bytes_built.set(built);
        Ok(())
    }

    /// Goes a level deeper; [`Budget::leave`] comes back.
    #[inline]
    pub fn enter(&self, levels: u32) -> Result<(), Exceeded> {
        let depth = self.depth.get().saturating_add(levels);
        if depth > self.depth_max {
            return Err(Exceeded::Depth(self.depth_max));
        }
        self.depth.set(depth);
        Ok(())
    }

    /// Comes back from levels that were entered.
    #[inline]
    pub fn leave(&self, levels: u32) {
        self.depth.set(self.depth.get().saturating_sub(levels));
    }

    /// Runs something that may end with an error in the middle of nested levels, and comes back to this one.
    pub fn nested<T>(&self, run: impl FnOnce() -> T) -> T {
        let depth = self.depth.get();
        let result = run();
        self.depth.set(depth);
        result
    }

    /// Does work that takes its steps one by one from the rest of the budget; work that uses it up has no valid result.
    pub fn counted<T>(&self, work: impl FnOnce(&mut usize) -> T) -> Result<T, Exceeded> {
        let before = self.steps_left() as usize;
        let mut left = before;
        let result = work(&mut left);
        self.steps.set(self.steps.get() + u32::try_from(before - left.min(before)).unwrap_or(u32::MAX));
        if left == 0 { Err(Exceeded::Steps(self.steps_max)) } else { Ok(result) }
    }

    /// The number of the next random number.
    pub(crate) fn next_random(&self) -> u64 {
        self.randoms.set(self.randoms.get() + 1);
        self.randoms.get()
    }

    /// The value as compact JSON of at most this many bytes. It is charged as it grows, and nothing is written beyond a
    /// limit.
    pub fn to_json(&self, value: &Value, bytes_max: usize) -> Result<String, EvaluationError> {
        let mut out = String::new();
        self.write_json(value, &mut out, bytes_max)?;
        Ok(out)
    }

    /// Appends the value as compact JSON, as long as the whole text has at most this many bytes.
    pub fn write_json(&self, value: &Value, out: &mut String, bytes_max: usize) -> Result<(), EvaluationError> {
        if value.depth() > DEPTH_LIMIT {
            return Err(EvaluationError::ValueTooDeep(DEPTH_LIMIT));
        }
        self.write(out, bytes_max, |out, limit| value.write_json_until(out, limit, JsonForm::Variable))
    }

    /// Does work that appends to a text and ends soon after a limit in bytes. What exceeds the limit is removed.
    pub(crate) fn write(
        &self,
        out: &mut String,
        bytes_max: usize,
        work: impl FnOnce(&mut String, usize),
    ) -> Result<(), EvaluationError> {
        let before = out.len();
        // A growing text is moved occasionally to where there is room, and in the end to its final place.
        let built_max = (self.bytes_built_max - self.bytes_built.get()) / 2;
        let steps_max = (self.steps_left() as usize).saturating_mul(BYTES_BUILT_PER_STEP) / 2;
        let room = built_max.min(steps_max);
        let limit = bytes_max.min(before.saturating_add(room));
        work(out, limit);
        let written = (out.len() - before).min(room);
        self.build(written.saturating_mul(2))?;
        if out.len() <= limit {
            return Ok(());
        }
        out.truncate(before);
        Err(if limit == bytes_max {
            EvaluationError::ResultTooLarge(bytes_max)
        } else if built_max < steps_max {
            EvaluationError::TooMuchMemory(self.bytes_built_max)
        } else {
            EvaluationError::TooManySteps(self.steps_max)
        })
    }

    /// The value in the text of a variable, which is read at most once for a command if it is long. The text is valid by
    /// contract; null stands for one that is not.
    pub fn value_of(&self, text: &VariableText<'_>) -> Result<Value, EvaluationError> {
        self.read_variable(text).map_err(|error| *error)
    }

    pub(crate) fn read_variable(&self, text: &VariableText<'_>) -> Result<Value, Box<EvaluationError>> {
        let shared = text.long();
        if let Some(value) = shared.and_then(|shared| self.known_value(shared)) {
            return Ok(value);
        }
        let value = self.read_text(text)?;
        if let Some(shared) = shared {
            self.know(shared, |known| known.value = Some(value.clone()));
        }
        Ok(value)
    }

    /// Reads a part of a variable's text.
    pub(crate) fn read_text(&self, text: &str) -> Result<Value, Box<EvaluationError>> {
        self.read(text.len())?;
        match self.building(|room| json::read_within(text, room))? {
            Ok(value) => Ok(value),
            Err(_) => Ok(Value::Null),
        }
    }

    /// Does work that takes the memory of what it builds from `room`; it ends with [`JsonError::OutOfRoom`] where there is
    /// none left.
    pub(crate) fn building<T>(
        &self,
        work: impl FnOnce(&mut usize) -> Result<T, Box<JsonError>>,
    ) -> Result<Result<T, Box<JsonError>>, Exceeded> {
        let (built_max, steps) = (self.bytes_built_max - self.bytes_built.get(), self.steps_left() as usize);
        let steps_max = steps.saturating_mul(BYTES_BUILT_PER_STEP);
        let before = built_max.min(steps_max);
        let mut room = before;
        let result = work(&mut room);
        let built = before - room.min(before);
        self.build(built)?;
        match result {
            Err(error) if *error == JsonError::OutOfRoom => Err(match built_max <= steps_max {
                true => Exceeded::BytesBuilt(self.bytes_built_max),
                false => Exceeded::Steps(self.steps_max),
            }),
            result => Ok(result),
        }
    }

    /// What is known of the value of a long text.
    pub(crate) fn known_value(&self, text: &Arc<str>) -> Option<Value> {
        let texts = self.texts.borrow();
        find(&texts, text).and_then(|found| texts[found].value.clone())
    }

    /// How many bytes of a long text were searched so far.
    pub(crate) fn searched(&self, text: &Arc<str>) -> usize {
        let texts = self.texts.borrow();
        find(&texts, text).map_or(0, |found| texts[found].searched)
    }

    pub(crate) fn note_searched(&self, text: &Arc<str>, searched: usize) {
        self.know(text, |known| known.searched = searched);
    }

    fn know(&self, text: &Arc<str>, note: impl FnOnce(&mut Known)) {
        let mut texts = self.texts.borrow_mut();
        if let Some(found) = find(&texts, text) {
            return note(&mut texts[found]);
        }
        if texts.len() == KNOWN_TEXTS_MAX {
            texts.remove(0);
        }
        let mut known = Known { text: text.clone(), searched: 0, value: None };
        note(&mut known);
        texts.push(known);
    }
}

/// Where a text is among the known ones. It is found by what it says, because that alone is the same on every node and after every
/// start: one that is in memory is shared by all who read it, and one that was read from a file is not. Mostly it is the very same.
fn find(texts: &[Known], text: &Arc<str>) -> Option<usize> {
    let same = texts.iter().position(|known| Arc::ptr_eq(&known.text, text));
    same.or_else(|| texts.iter().position(|known| known.text == *text))
}

/// The JSON text of a variable: borrowed, or shared with where it is kept. It is never copied.
#[derive(Clone, Debug)]
pub enum VariableText<'a> {
    /// Lent by the scope.
    Borrowed(&'a str),
    /// Shared. A [`Budget`] remembers what was read of it.
    Shared(Arc<str>),
}

impl VariableText<'_> {
    /// The text, if it is worth to be remembered.
    pub(crate) fn long(&self) -> Option<&Arc<str>> {
        match self {
            VariableText::Shared(text) if text.len() >= KNOWN_TEXT_BYTES_MIN => Some(text),
            _ => None,
        }
    }
}

impl Deref for VariableText<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match self {
            VariableText::Borrowed(text) => text,
            VariableText::Shared(text) => text,
        }
    }
}

impl<'a> From<&'a str> for VariableText<'a> {
    fn from(text: &'a str) -> Self {
        VariableText::Borrowed(text)
    }
}

impl<'a> From<&'a String> for VariableText<'a> {
    fn from(text: &'a String) -> Self {
        VariableText::Borrowed(text)
    }
}
