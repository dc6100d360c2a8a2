//! Variables, paths and filters.

use std::sync::Arc;

use super::{Evaluator, Failure, Function, Outcome, Variable, read_text};
use crate::environment::WarningKind;
use crate::functions;
use crate::json::{self, Found};
use crate::node::{Dynamic, Filter, Node};
use crate::value::{Context, List, Value};

impl Evaluator<'_> {
    fn load(&mut self, index: usize) {
        if let Variable::Unseen = self.variables[index] {
            let name = &self.source.variables[index];
            self.variables[index] = match self.scope.value(name) {
                Some(value) => Variable::Read(value),
                None => match self.scope.variable(name) {
                    Some(text) => Variable::Text(text, 0),
                    None => Variable::Missing,
                },
            };
        }
    }

    /// The value of a variable, if there is one.
    pub(super) fn read(&mut self, index: usize) -> Result<Option<Value>, Failure> {
        self.load(index);
        if let Variable::Text(text, _) = &self.variables[index] {
            let (value, memory) = (read_text(text), read_bytes(text));
            self.allocate(memory)?;
            self.variables[index] = Variable::Read(value);
        }
        Ok(if let Variable::Read(value) = &self.variables[index] { Some(value.clone()) } else { None })
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
            && *searched <= 2 * text.len()
        {
            *searched += text.len() + 1;
            if let Ok(Found::Member(member)) = json::find(text, path) {
                let (value, memory) = (read_text(member), read_bytes(member));
                self.allocate(memory)?;
                return Ok(value);
            }
        }
        let mut value = self.variable(index)?;
        for name in path {
            value = self.member(&value, name)?;
        }
        Ok(value)
    }

    #[inline(never)]
    pub(super) fn dynamic(&mut self, dynamic: &Dynamic) -> Outcome {
        for position in &dynamic.items {
            // An item hides only names outside its own filter; `item` itself lies at this position.
            if let Value::Context(context) = &self.stack[*position as usize]
                && let Some(value) = context.get(&dynamic.name)
            {
                return Ok(value.clone());
            }
        }
        self.evaluate(&dynamic.otherwise)
    }

    #[inline(never)]
    pub(super) fn path(&mut self, base: &Node, name: &Arc<str>) -> Outcome {
        let value = self.evaluate(base)?;
        self.member(&value, name)
    }

    /// An entry of a context, a property of a temporal value, or the list of those of a list's items.
    fn member(&mut self, value: &Value, name: &Arc<str>) -> Outcome {
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
                let shown: String = value.to_string().chars().take(200).collect();
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

    #[inline(never)]
    pub(super) fn filter(&mut self, filter: &Filter) -> Outcome {
        let base = self.evaluate(&filter.base)?;
        let items = match base {
            Value::List(items) => items,
            Value::Null => {
                return Ok(self.warn(WarningKind::InvalidType, || "Expected list but found 'null'".to_owned()));
            }
            // A value is a list of itself (chapter 10.3.2.5 of the standard).
            other => Arc::new(List::from(vec![other])),
        };
        if filter.constant_index {
            let index = self.evaluate(&filter.condition)?;
            return Ok(item_at(&items, &index));
        }
        // An index is one whether or not there are items; of conditions that is not known without one.
        if items.is_empty() && !matches!(filter.condition, Node::Comparison(..) | Node::Call(_)) {
            self.stack.push(Value::Null);
            let outcome = self.evaluate(&filter.condition)?;
            self.stack.pop();
            return Ok(if outcome.as_number().is_some() { Value::Null } else { Value::list(Vec::new()) });
        }
        let mut kept = Vec::new();
        for item in items.iter() {
            self.spend(1)?;
            self.stack.push(item.clone());
            let outcome = self.evaluate(&filter.condition)?;
            self.stack.pop();
            match outcome {
                Value::Boolean(true) => kept.push(item.clone()),
                // A number is an index, whichever item it was computed for.
                Value::Number(_) => return Ok(item_at(&items, &outcome)),
                _ => {}
            }
        }
        self.allocate(kept.len() * size_of::<Value>())?;
        Ok(Value::list(kept))
    }
}

/// About the memory that a text takes when it is read: many small items take more than their text.
fn read_bytes(text: &str) -> usize {
    let factor = if text.trim_start().starts_with(['[', '{']) { 8 } else { 1 };
    text.len().saturating_mul(factor)
}

/// The item at a position counted from 1, or from -1 at the end; fractions are rounded down.
fn item_at(items: &[Value], index: &Value) -> Value {
    let whole = index.as_number().and_then(|index| index.round(0, crate::decimal::Rounding::Floor));
    let index = whole.and_then(crate::Number::to_i64).unwrap_or(0);
    let position = match index {
        1.. => usize::try_from(index - 1).ok(),
        0 => None,
        _ => usize::try_from(index.unsigned_abs()).ok().and_then(|back| items.len().checked_sub(back)),
    };
    position.and_then(|position| items.get(position)).cloned().unwrap_or_default()
}
