//! Attributes and texts that are FEEL expressions, or may be.

use std::sync::Arc;

use feel::Expression;
use roxmltree::Node;

use crate::model::StaticOrExpression;
use crate::report::Problems;

/// Static text, or an expression if `text` starts with `=`.
pub(crate) fn static_or_expression(node: Node, text: &str, problems: &mut Problems) -> Option<StaticOrExpression> {
    match text.strip_prefix('=') {
        Some(source) => expression(node, source, problems).map(StaticOrExpression::Expression),
        None => Some(StaticOrExpression::Static(Arc::from(text))),
    }
}

/// Compiles `text` where a static value has no meaning.
pub(crate) fn required_expression(node: Node, text: &str, problems: &mut Problems) -> Option<Expression> {
    match text.strip_prefix('=') {
        Some(source) => expression(node, source, problems),
        None if text.is_empty() => expression(node, text, problems),
        None => {
            problems.add(
                node,
                format!(
                    "Expected expression but found static value '{text}'. \
                     An expression must start with '=' (e.g. '={text}')."
                ),
            );
            None
        }
    }
}

/// Compiles `source`, the text of an expression without its `=`.
fn expression(node: Node, source: &str, problems: &mut Problems) -> Option<Expression> {
    if source.trim().is_empty() {
        problems.add(node, "Expected expression but not found. Write a FEEL expression that starts with '='.");
        return None;
    }
    let parsed = if problems.is_deployed() { Expression::parse(source) } else { Expression::parse_strictly(source) };
    match parsed {
        Ok(expression) => Some(expression),
        Err(error) => {
            let feel::ParseError { expression, expected, found, line, column } = error;
            problems.add(
                node,
                format!(
                    "failed to parse expression '{expression}': expected {expected} at line {line}, column {column}, \
                     but found {found}. Correct the FEEL expression."
                ),
            );
            None
        }
    }
}
