//! Texts in a file that are compiled to expressions, once.

use feel::{Expression, INPUT_NAME, Names, UnaryTests};
use roxmltree::Node;

use crate::report::Problems;
use crate::xml::{expression_text, present};

/// How the language of expressions may be given: by the word or by the namespaces of DMN 1.1 to 1.5.
const FEEL_LANGUAGES: [&str; 7] = [
    "feel",
    "http://www.omg.org/spec/feel/20140401",
    "http://www.omg.org/spec/dmn/20151101/feel",
    "http://www.omg.org/spec/dmn/20180521/feel/",
    "https://www.omg.org/spec/dmn/20191111/feel/",
    "https://www.omg.org/spec/dmn/20211108/feel/",
    "https://www.omg.org/spec/dmn/20230324/feel/",
];

/// Whether the element, or else the file, says that its text is FEEL.
fn check_language(node: Node, problems: &mut Problems) -> bool {
    let root = node.document().root_element();
    let language = present(node, "expressionLanguage").or_else(|| present(root, "expressionLanguage"));
    match language {
        Some(language) if !FEEL_LANGUAGES.contains(&language.to_lowercase().as_str()) => {
            problems.add(
                node,
                format!(
                    "Expression language '{language}' is not supported. Write the expression in FEEL and set 'feel'."
                ),
            );
            false
        }
        _ => true,
    }
}

/// The expression in an element with a child `text`. A problem was added if there is none.
pub(crate) fn expression(node: Node, names: &Names, problems: &mut Problems) -> Option<Expression> {
    if !check_language(node, problems) {
        return None;
    }
    let text = expression_text(node).filter(|text| !text.is_empty());
    let Some(text) = text else {
        let id = present(node, "id").map_or_else(String::new, |id| format!(" '{id}'"));
        problems
            .add(node, format!("The expression{id} must not be empty. Write a FEEL expression, for instance null."));
        return None;
    };
    let parsed = Expression::parse_with(&text, names);
    match parsed.and_then(Expression::unless_objected) {
        Ok(expression) => Some(expression),
        Err(error) => {
            problems.add(node, format!("FEEL expression: {error}"));
            None
        }
    }
}

/// The unary tests in an element with a child `text`; `Ok(None)` where the text is empty, so that every input passes. An
/// error says that a problem was added.
pub(crate) fn unary_tests(node: Node, names: &Names, problems: &mut Problems) -> Result<Option<UnaryTests>, ()> {
    if !check_language(node, problems) {
        return Err(());
    }
    let Some(text) = expression_text(node).filter(|text| !text.is_empty() && text != "-") else {
        return Ok(None);
    };
    let parsed = UnaryTests::parse_with(&text, INPUT_NAME, names);
    match parsed.and_then(UnaryTests::unless_objected) {
        Ok(tests) => Ok(Some(tests)),
        Err(error) => {
            problems.add(node, format!("FEEL unary-tests: {error}"));
            Err(())
        }
    }
}
