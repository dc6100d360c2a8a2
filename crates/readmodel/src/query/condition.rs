//! What rows must be like.

use super::entity::Field;

/// A value to compare with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// Nothing. Comes before everything else in an order.
    Null,
    /// A number, a key, a moment, a yes or no, or what stands for a name.
    Integer(i64),
    /// A text.
    Text(String),
}

/// What a value must be like.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// The same.
    Equal(Value),
    /// Another one, or none.
    NotEqual(Value),
    /// One at all, or none.
    Exists(bool),
    /// Beyond it.
    Greater(Value),
    /// Not before it.
    GreaterOrEqual(Value),
    /// Before it.
    Less(Value),
    /// Not beyond it.
    LessOrEqual(Value),
    /// One of these.
    In(Vec<Value>),
    /// None of these.
    NotIn(Vec<Value>),
    /// A text with `*` for any characters and `?` for one; a backslash takes the meaning from what follows.
    Like(String),
}

/// Who has a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableScope {
    /// The process instance.
    ProcessInstance,
    /// The element instance.
    ElementInstance,
}

/// What rows must be like.
#[derive(Debug, Clone)]
pub enum Condition {
    /// Each of them.
    All(Vec<Condition>),
    /// At least one of them.
    Any(Vec<Condition>),
    /// A field passes all tests.
    Is(&'static Field, Vec<Test>),
    /// A process instance has a variable of this name whose value passes all tests.
    Variable(String, Vec<Test>),
    /// A row's process instance, or its element instance, has a variable of this name itself whose value passes all tests.
    VariableOf(VariableScope, String, Vec<Test>),
    /// A variable is one of what this element instance of a process instance sees; of those with the same name either all or
    /// the innermost one.
    Seen {
        /// The element instance.
        element_instance: i64,
        /// Its process instance.
        process_instance: i64,
        /// Whether an inner variable hides the outer ones with its name.
        is_effective: bool,
    },
    /// A row belongs to this process instance or to one that was called below it.
    OfInstance(i64),
    /// A row is of this element instance, or of one inside of it, or of what was called there.
    WithinElement(i64),
    /// A process instance has this tag.
    Tag(String),
}

impl Condition {
    /// Every row.
    pub fn always() -> Condition {
        Condition::All(Vec::new())
    }

    /// A field has this value.
    pub fn equal(field: &'static Field, value: Value) -> Condition {
        Condition::Is(field, vec![Test::Equal(value)])
    }
}
