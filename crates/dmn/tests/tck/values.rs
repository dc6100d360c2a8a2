//! Values as the kit writes them, and how they are compared.

use std::sync::Arc;

use feel::{Context, Expression, Value};
use roxmltree::Node;

const INSTANCE_NAMESPACE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Numbers are compared to this many decimal places: some results are given as binary fractions.
const TOLERANCE: &str = "0.00000001";

pub(crate) fn elements<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

fn is_nil(node: Node) -> bool {
    node.attribute((INSTANCE_NAMESPACE, "nil")) == Some("true")
}

fn evaluated(text: &str) -> Value {
    Expression::parse(text).ok().and_then(|expression| expression.constant()).unwrap_or_default()
}

/// The value in an element with a child `value`, `list` or `component`s. Null if there is none.
pub(crate) fn value(node: Node) -> Value {
    if let Some(list) = elements(node, "list").next() {
        return if is_nil(list) { Value::Null } else { elements(list, "item").map(value).collect() };
    }
    if let Some(simple) = elements(node, "value").next() {
        return simple_value(simple);
    }
    if elements(node, "component").next().is_none() {
        return Value::Null;
    }
    let mut context = Context::new();
    for component in elements(node, "component") {
        let name = component.attribute("name").unwrap_or_default();
        context.put(Arc::from(name), if is_nil(component) { Value::Null } else { value(component) });
    }
    Value::context(context)
}

fn simple_value(node: Node) -> Value {
    if is_nil(node) {
        return Value::Null;
    }
    let text: String = node.children().filter_map(|child| child.text()).collect();
    let kind = node.attribute((INSTANCE_NAMESPACE, "type")).unwrap_or_default();
    let quoted = || text.trim().replace('"', "\\\"");
    match kind.rsplit(':').next().unwrap_or_default() {
        "decimal" | "double" | "integer" | "int" | "long" | "float" => evaluated(text.trim()),
        "boolean" => Value::Boolean(text.trim() == "true"),
        "date" => evaluated(&format!("date(\"{}\")", quoted())),
        "time" => evaluated(&format!("time(\"{}\")", quoted())),
        "dateTime" => evaluated(&format!("date and time(\"{}\")", quoted())),
        "duration" | "dayTimeDuration" | "yearMonthDuration" => evaluated(&format!("duration(\"{}\")", quoted())),
        _ => Value::string(text),
    }
}

/// Equal, numbers nearly so; contexts have the same entries in any order.
pub(crate) fn same(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Null, Value::Null) => true,
        (Value::Number(expected), Value::Number(found)) => {
            let difference = expected.minus(*found);
            let tolerance = evaluated(TOLERANCE).as_number();
            let distance = difference.map(|number| if number.is_negative() { number.negate() } else { number });
            matches!((distance, tolerance), (Some(distance), Some(tolerance)) if distance <= tolerance)
        }
        (Value::List(expected), Value::List(found)) => {
            expected.len() == found.len() && expected.iter().zip(found.iter()).all(|(left, right)| same(left, right))
        }
        (Value::Context(expected), Value::Context(found)) => {
            let has = |(name, value): &(Arc<str>, Value)| found.get(name).is_some_and(|other| same(value, other));
            expected.entries().len() == found.entries().len() && expected.entries().iter().all(has)
        }
        _ => expected == found,
    }
}
