//! Boxed expressions other than decision tables.

use std::sync::Arc;

use feel::{Context, Function, Scope, Value};

use super::{Evaluator, Failed, Failure, Frame, Outcome};
use crate::model::{Boxed, BoxedContext, BoxedKind, Filter, Invocation, Iteration, Knowledge, Relation, Target};

impl Evaluator<'_> {
    pub(super) fn boxed(&mut self, logic: &Boxed, scope: &dyn Scope) -> Outcome {
        if let BoxedKind::Literal(expression) = &logic.kind {
            return self.expression(expression, scope);
        }
        self.enter()?;
        let value = self.boxed_inner(logic, scope)?;
        self.leave();
        self.shallow(value)
    }

    /// One function per kind, so that this frame, which recursion repeats, stays small.
    fn boxed_inner(&mut self, logic: &Boxed, scope: &dyn Scope) -> Outcome {
        match &logic.kind {
            BoxedKind::Literal(expression) => self.expression(expression, scope),
            BoxedKind::Table(table) => self.table(table, scope, None),
            BoxedKind::Context(context) => self.context(context, scope),
            BoxedKind::Invocation(invocation) => self.invocation(invocation, scope),
            BoxedKind::List(items) => self.list(items, scope),
            BoxedKind::Relation(relation) => self.relation(relation, scope),
            BoxedKind::Function(definition) => self.defined_function(definition, scope),
            BoxedKind::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                match self.boxed(condition, scope)? {
                    Value::Boolean(true) => self.boxed(then, scope),
                    Value::Boolean(false) | Value::Null => self.boxed(otherwise, scope),
                    _ => Ok(Value::Null),
                }
            }
            BoxedKind::Filter(filter) => self.filter(filter, scope),
            BoxedKind::For(iteration) => self.for_each(iteration, scope),
            BoxedKind::Some(iteration) => self.quantified(iteration, true, scope),
            BoxedKind::Every(iteration) => self.quantified(iteration, false, scope),
        }
    }

    #[inline(never)]
    fn context(&mut self, context: &BoxedContext, scope: &dyn Scope) -> Outcome {
        self.allocate_entries(context.entries.len())?;
        let mut frame = Frame::new(scope);
        for (name, item, entry) in &context.entries {
            let value = self.boxed(entry, &frame)?;
            let value = self.conform(value, *item)?;
            frame.entries.put(name.clone(), value);
        }
        match &context.result {
            Some(result) => self.boxed(result, &frame),
            None => Ok(Value::context(frame.entries)),
        }
    }

    #[inline(never)]
    fn list(&mut self, items: &[Boxed], scope: &dyn Scope) -> Outcome {
        self.allocate(items.len())?;
        items.iter().map(|item| self.boxed(item, scope)).collect()
    }

    #[inline(never)]
    fn relation(&mut self, relation: &Relation, scope: &dyn Scope) -> Outcome {
        let mut rows = Vec::new();
        for row in &relation.rows {
            self.allocate(1)?;
            self.allocate_entries(row.len())?;
            let mut context = Context::new();
            for (column, cell) in relation.columns.iter().zip(row) {
                context.put(column.clone(), self.boxed(cell, scope)?);
            }
            rows.push(Value::context(context));
        }
        Ok(Value::list(rows))
    }

    #[inline(never)]
    fn invocation(&mut self, invocation: &Invocation, scope: &dyn Scope) -> Outcome {
        self.allocate_entries(invocation.bindings.len())?;
        let mut arguments = Context::new();
        for (name, binding) in &invocation.bindings {
            arguments.put(name.clone(), self.boxed(binding, scope)?);
        }
        let graph = self.session.graph.clone();
        match &invocation.target {
            Target::Required(Knowledge::Model(index)) => {
                let model = &graph.models[*index as usize];
                let frame = Frame { entries: arguments, around: scope };
                let mut values = Vec::with_capacity(model.parameters.len());
                for name in model.parameters.iter() {
                    values.push(self.argument(name, &frame)?);
                }
                self.model(model, &values, &frame)
            }
            Target::Required(Knowledge::Service(index)) => {
                let service = &graph.services[*index as usize];
                let values: Result<Vec<Value>, Failure> =
                    service.parameters.iter().map(|name| self.argument(name, &arguments)).collect();
                self.service(service, &values?)
            }
            Target::Expression(expression) => match self.expression(expression, scope)? {
                Value::Function(function) => self.called(&function, &arguments),
                other => Err(Failed::message(format!("expected a function to invoke but found '{other}'"))),
            },
        }
    }

    fn argument(&self, name: &str, scope: &dyn Scope) -> Outcome {
        self.lookup(scope, name)?.ok_or_else(|| Failed::message(format!("no parameter found with name '{name}'")))
    }

    fn called(&mut self, function: &Arc<Function>, arguments: &Context) -> Outcome {
        let values: Result<Vec<Value>, Failure> =
            function.parameters().iter().map(|name| self.argument(name, arguments)).collect();
        let evaluation = function.call(&values?, self.environment, self.budget);
        let evaluation = self.take(evaluation)?;
        self.warn(evaluation.warnings);
        Ok(evaluation.value)
    }

    /// The items of a list; any other value is the only item, and null has none.
    fn items(&mut self, list: &Boxed, scope: &dyn Scope) -> Result<Option<Vec<Value>>, Failure> {
        Ok(match self.boxed(list, scope)? {
            Value::List(items) => {
                self.allocate(items.len())?;
                Some(items.to_vec())
            }
            Value::Null => None,
            other => Some(vec![other]),
        })
    }

    #[inline(never)]
    fn filter(&mut self, filter: &Filter, scope: &dyn Scope) -> Outcome {
        match self.items(&filter.list, scope)? {
            Some(items) => self.filtered(filter, items, scope),
            None => Ok(Value::Null),
        }
    }

    /// Apart from the list, so that lists nested in lists do not repeat this frame.
    #[inline(never)]
    fn filtered(&mut self, filter: &Filter, items: Vec<Value>, scope: &dyn Scope) -> Outcome {
        let mut kept = Vec::new();
        for item in items {
            self.allocate_entries(1)?;
            let mut frame = Frame::new(scope);
            frame.entries.put(Arc::from("item"), item.clone());
            if let Value::Context(context) = &item {
                self.allocate_entries(context.entries().len())?;
                for (name, value) in context.entries() {
                    frame.entries.put(name.clone(), value.clone());
                }
            }
            match self.boxed(&filter.condition, &frame)? {
                Value::Boolean(true) => kept.push(item),
                Value::Boolean(false) | Value::Null => {}
                // What is no condition selects nothing.
                _ => return Ok(Value::Null),
            }
        }
        Ok(Value::list(kept))
    }

    #[inline(never)]
    fn for_each(&mut self, iteration: &Iteration, scope: &dyn Scope) -> Outcome {
        match self.items(&iteration.list, scope)? {
            Some(items) => self.for_items(iteration, items, scope),
            None => Ok(Value::Null),
        }
    }

    #[inline(never)]
    fn for_items(&mut self, iteration: &Iteration, items: Vec<Value>, scope: &dyn Scope) -> Outcome {
        let mut results = Vec::with_capacity(items.len());
        for item in items {
            self.allocate_entries(1)?;
            let mut frame = Frame::new(scope);
            frame.entries.put(iteration.variable.clone(), item);
            results.push(self.boxed(&iteration.body, &frame)?);
        }
        Ok(Value::list(results))
    }

    /// `some` is decided by true, `every` by false; null leaves it unknown, and what is no condition decides nothing.
    #[inline(never)]
    fn quantified(&mut self, iteration: &Iteration, deciding: bool, scope: &dyn Scope) -> Outcome {
        match self.items(&iteration.list, scope)? {
            Some(items) => self.decided(iteration, deciding, items, scope),
            None => Ok(Value::Null),
        }
    }

    #[inline(never)]
    fn decided(&mut self, iteration: &Iteration, deciding: bool, items: Vec<Value>, scope: &dyn Scope) -> Outcome {
        let mut is_unknown = false;
        for item in items {
            self.allocate_entries(1)?;
            let mut frame = Frame::new(scope);
            frame.entries.put(iteration.variable.clone(), item);
            match self.boxed(&iteration.body, &frame)? {
                Value::Boolean(found) if found == deciding => return Ok(Value::Boolean(deciding)),
                Value::Boolean(_) => {}
                Value::Null => is_unknown = true,
                _ => return Ok(Value::Null),
            }
        }
        Ok(if is_unknown { Value::Null } else { Value::Boolean(!deciding) })
    }
}
