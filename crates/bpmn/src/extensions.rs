//! What stands in `extensionElements`: task definition, headers, mappings and version tag.

use std::collections::HashSet;
use std::sync::Arc;

use feel::{Expression, json};
use roxmltree::Node;

use crate::model::{ElementType, JobDefinition, Mapping, StaticOrExpression};
use crate::report::Problems;
use crate::vocabulary;
use crate::xml::{self, BPMN_NAMESPACE, ZEEBE_NAMESPACE, present};

/// Retries of a job whose task definition does not say how many.
const DEFAULT_RETRIES: &str = "3";
/// Header keys that begin like this are the engine's.
const RESERVED_HEADER_PREFIX: &str = "io.camunda.zeebe:";
/// Words of FEEL that cannot name a variable.
const RESERVED_WORDS: [&str; 11] =
    ["null", "true", "false", "function", "if", "then", "else", "for", "between", "instance", "of"];

/// The extension elements of one BPMN element, each at most once.
pub(crate) struct Extensions<'a, 'input> {
    task_definition: Option<Node<'a, 'input>>,
    task_headers: Option<Node<'a, 'input>>,
    io_mapping: Option<Node<'a, 'input>>,
    version_tag: Option<Node<'a, 'input>>,
    /// Names of the ones that were refused, so that what they stand for is not reported as missing too.
    refused: Vec<&'a str>,
}

impl<'a, 'input> Extensions<'a, 'input> {
    /// Sorts the extension elements of `parent`; those that this version cannot honour are refused by name.
    pub(crate) fn read(parent: Node<'a, 'input>, problems: &mut Problems) -> Self {
        let mut extensions = Self {
            task_definition: None,
            task_headers: None,
            io_mapping: None,
            version_tag: None,
            refused: Vec::new(),
        };
        let containers = parent.children().filter(|node| xml::is_bpmn(*node, "extensionElements"));
        for node in containers.flat_map(|container| container.children()) {
            if !xml::is_in(node, ZEEBE_NAMESPACE) {
                continue;
            }
            let name = node.tag_name().name();
            let place = match name {
                "taskDefinition" => &mut extensions.task_definition,
                "taskHeaders" => &mut extensions.task_headers,
                "ioMapping" => &mut extensions.io_mapping,
                "versionTag" => &mut extensions.version_tag,
                _ if vocabulary::is_ignored_extension(name, parent.tag_name().name()) => continue,
                _ => {
                    extensions.refused.push(name);
                    problems.add(
                        parent,
                        format!(
                            "The extension element 'zeebe:{name}' is currently not supported by this version at this place. \
                             Remove it, or deploy this process to a version that supports it."
                        ),
                    );
                    continue;
                }
            };
            if place.is_some() {
                problems.add(
                    parent,
                    format!(
                        "Must have exactly one 'zeebe:{name}' extension element when exists, but there are several. \
                         Keep one and remove the others."
                    ),
                );
            }
            *place = Some(node);
        }
        extensions
    }

    /// The job of a task of `element_type`; `None` after a problem.
    pub(crate) fn job_definition(
        &self,
        task: Node,
        element_type: ElementType,
        problems: &mut Problems,
    ) -> Option<JobDefinition> {
        let headers = self.headers(problems);
        let Some(node) = self.task_definition else {
            match vocabulary::alternative_to_task_definition(element_type) {
                Some(alternative) if self.refused.contains(&alternative) => {}
                Some(alternative) => problems.add(
                    task,
                    format!(
                        "Must have either one 'zeebe:{alternative}' or one 'zeebe:taskDefinition' extension element. \
                         This version executes it with 'zeebe:taskDefinition': set its type to the type of the job worker."
                    ),
                ),
                None => problems.add(
                    task,
                    "Must have exactly one 'zeebe:taskDefinition' extension element. Set its type to the type of the job worker.",
                ),
            }
            return None;
        };
        let job_type = job_type(node, problems);
        let retries = retries(node, problems);
        Some(JobDefinition { job_type: job_type?, retries: retries?, headers: headers? })
    }

    /// The headers as one JSON object. Headers without a key or a value are left out, as in Zeebe.
    fn headers(&self, problems: &mut Problems) -> Option<Arc<str>> {
        let Some(container) = self.task_headers else {
            return Some(Arc::from("{}"));
        };
        let mut keys = HashSet::new();
        let mut headers = String::from("{");
        let mut valid = true;
        for header in zeebe_children(container, "header") {
            let Some(key) = present(header, "key") else {
                continue;
            };
            if key.starts_with(RESERVED_HEADER_PREFIX) {
                valid = false;
                problems.add(
                    container,
                    format!(
                        "Attribute 'key' contains '{key}', but header keys starting with '{RESERVED_HEADER_PREFIX}' are \
                         reserved for internal use. Choose another key."
                    ),
                );
            } else if !keys.insert(key) {
                valid = false;
                problems.add(
                    container,
                    format!("Headers contain duplicate entries for key '{key}'. Keep one and remove the others."),
                );
            } else if let Some(value) = present(header, "value") {
                if headers.len() > 1 {
                    headers.push(',');
                }
                json::write_string(key, &mut headers);
                headers.push(':');
                json::write_string(value, &mut headers);
            }
        }
        headers.push('}');
        valid.then(|| Arc::from(headers))
    }

