//! Filters.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::access::{may_search, search, shown};
use super::{Evaluator, Failure, Outcome, Variable};
use crate::environment::WarningKind;
use crate::json::{self, Found, Item, Items};
use crate::node::{Filter, Node};
use crate::value::{Context, List, Value};

impl Evaluator<'_> {
    #[inline(never)]
    pub(super) fn filter(&mut self, filter: &Filter) -> Outcome {
        if let Some(kept) = self.filter_text(filter, None)? {
            return Ok(kept);
        }
        let base = self.evaluate(&filter.base)?;
        let is_list = matches!(base, Value::List(_));
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
            self.stack.push(item.duplicate());
            let outcome = self.evaluate(&filter.condition)?;
            self.forget();
            match outcome {
                Value::Boolean(true) => {
                    self.lengthen_list(kept.len())?;
                    kept.push(item.clone());
                }
                // A number is an index, whichever item it was computed for.
                Value::Number(_) => return Ok(item_at(&items, &outcome)),
                Value::Boolean(false) | Value::Null => {}
                // `customer["name"]` is a slip for `customer.name`.
                _ if !is_list => return Ok(self.not_filtered(item)),
                _ => {}
            }
        }
        Ok(Value::list(kept))
    }

    #[cold]
    fn not_filtered(&mut self, value: &Value) -> Value {
        self.warn(WarningKind::InvalidType, || {
            let shown = shown(value);
            format!(
                "Expected list but found '{shown}'. Read an entry of a context as in context.entry, or with get value(context, key)."
            )
        })
    }

    /// The items, or the entries of the items with this name, that a filter keeps of a variable whose text has not been
    /// read yet: only what the condition needs is read of each item, and the rest only of those that are kept. `None` if
    /// this filter does not work so.
    pub(super) fn filter_text(&mut self, filter: &Filter, name: Option<&Arc<str>>) -> Result<Option<Value>, Failure> {
        let (index, path): (usize, &[Arc<str>]) = match &filter.base {
            Node::Variable(index) => (*index as usize, &[]),
            Node::VariablePath(index, path) => (*index as usize, path),
            _ => return Ok(None),
        };
        let Some(entries) = filter.entries.as_ref().filter(|_| !filter.constant_index) else {
            return Ok(None);
        };
        self.load(index);
        let Variable::Text(text, searched) = &mut self.variables[index] else {
            return Ok(None);
        };
        if !may_search(text, *searched) {
            return Ok(None);
        }
        search(self.budget, text, searched)?;
        // The condition may mention the variable, too: it loads it again, as the text is away meanwhile.
        let variable = std::mem::replace(&mut self.variables[index], Variable::Unseen);
        let warnings = self.warnings.len();
        let kept = match &variable {
            Variable::Text(text, _) => self.filter_items(text, path, filter, entries, name),
            _ => Ok(None),
        };
        if let Variable::Unseen = self.variables[index] {
            self.variables[index] = variable;
        }
        // Work with the whole list warns again.
        if let Ok(None) = kept {
            self.warnings.truncate(warnings);
        }
        kept
    }

    fn filter_items(
        &mut self,
        text: &str,
        path: &[Arc<str>],
        filter: &Filter,
        entries: &[Arc<str>],
        name: Option<&Arc<str>>,
    ) -> Result<Option<Value>, Failure> {
        let list = match json::find(text, path) {
            Ok(Found::Member(list)) => list,
            _ => return Ok(None),
        };
        // Texts are valid by contract; one that is not is left to the reader of the whole.
        let Ok(Some(mut items)) = Items::of(list) else {
            return Ok(None);
        };
        let (mut kept, mut scratch) = (Vec::new(), Arc::new(Context::new()));
        let mut members: SmallVec<[Option<Value>; 4]> = smallvec![None; entries.len()];
        loop {
            let budget = self.budget;
            let (item, text) = match budget.building(|room| items.next(entries, &mut members, room))? {
                Ok(Some(Item::Object(text))) => {
                    Arc::make_mut(&mut scratch).refill(entries, &mut members);
                    (Value::Context(scratch), Some(text))
                }
                Ok(Some(Item::Other(value))) => (value, None),
                Ok(None) => break,
                Err(_) => return Ok(None),
            };
            self.spend(1)?;
            self.stack.push(item);
            let outcome = self.evaluate(&filter.condition)?;
            let item = self.stack.pop().unwrap_or_default();
            match outcome {
                Value::Boolean(true) => {
                    self.lengthen_list(kept.len())?;
                    kept.push(text.map_or_else(|| Item::Other(item.duplicate()), Item::Object));
                }
                // An index is one of the whole list.
                Value::Number(_) => return Ok(None),
                _ => {}
            }
            scratch = match item {
                Value::Context(context) => context,
                _ => Arc::new(Context::new()),
            };
        }
        self.allocate_list(kept.len())?;
        let mut values = Vec::with_capacity(kept.len());
        for item in kept {
            values.push(self.kept(&mut items, item, name)?);
        }
        Ok(Some(Value::list(values)))
    }

    /// The item, or its entry of this name.
    fn kept(&mut self, items: &mut Items<'_>, item: Item<'_>, name: Option<&Arc<str>>) -> Outcome {
        let value = match (item, name) {
            (Item::Object(text), Some(name))
                if let Ok(Found::Member(member)) = json::find(text, std::slice::from_ref(name)) =>
            {
                return self.read_item(items, member);
            }
            (Item::Object(text), _) => self.read_item(items, text)?,
            (Item::Other(value), _) => value,
        };
        match name {
            Some(name) => self.member(&value, name),
            None => Ok(value),
        }
    }

    fn read_item(&mut self, items: &mut Items<'_>, text: &str) -> Outcome {
        self.budget.read(text.len())?;
        Ok(self.budget.building(|room| items.read(text, room))?.unwrap_or_default())
    }
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
