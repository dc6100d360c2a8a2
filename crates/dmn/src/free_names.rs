//! The names that the logic of a function takes from around it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Boxed, BoxedKind, DecisionTable, InputTest, RuleResult, Target};

/// The names in the logic that are not parameters. Names of context entries count, though they are mostly found inside.
pub(crate) fn of(logic: &Boxed, parameters: &[Arc<str>]) -> Vec<Arc<str>> {
    let mut names = BTreeSet::new();
    collect(logic, &mut names);
    names.into_iter().filter(|name| !parameters.contains(name)).cloned().collect()
}

fn collect<'a>(logic: &'a Boxed, names: &mut BTreeSet<&'a Arc<str>>) {
    match &logic.kind {
        BoxedKind::Literal(expression) => names.extend(expression.variables()),
        BoxedKind::Table(table) => collect_table(table, names),
        BoxedKind::Context(context) => {
            context.entries.iter().for_each(|(_, _, entry)| collect(entry, names));
            context.result.iter().for_each(|result| collect(result, names));
        }
        BoxedKind::Invocation(invocation) => {
            if let Target::Expression(expression) = &invocation.target {
                names.extend(expression.variables());
            }
            invocation.bindings.iter().for_each(|(_, binding)| collect(binding, names));
        }
        BoxedKind::List(items) => items.iter().for_each(|item| collect(item, names)),
        BoxedKind::Relation(relation) => relation.rows.iter().flatten().for_each(|cell| collect(cell, names)),
        // What it takes from around it was collected when it was compiled.
        BoxedKind::Function(function) => names.extend(&function.free_names),
        BoxedKind::Conditional(parts) => parts.iter().for_each(|part| collect(part, names)),
        BoxedKind::Filter(filter) => {
            [&filter.list, &filter.condition].into_iter().for_each(|part| collect(part, names))
        }
        BoxedKind::For(iteration) | BoxedKind::Some(iteration) | BoxedKind::Every(iteration) => {
            [&iteration.list, &iteration.body].into_iter().for_each(|part| collect(part, names));
        }
    }
}

fn collect_table<'a>(table: &'a DecisionTable, names: &mut BTreeSet<&'a Arc<str>>) {
    table.inputs.iter().for_each(|input| names.extend(input.expression.variables()));
    table.outputs.iter().flat_map(|output| &output.default).for_each(|default| names.extend(default.variables()));
    for rule in &table.rules {
        for test in &rule.tests {
            if let InputTest::Tests(tests) = test {
                names.extend(tests.variables());
            }
        }
        for result in &rule.results {
            if let RuleResult::Expression(expression) = result {
                names.extend(expression.variables());
            }
        }
    }
}
