//! Boxed expressions, from XML to what is evaluated.

use std::sync::Arc;

use feel::Names;
use roxmltree::Node;

use crate::expressions::expression;
use crate::free_names;
use crate::model::{
    Boxed, BoxedContext, BoxedKind, Filter, FunctionDefinition, Invocation, Iteration, Knowledge, Relation, Target,
};
use crate::report::Problems;
use crate::table::table;
use crate::types::{TypeReference, Types};
use crate::xml::{child, children, expression_text, is_in_dmn, present};

/// Functions with parameters that only they know share the work of this many comparisons of names, beyond which their
/// parameters are recognised in backticks only.
const NAMES_BUDGET: usize = 500_000;

/// What a decision or business knowledge model can call, by name.
pub(crate) type Callable = [(Arc<str>, Knowledge)];

pub(crate) struct Compiler<'a> {
    pub(crate) types: &'a Types,
    /// The names that are recognised everywhere, and those at this place.
    known: Vec<&'a str>,
    names: Names,
    pub(crate) problems: &'a mut Problems,
    names_budget: usize,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(types: &'a Types, known: Vec<&'a str>, names: Names, problems: &'a mut Problems) -> Self {
        Compiler { types, known, names, problems, names_budget: NAMES_BUDGET }
    }

    /// The boxed expression among the children of an element, if there is one.
    pub(crate) fn logic(&mut self, owner: Node, callable: &Callable) -> Option<Boxed> {
        let node = owner.children().find(|child| is_in_dmn(*child) && !is_description(child.tag_name().name()))?;
        self.boxed(node, callable)
    }

    /// Like [`Compiler::logic`], with a problem where there is none.
    fn required(&mut self, owner: Node, callable: &Callable) -> Option<Boxed> {
        if let Some(node) = owner.children().find(|child| is_in_dmn(*child) && !is_description(child.tag_name().name()))
        {
            return self.boxed(node, callable);
        }
        let name = owner.tag_name().name();
        self.problems.add(owner, format!("A '{name}' must contain an expression. Add one."));
        None
    }

    /// The boxed expression in the child of this name, which must be there.
    fn part(&mut self, owner: Node, name: &'static str, callable: &Callable) -> Option<Boxed> {
        match child(owner, name) {
            Some(part) => self.required(part, callable),
            None => {
                let kind = owner.tag_name().name();
                self.problems.add(owner, format!("A '{kind}' must have the part '{name}'. Add it."));
                None
            }
        }
    }

    fn boxed(&mut self, node: Node, callable: &Callable) -> Option<Boxed> {
        let kind = match node.tag_name().name() {
            "literalExpression" => BoxedKind::Literal(expression(node, &self.names, self.problems)?),
            "decisionTable" => BoxedKind::Table(Box::new(table(node, &self.names, self.problems)?)),
            "context" => BoxedKind::Context(Box::new(self.context(node, callable)?)),
            "invocation" => BoxedKind::Invocation(Box::new(self.invocation(node, callable)?)),
            "list" => BoxedKind::List(self.items(node, callable)?),
            "relation" => BoxedKind::Relation(Box::new(self.relation(node, callable)?)),
            "functionDefinition" => {
                let (body, parameters, parameter_types) = self.function(node, callable);
                let body = body?;
                let free_names = free_names::of(&body, &parameters);
                let parameters = parameters.into();
                BoxedKind::Function(Arc::new(FunctionDefinition { parameters, parameter_types, body, free_names }))
            }
            "conditional" => {
                let parts = ["if", "then", "else"].map(|name| self.part(node, name, callable));
                let [condition, then, otherwise] = parts;
                BoxedKind::Conditional(Box::new([condition?, then?, otherwise?]))
            }
            "filter" => {
                let (list, condition) = (self.part(node, "in", callable), self.part(node, "match", callable));
                BoxedKind::Filter(Box::new(Filter { list: list?, condition: condition? }))
            }
            "for" => BoxedKind::For(self.iteration(node, "return", callable)?),
            "some" => BoxedKind::Some(self.iteration(node, "satisfies", callable)?),
            "every" => BoxedKind::Every(self.iteration(node, "satisfies", callable)?),
            name => {
                self.problems.add(
                    node,
                    format!("Expressions of type '{name}' are not supported. Use another kind of expression."),
                );
                return None;
            }
        };
        Some(Boxed { kind, item: self.types.of(node) })
    }

    fn items(&mut self, node: Node, callable: &Callable) -> Option<Vec<Boxed>> {
        let items = node.children().filter(|child| is_in_dmn(*child) && !is_description(child.tag_name().name()));
        // All are compiled, so that all problems are found, before one missing makes the whole missing.
        let items: Vec<Option<Boxed>> = items.map(|item| self.boxed(item, callable)).collect();
        items.into_iter().collect()
    }

    fn context(&mut self, node: Node, callable: &Callable) -> Option<BoxedContext> {
        let nodes: Vec<Node> = children(node, "contextEntry").collect();
        let mut context = BoxedContext { entries: Vec::with_capacity(nodes.len()), result: None };
        let mut complete = true;
        for (position, entry) in nodes.iter().enumerate() {
            let variable = child(*entry, "variable");
            let name = variable.and_then(|variable| present(variable, "name"));
            let value = self.required(*entry, callable);
            match (name, value) {
                (_, None) => complete = false,
                (Some(name), Some(value)) => {
                    let item = variable.map_or(TypeReference::Any, |variable| self.types.of(variable));
                    context.entries.push((Arc::from(name), item, value));
                }
                (None, Some(value)) if position + 1 == nodes.len() => context.result = Some(value),
                (None, Some(_)) => {
                    complete = false;
                    self.problems.add(
                        *entry,
                        "Every context entry but the last one must have a variable with a name. Give it one.",
                    );
                }
            }
        }
        complete.then_some(context)
    }

    fn invocation(&mut self, node: Node, callable: &Callable) -> Option<Invocation> {
        let mut bindings = Vec::new();
        let mut complete = true;
        for binding in children(node, "binding") {
            let name = child(binding, "parameter").and_then(|parameter| present(parameter, "name"));
            if name.is_none() {
                self.problems.add(binding, "A binding must have a parameter with a name. Give it one.");
            }
            let value = binding
                .children()
                .find(|child| is_in_dmn(*child) && !is_description(child.tag_name().name()))
                .map(|value| self.boxed(value, callable));
            match (name, value) {
                (Some(name), Some(Some(value))) => bindings.push((Arc::from(name), value)),
                // A parameter without a value is null.
                (Some(_), None) => {}
                _ => complete = false,
            }
        }
        let target = self.target(node, callable)?;
        complete.then_some(Invocation { target, bindings })
    }

    fn target(&mut self, node: Node, callable: &Callable) -> Option<Target> {
        let called = child(node, "literalExpression");
        let Some(called) = called else {
            self.problems
                .add(node, "An invocation must say what it calls in a literal expression. Add the name of a function.");
            return None;
        };
        let text = expression_text(called).unwrap_or_default();
        let text = text.trim_matches('`');
        match callable.iter().find(|(name, _)| **name == *text) {
            Some((_, knowledge)) => Some(Target::Required(*knowledge)),
            None => expression(called, &self.names, self.problems).map(Target::Expression),
        }
    }

    fn relation(&mut self, node: Node, callable: &Callable) -> Option<Relation> {
        let mut columns: Vec<Arc<str>> = Vec::new();
        let mut complete = true;
        for column in children(node, "column") {
            match present(column, "name") {
                Some(name) => columns.push(Arc::from(name)),
                None => {
                    complete = false;
                    self.problems.add(column, "A column of a relation must have a name. Give it one.");
                }
            }
        }
        let mut rows = Vec::new();
        for row in children(node, "row") {
            let Some(cells) = self.items(row, callable) else {
                complete = false;
                continue;
            };
            if complete && cells.len() != columns.len() {
                let (expected, found) = (columns.len(), cells.len());
                self.problems.add(
                    row,
                    format!(
                        "expected row with '{expected}' elements but found '{found}'. Give every column one expression."
                    ),
                );
            }
            rows.push(cells);
        }
        complete.then_some(Relation { columns, rows })
    }

    fn iteration(&mut self, node: Node, body: &'static str, callable: &Callable) -> Option<Box<Iteration>> {
        let variable = present(node, "iteratorVariable");
        if variable.is_none() {
            let name = node.tag_name().name();
            self.problems
                .add(node, format!("A '{name}' must have the attribute 'iteratorVariable'. Name the variable."));
        }
        let (list, body) = (self.part(node, "in", callable), self.part(node, body, callable));
        Some(Box::new(Iteration { variable: Arc::from(variable?), list: list?, body: body? }))
    }

    /// The body, if there is one, the parameters and their types of a function definition.
    pub(crate) fn function(
        &mut self,
        node: Node,
        callable: &Callable,
    ) -> (Option<Boxed>, Vec<Arc<str>>, Vec<TypeReference>) {
        let (mut parameters, mut parameter_types) = (Vec::new(), Vec::new());
        for parameter in children(node, "formalParameter") {
            match present(parameter, "name") {
                Some(name) => {
                    parameters.push(Arc::from(name));
                    parameter_types.push(self.types.of(parameter));
                }
                None => self.problems.add(parameter, "A parameter must have a name. Give it one."),
            }
        }
        if let Some(kind) = present(node, "kind").filter(|kind| *kind != "FEEL") {
            self.problems.add(
                node,
                format!(
                    "Functions of kind '{kind}' are not supported. Write the function in FEEL, or call a job worker."
                ),
            );
            return (None, parameters, parameter_types);
        }
        let own = self.with_names(&parameters);
        let body = self.logic(node, callable);
        if let Some(known) = own {
            self.names = known;
        }
        (body, parameters, parameter_types)
    }

    /// Makes names known that look like paths, while a function is compiled; returns the names to restore.
    fn with_names(&mut self, parameters: &[Arc<str>]) -> Option<Names> {
        let special: Vec<&str> = parameters.iter().map(|name| &**name).filter(|name| name.contains('.')).collect();
        if special.is_empty() {
            return None;
        }
        self.names_budget = self.names_budget.checked_sub(special.len() + self.known.len())?;
        let extended = self.names.replaced(self.known.iter().copied().chain(special));
        Some(std::mem::replace(&mut self.names, extended))
    }
}

/// Elements next to the expression of a decision, an entry, a row or a part.
fn is_description(name: &str) -> bool {
    !matches!(
        name,
        "literalExpression"
            | "decisionTable"
            | "context"
            | "invocation"
            | "list"
            | "relation"
            | "functionDefinition"
            | "conditional"
            | "filter"
            | "for"
            | "some"
            | "every"
    )
}