    /// Input and output mappings, both checked; the caller keeps those that take effect.
    pub(crate) fn mappings(&self, problems: &mut Problems) -> (Vec<Mapping>, Vec<Mapping>) {
        let Some(container) = self.io_mapping else {
            return (Vec::new(), Vec::new());
        };
        let inputs = zeebe_children(container, "input").filter_map(|node| input_mapping(node, problems)).collect();
        let outputs = zeebe_children(container, "output").filter_map(|node| output_mapping(node, problems)).collect();
        (inputs, outputs)
    }

    /// The version tag of a process.
    pub(crate) fn version_tag(&self) -> Option<Arc<str>> {
        present(self.version_tag?, "value").map(Arc::from)
    }
}

fn zeebe_children<'a, 'input>(parent: Node<'a, 'input>, name: &'static str) -> impl Iterator<Item = Node<'a, 'input>> {
    parent.children().filter(move |node| xml::is_in(*node, ZEEBE_NAMESPACE) && node.tag_name().name() == name)
}

fn job_type(task_definition: Node, problems: &mut Problems) -> Option<StaticOrExpression> {
    let text = task_definition.attribute("type").unwrap_or_default();
    if text.trim().is_empty() {
        problems.add(
            task_definition,
            "Expected expression but not found. Attribute 'type' must be present and not empty: \
             set it to the type of the job worker, or to an expression that starts with '='.",
        );
        return None;
    }
    static_or_expression(task_definition, text, problems)
}

fn retries(task_definition: Node, problems: &mut Problems) -> Option<StaticOrExpression> {
    let text = present(task_definition, "retries").unwrap_or(DEFAULT_RETRIES);
    let retries = static_or_expression(task_definition, text, problems)?;
    if let StaticOrExpression::Static(text) = &retries
        && text.parse::<i32>().is_err()
    {
        problems.add(
            task_definition,
            format!(
                "Attribute 'retries' must be a whole number from {} to {} or an expression that starts with '=', but is '{text}'.",
                i32::MIN,
                i32::MAX
            ),
        );
        return None;
    }
    Some(retries)
}

fn input_mapping(node: Node, problems: &mut Problems) -> Option<Mapping> {
    let target = target_path(node, problems);
    let source = match present(node, "source") {
        Some(text) => static_or_expression(node, text, problems),
        // Zeebe maps null when there is no source.
        None => {
            let null = Expression::parse("null").expect("the literal null is an expression");
            Some(StaticOrExpression::Expression(null))
        }
    };
    Some(Mapping { source: source?, target: target? })
}

fn output_mapping(node: Node, problems: &mut Problems) -> Option<Mapping> {
    let target = target_path(node, problems);
    let source = required_expression(node, node.attribute("source").unwrap_or_default(), problems);
    Some(Mapping { source: StaticOrExpression::Expression(source?), target: target? })
}

fn target_path(node: Node, problems: &mut Problems) -> Option<Vec<Arc<str>>> {
    let Some(path) = present(node, "target") else {
        problems.add(
            node,
            "Expected path expression but not found. Set the attribute 'target' to the name of the variable to write.",
        );
        return None;
    };
    if !path.split('.').all(is_variable_name) {
        problems.add(
            node,
            format!(
                "Expected path expression '{path}' but doesn't match the pattern \
                 '[a-zA-Z_][a-zA-Z0-9_]*(\\.[a-zA-Z_][a-zA-Z0-9_]*)*'. Use letters, digits and '_', with dots between names."
            ),
        );
        return None;
    }
    if RESERVED_WORDS.contains(&path) {
        problems.add(
            node,
            format!(
                "Expected path expression '{path}' but is one of the reserved words ({}). Choose another variable name.",
                RESERVED_WORDS.join(", ")
            ),
        );
        return None;
    }
    Some(path.split('.').map(Arc::from).collect())
}

fn is_variable_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

fn static_or_expression(node: Node, text: &str, problems: &mut Problems) -> Option<StaticOrExpression> {
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
    match Expression::parse(source) {
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

/// Children of a flow element that stand where they have no meaning or mean what this version does not execute.
pub(crate) fn check_children(parent: Node, problems: &mut Problems) {
    for node in parent.children().filter(Node::is_element) {
        let name = node.tag_name().name();
        if xml::is_in(node, ZEEBE_NAMESPACE) {
            refuse_misplaced_extension(parent, node, problems);
        } else if xml::is_in(node, BPMN_NAMESPACE) && !vocabulary::is_annotation(name) {
            problems.refuse_element_type(node);
        }
    }
}

/// `extension` stands directly in `parent`, where Zeebe would not look for it.
pub(crate) fn refuse_misplaced_extension(parent: Node, extension: Node, problems: &mut Problems) {
    problems.add(
        parent,
        format!(
            "The extension element 'zeebe:{}' must stand inside 'extensionElements'. Move it there.",
            extension.tag_name().name()
        ),
    );
}
