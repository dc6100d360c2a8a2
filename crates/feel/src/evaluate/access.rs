//! Variables, paths and filters.

use std::sync::Arc;

use super::{Evaluator, Failure, Function, Outcome, Variable};
use crate::budget::{Budget, VariableText};
use crate::environment::WarningKind;
use crate::functions;
use crate::json::{self, Found};
use crate::node::{Dynamic, Node};
use crate::value::{Context, Value};

/// Characters of a value that a warning quotes.
const SHOWN_CHARACTERS: usize = 200;

impl Evaluator<'_> {
    pub(super) fn load(&mut self, index: usize) {
        if let Variable::Unseen = self.variables[index] {
            let name = &self.source.variables[index];
            self.variables[index] = match self.scope.value(name) {
                Some(value) => Variable::Read(value),
                None => match self.scope.variable(name) {
                    Some(text) => self.known(text),
                    None => Variable::Missing,
                },
            };
        }
    }

    /// What earlier evaluations of the command have read of a text.
    fn known<'a>(&self, text: VariableText<'a>) -> Variable<'a> {
        let Some(long) = text.long() else {
            return Variable::Text(text, 0);
        };
        match self.budget.known_value(long) {
            Some(value) => Variable::Read(value),
            None => {
                let searched = self.budget.searched(long);
                Variable::Text(text, searched)
            }
        }
    }

    /// The value of a variable, if there is one.
    pub(super) fn read(&mut self, index: usize) -> Result<Option<Value>, Failure> {
        self.load(index);
        match &self.variables[index] {
            Variable::Read(value) => Ok(Some(value.duplicate())),
            Variable::Text(text, _) => {
                let value = self.budget.read_variable(text)?;
                self.variables[index] = Variable::Read(value.duplicate());
                Ok(Some(value))
            }
            Variable::Unseen | Variable::Missing => Ok(None),
        }
    }

    /// The function in a variable, if it is one: texts have none.
    pub(super) fn function_variable(&mut self, index: usize) -> Option<Arc<Function>> {
        self.load(index);
        match &self.variables[index] {
            Variable::Read(Value::Function(function)) => Some(function.clone()),
            _ => None,
        }
    }

    #[inline(never)]
    pub(super) fn variable(&mut self, index: usize) -> Outcome {
        if let Some(value) = self.read(index)? {
            return Ok(value);
        }
        let name = self.source.variables[index].clone();
        Ok(self.warn(WarningKind::NoVariableFound, || format!("No variable found with name '{name}'")))
    }

    /// Reads only the member at the end of the path, unless that has been tried so often that reading the whole variable
    /// once is cheaper.
    #[inline(never)]
    pub(super) fn variable_path(&mut self, index: usize, path: &[Arc<str>]) -> Outcome {
        self.load(index);
        if let Variable::Text(text, searched) = &mut self.variables[index]
            && may_search(text, *searched)
        {
            search(self.budget, text, searched)?;
            if let Ok(Found::Member(member)) = json::find(text, path) {
                return self.budget.read_text(member);
            }
        }
        let mut value = self.variable(index)?;
        for name in path {
            value = self.member(&value, name)?;
        }
        Ok(value)
    }

    /// Whether a variable, or what its path leads to, is this string: compared with the raw text. `None` if it has to be
    /// read to know.
    pub(super) fn text_equals(&mut self, node: &Node, string: &str) -> Result<Option<bool>, Failure> {
        let (index, path): (usize, &[Arc<str>]) = match node {
            Node::Variable(index) => (*index as usize, &[]),
            Node::VariablePath(index, path) => (*index as usize, path),
            _ => return Ok(None),
        };
        self.load(index);
        let Variable::Text(text, searched) = &mut self.variables[index] else {
            return Ok(None);
        };
        if !may_search(text, *searched) {
            return Ok(None);
        }
        search(self.budget, text, searched)?;
        let Ok(Found::Member(member)) = json::find(text, path) else {
            return Ok(None);
        };
        let Some(raw) = member.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
            return Ok(None);
        };
        // What has escapes has to be decoded.
        if raw.contains('\\') {
            return Ok(None);
        }
        let equal = raw == string;
        self.spend(1 + string.len() / 64)?;
        Ok(Some(equal))
    }

    #[inline(never)]
    pub(super) fn dynamic(&mut self, dynamic: &Dynamic) -> Outcome {
        match self.entry(dynamic) {
            Some(value) => Ok(value.duplicate()),
            None => self.evaluate(&dynamic.otherwise),
        }
    }

    /// The entry of a filtered item that has this name. An item hides only names outside its own filter; `item` itself
    /// lies at this position.
    #[inline]
    pub(super) fn entry(&self, dynamic: &Dynamic) -> Option<&Value> {
        dynamic.items.iter().find_map(|position| match &self.stack[*position as usize] {
            Value::Context(context) => context.get(&dynamic.name),
            _ => None,
        })
    }

    #[inline(never)]
    pub(super) fn path(&mut self, base: &Node, name: &Arc<str>) -> Outcome {
        if let Node::Filter(filter) = base
            && let Some(members) = self.filter_text(filter, Some(name))?
        {
            return Ok(members);
        }
        let value = self.evaluate(base)?;
        self.member(&value, name)
    }

    /// An entry of a context, a property of a temporal value, or the list of those of a list's items.
    pub(super) fn member(&mut self, value: &Value, name: &Arc<str>) -> Outcome {
        match value {
            Value::Context(context) => Ok(match context.get(name) {
                Some(value) => value.clone(),
                None => self.no_entry(Some(context), name),
            }),
            Value::List(items) => {
                self.allocate_list(items.len())?;
                let mut members = Vec::with_capacity(items.len());
                for item in items.iter() {
                    members.push(self.member(item, name)?);
                }
                Ok(Value::list(members))
            }
            Value::Null => Ok(self.no_entry(None, name)),
            other => Ok(self.property(other, name)),
        }
    }

    #[cold]
    fn no_entry(&mut self, context: Option<&Context>, name: &str) -> Value {
        const SHOWN_KEYS: usize = 20;
        self.warn(WarningKind::NoContextEntryFound, || {
            let keys = match context.map(Context::entries) {
                None => "The context is null".to_owned(),
                Some([]) => "The context is empty".to_owned(),
                Some(entries) => {
                    let keys: Vec<String> =
                        entries.iter().take(SHOWN_KEYS).map(|(key, _)| format!("'{key}'")).collect();
                    format!("Available keys: {}", keys.join(", "))
                }
            };
            format!("No context entry found with key '{name}'. {keys}")
        })
    }

    fn property(&mut self, value: &Value, name: &str) -> Value {
        match functions::property(value, name) {
            Ok(found) => found,
            Err(available) => self.warn(WarningKind::NoPropertyFound, || {
                let shown = shown(value);
                if available.is_empty() {
                    return format!("No property found with name '{name}' of value '{shown}'.");
                }
                let names: Vec<String> = available.iter().map(|known| format!("'{known}'")).collect();
                format!(
                    "No property found with name '{name}' of value '{shown}'. Available properties: {}",
                    names.join(", ")
                )
            }),
        }
    }
}

/// The beginning of a value, for a warning.
pub(super) fn shown(value: &Value) -> String {
    value.to_string().chars().take(SHOWN_CHARACTERS).collect()
}

/// Whether a text is searched once more: what has been searched so often is cheaper to be read once.
pub(super) fn may_search(text: &str, searched: usize) -> bool {
    searched <= 2 * text.len()
}

/// To be called before a text is searched for members.
pub(super) fn search(budget: &Budget, text: &VariableText<'_>, searched: &mut usize) -> Result<(), Failure> {
    budget.read(text.len())?;
    *searched += text.len() + 1;
    if let Some(long) = text.long() {
        budget.note_searched(long, *searched);
    }
    Ok(())
}
