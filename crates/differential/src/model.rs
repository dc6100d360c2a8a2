//! Process models as short texts.
//!
//! A model is a tree of items, one a line: a keyword, an id and attributes. What follows an item on the same level is
//! connected to it by a sequence flow; what is indented below it is inside or attached to it.
//!
//! ```text
//! process order
//!   service check type=check retries=2 in.amount=`=total`
//!     on late timer=PT10S non-interrupting
//!       service remind type=remind
//!   exclusive large
//!     branch cond=`=total > 100`
//!       manual approve
//!     branch default
//!   end done
//! ```
//!
//! | item | becomes |
//! |---|---|
//! | `process ID` | an executable process |
//! | `start ID [EVENT]` | the start event; without one a none start event is made |
//! | `service`, `send`, `script`, `rule` with `type`, `retries`, `header.NAME` | a task for a job worker |
//! | `script` with `expression`, `variable` | a script task that the engine evaluates |
//! | `rule` with `decision`, `variable`, `binding`, `tag` | a business rule task with a decision |
//! | `user [native]` with `assignee`, `groups`, `users`, `due`, `follow`, `priority`, `form-key`, `form` (`binding`, `tag`), `reference`, `header.NAME` | a user task |
//! | `manual`, `task` | a manual or undefined task |
//! | `receive EVENT` | a receive task |
//! | `catch EVENT`, `throw [EVENT]` | intermediate events |
//! | `end [EVENT]` | an end event; without one an end event is made where a path ends |
//! | `exclusive`, `parallel`, `inclusive` with `branch [cond=…] [default]` | a gateway, its branches and, if several of them end open, the joining gateway `ID-join` |
//! | `exclusive`, `parallel`, `inclusive` alone | a gateway without branches, to be reached by `goto` |
//! | `goto ID` | a sequence flow to an element that is somewhere else |
//! | `stop` | nothing: the path ends in what is before, without an end event |
//! | `events` with `branch` that starts with `catch` | an event-based gateway |
//! | `loop cond=…` | what is inside is repeated while the condition holds |
//! | `sub` | an embedded sub-process |
//! | `ad-hoc` with `active=LIST`, `gather`, `gathered`, `done=CONDITION`, `keeping`, or `type` | an ad-hoc sub-process: each item inside can be chosen, and no path goes on behind it |
//! | `call process=… [all-child=…] [all-parent=…] [binding=…]` | a call activity |
//! | `on EVENT [non-interrupting] [rejoin]` below an activity | a boundary event and its path |
//! | `on compensation` below an activity, and an activity below that | a compensation boundary event and its handler |
//! | `event EVENT [non-interrupting]` below a process or sub-process | an event sub-process |
//!
//! EVENT is one of `timer=DURATION`, `date=DATE`, `cycle=CYCLE`, `message=NAME [key=…]`, `error=CODE` or `error`,
//! `escalation=CODE` or `escalation`, `signal=NAME`, `link=NAME`, `terminate`, `compensation` or `compensation=ACTIVITY`, and
//! `type=JOB-TYPE` for a thrown message. Every activity takes `in.TARGET=SOURCE` and `out.TARGET=SOURCE`, and `each=LIST [sequential] [element=…] [collect=…
//! result=…] [until=…]` makes it run several times. Everything takes `listen.start=TYPE` and `listen.end=TYPE`, also
//! `TYPE@RETRIES`: execution listeners. A native user task takes `listen.creating=TYPE` and so on too: task listeners. Of
//! what an item becomes besides, `join-listen=TYPE` means the start of the gateway that joins, and `start-listen=TYPE` the end
//! of the start event that is made.

mod read;
mod xml;

pub use read::read;

use std::fmt;

/// One line of a model with everything indented below it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Item {
    /// What it is.
    pub keyword: String,
    /// BPMN id; empty where none is needed.
    pub id: String,
    /// Attributes in order; those without a value are switches.
    pub attributes: Vec<(String, String)>,
    /// What is inside or attached.
    pub items: Vec<Item>,
}

/// A file with the processes that are deployed together.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Model {
    /// The `process` items.
    pub processes: Vec<Item>,
}

/// What is wrong with a model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A line cannot be read.
    #[error("Line {line} of the model cannot be read: {problem}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// An item is where it has no meaning.
    #[error("'{keyword} {id}' means nothing here. The keywords are listed in crates/differential/src/model.rs.")]
    Misplaced {
        /// The keyword of the item.
        keyword: String,
        /// Its id.
        id: String,
    },
}

impl Item {
    /// An item without attributes.
    pub fn new(keyword: &str, id: &str) -> Self {
        Item { keyword: keyword.to_owned(), id: id.to_owned(), ..Item::default() }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.attributes.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a switch.
    #[must_use]
    pub fn switch(self, name: &str) -> Self {
        self.with(name, "")
    }

    /// Adds what is inside or attached.
    #[must_use]
    pub fn containing(mut self, items: impl IntoIterator<Item = Item>) -> Self {
        self.items.extend(items);
        self
    }

    /// The value of an attribute; empty for a switch.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(attribute, _)| attribute == name).map(|(_, value)| value.as_str())
    }

    /// Whether the attribute or switch is there.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Attributes whose name begins with a prefix, without it.
    pub fn prefixed<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.attributes.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }

    fn write(&self, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:width$}{}", "", self.keyword, width = depth * 2)?;
        if !self.id.is_empty() {
            write!(f, " {}", self.id)?;
        }
        for (name, value) in &self.attributes {
            match value.as_str() {
                "" => write!(f, " {name}")?,
                value if value.contains([' ', '"', '`']) || value.starts_with('=') => write!(f, " {name}=`{value}`")?,
                value => write!(f, " {name}={value}")?,
            }
        }
        writeln!(f)?;
        self.items.iter().try_for_each(|item| item.write(depth + 1, f))
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.processes.iter().try_for_each(|process| process.write(0, f))
    }
}

impl Model {
    /// The model as a BPMN file.
    ///
    /// # Errors
    /// When an item is where it has no meaning.
    pub fn to_xml(&self) -> Result<String, ModelError> {
        xml::write(self)
    }
}
