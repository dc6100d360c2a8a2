//! The content of `extensionElements`: task definition, headers, mappings, called element and the like.

use std::collections::HashSet;
use std::sync::Arc;

use feel::{Expression, json};
use roxmltree::Node;

use crate::bindings::binding;
use crate::expressions::{required_expression, static_or_expression};
use crate::linked_resources::{self, LINKED_RESOURCES_HEADER};
use crate::model::{CalledDecision, ElementType, JobDefinition, Mapping, Script, StaticOrExpression};
use crate::names;
use crate::report::Problems;
use crate::vocabulary;
use crate::xml::{self, BPMN_NAMESPACE, ZEEBE_NAMESPACE, present};

/// The most input mappings of an element, and the most output mappings: each sees all before it.
const MAXIMUM_MAPPINGS: usize = 5_000;
/// Retries of a job whose task definition does not say how many.
const DEFAULT_RETRIES: &str = "3";
/// Header keys with this prefix belong to the engine.
const RESERVED_HEADER_PREFIX: &str = "io.camunda.zeebe:";
/// Words of FEEL that cannot name a variable.
const RESERVED_WORDS: [&str; 11] =
    ["null", "true", "false", "function", "if", "then", "else", "for", "between", "instance", "of"];

/// The extension elements of one BPMN element, each at most once.
#[derive(Default)]
pub(crate) struct Extensions<'a, 'input> {
    task_definition: Option<Node<'a, 'input>>,
    task_headers: Option<Node<'a, 'input>>,
    io_mapping: Option<Node<'a, 'input>>,
    version_tag: Option<Node<'a, 'input>>,
    /// Of a process or flow node.
    pub(crate) execution_listeners: Option<Node<'a, 'input>>,
    /// Of a user task.
    pub(crate) user_task: Option<Node<'a, 'input>>,
    pub(crate) form_definition: Option<Node<'a, 'input>>,
    pub(crate) assignment_definition: Option<Node<'a, 'input>>,
    pub(crate) task_schedule: Option<Node<'a, 'input>>,
    pub(crate) priority_definition: Option<Node<'a, 'input>>,
    pub(crate) task_listeners: Option<Node<'a, 'input>>,
    /// Of a service task.
    linked_resources: Option<Node<'a, 'input>>,
    /// Of a script task.
    script: Option<Node<'a, 'input>>,
    /// Of a business rule task.
    called_decision: Option<Node<'a, 'input>>,
    /// Of an ad-hoc sub-process.
    pub(crate) ad_hoc: Option<Node<'a, 'input>>,
    /// Of a call activity.
    pub(crate) called_element: Option<Node<'a, 'input>>,
    /// Of a message.
    pub(crate) subscription: Option<Node<'a, 'input>>,
    /// Of `conditionalEventDefinition`.
    pub(crate) conditional_filter: Option<Node<'a, 'input>>,
    /// Of `multiInstanceLoopCharacteristics`.
    pub(crate) loop_characteristics: Option<Node<'a, 'input>>,
    /// Names of the refused ones, so that their content is not reported as missing too.
    refused: Vec<&'a str>,
}

impl<'a, 'input> Extensions<'a, 'input> {
    /// Sorts the extension elements of `parent`; those that this version cannot honour are refused by name.
    pub(crate) fn read(parent: Node<'a, 'input>, problems: &mut Problems) -> Self {
        let mut extensions = Self::default();
        let parent_name = parent.tag_name().name();
        let containers = parent.children().filter(|node| xml::is_bpmn(*node, "extensionElements"));
        for node in containers.flat_map(|container| container.children()) {
            if !xml::is_in(node, ZEEBE_NAMESPACE) {
                continue;
            }
            let name = node.tag_name().name();
            let Some(place) = extensions.place(name, parent_name) else {
                if !vocabulary::is_ignored_extension(name, parent_name) {
                    extensions.refused.push(name);
                    problems.add_for_new(
                        parent,
                        format!(
                            "The extension element 'zeebe:{name}' is currently not supported by this version at this place. \
                             Remove it."
                        ),
                    );
                }
                continue;
            };
            if place.replace(node).is_some() {
                problems.add_for_new(
                    parent,
                    format!(
                        "Must have exactly one 'zeebe:{name}' extension element when exists, but there are several. \
                         Keep one and remove the others."
                    ),
                );
            }
        }
        extensions
    }

    /// Where the extension element `name` of a `parent` is kept, if it has a meaning there.
    fn place(&mut self, name: &str, parent: &str) -> Option<&mut Option<Node<'a, 'input>>> {
        match (name, parent) {
            ("taskDefinition", _) => Some(&mut self.task_definition),
            ("taskHeaders", _) => Some(&mut self.task_headers),
            ("ioMapping", _) => Some(&mut self.io_mapping),
            ("versionTag", _) => Some(&mut self.version_tag),
            ("executionListeners", parent) if vocabulary::may_have_listeners(parent) => {
                Some(&mut self.execution_listeners)
            }
            ("userTask", "userTask") => Some(&mut self.user_task),
            ("formDefinition", "userTask") => Some(&mut self.form_definition),
            ("assignmentDefinition", "userTask") => Some(&mut self.assignment_definition),
            ("taskSchedule", "userTask") => Some(&mut self.task_schedule),
            ("priorityDefinition", "userTask") => Some(&mut self.priority_definition),
            ("taskListeners", "userTask") => Some(&mut self.task_listeners),
            ("linkedResources", "serviceTask") => Some(&mut self.linked_resources),
            ("script", "scriptTask") => Some(&mut self.script),
            ("calledDecision", "businessRuleTask") => Some(&mut self.called_decision),
            ("adHoc", "adHocSubProcess") => Some(&mut self.ad_hoc),
            ("calledElement", "callActivity") => Some(&mut self.called_element),
            ("subscription", "message") => Some(&mut self.subscription),
            ("conditionalFilter", "conditionalEventDefinition") => Some(&mut self.conditional_filter),
            ("loopCharacteristics", "multiInstanceLoopCharacteristics") => Some(&mut self.loop_characteristics),
            _ => None,
        }
    }

    pub(crate) fn has_task_definition(&self) -> bool {
        self.task_definition.is_some()
    }

    /// Whether the extension element `name` is there and was reported as not supported.
    fn has_refused(&self, name: &str, problems: &Problems) -> bool {
        self.refused.contains(&name) && !problems.is_deployed()
    }

    /// The job of a task or message event of `element_type`; `None` after a problem. `other` are the extension elements of
    /// its event definition, where the alternative to a task definition may be.
    pub(crate) fn job_definition(
        &self,
        task: Node,
        element_type: ElementType,
        other: &Extensions,
        problems: &mut Problems,
    ) -> Option<JobDefinition> {
        let links = self.linked_resources.is_some_and(linked_resources::has_any);
        let headers = self.headers_without(links.then_some(LINKED_RESOURCES_HEADER), problems);
        let Some(node) = self.task_definition else {
            match vocabulary::alternative_to_task_definition(element_type) {
                Some((alternative, _))
                    if self.has_refused(alternative, problems) || other.has_refused(alternative, problems) => {}
                Some((alternative, hint)) => problems.add(
                    task,
                    format!("Must have either one 'zeebe:{alternative}' or one 'zeebe:taskDefinition' extension element. {hint}"),
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
        let linked_resources = match self.linked_resources {
            Some(container) => linked_resources::read(container, problems),
            None => Some(Vec::new()),
        };
        Some(JobDefinition {
            job_type: job_type?,
            retries: retries?,
            headers: headers?,
            linked_resources: linked_resources?,
        })
    }

    /// The job of an element that need not have one; within, `None` after a problem.
    pub(crate) fn optional_job_definition(&self, problems: &mut Problems) -> Option<Option<JobDefinition>> {
        let node = self.task_definition?;
        let (headers, job_type, retries) = (self.headers(problems), job_type(node, problems), retries(node, problems));
        Some(headers.zip(job_type).zip(retries).map(|((headers, job_type), retries)| JobDefinition {
            job_type,
            retries,
            headers,
            linked_resources: Vec::new(),
        }))
    }

    /// What a script task does, if it has a script; within, `None` after a problem.
    pub(crate) fn script(&self, task: Node, problems: &mut Problems) -> Option<Option<Script>> {
        let node = self.script?;
        self.check_sole(task, "script", problems);
        let expression = required_text(
            node,
            "expression",
            "Set it to an expression that starts with '=' and gives the result.",
            problems,
        );
        let expression = expression.and_then(|text| required_expression(node, text, problems));
        let result_variable = result_variable(node, problems);
        Some(
            expression.zip(result_variable).map(|(expression, result_variable)| Script { expression, result_variable }),
        )
    }

    /// What a business rule task evaluates, if it calls a decision; within, `None` after a problem.
    pub(crate) fn called_decision(&self, task: Node, problems: &mut Problems) -> Option<Option<CalledDecision>> {
        let node = self.called_decision?;
        self.check_sole(task, "calledDecision", problems);
        let binding = binding(node, problems);
        let hint = "Set it to the id of the decision, or to an expression that starts with '='.";
        let decision_id = required_text(node, "decisionId", hint, problems);
        let decision_id = decision_id.and_then(|text| static_or_expression(node, text, problems));
        decision_id.iter().for_each(|id| names::check_static(node, "decisionId", id, problems));
        let result_variable = result_variable(node, problems);
        let parts = decision_id.zip(binding).zip(result_variable);
        Some(parts.map(|((decision_id, binding), result_variable)| CalledDecision {
            decision_id,
            binding,
            result_variable,
        }))
    }

    /// What the engine does itself is not done by a job worker too.
    fn check_sole(&self, task: Node, name: &str, problems: &mut Problems) {
        if self.task_definition.is_some() {
            problems.add(
                task,
                format!(
                    "Must have either one 'zeebe:{name}' or one 'zeebe:taskDefinition' extension element, but it has both. \
                     Remove one of them."
                ),
            );
        }
    }

    /// The headers as one JSON object. Headers without a key or a value are left out, as in Zeebe.
    pub(crate) fn headers(&self, problems: &mut Problems) -> Option<Arc<str>> {
        self.headers_without(None, problems)
    }

    /// The headers without the one with this key, in whose place another one comes.
    fn headers_without(&self, left_out: Option<&str>, problems: &mut Problems) -> Option<Arc<str>> {
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
            if left_out == Some(key) {
                continue;
            }
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
        let inputs: Vec<_> =
            zeebe_children(container, "input").filter_map(|node| input_mapping(node, problems)).collect();
        let outputs: Vec<_> =
            zeebe_children(container, "output").filter_map(|node| output_mapping(node, problems)).collect();
        let longest = inputs.len().max(outputs.len());
        if longest > MAXIMUM_MAPPINGS {
            problems.add_for_new(
                container,
                format!(
                    "Must have at most {MAXIMUM_MAPPINGS} mappings of a kind, but there are {longest}. Map a context with several \
                     entries at once."
                ),
            );
        }
        (inputs, outputs)
    }

    /// The version tag of a process.
    pub(crate) fn version_tag(&self, problems: &mut Problems) -> Option<Arc<str>> {
        let node = self.version_tag?;
        let version_tag = present(node, "value")?;
        names::check(node, "value", version_tag, problems);
        Some(Arc::from(version_tag))
    }
}

pub(crate) fn zeebe_children<'a, 'input>(
    parent: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    parent.children().filter(move |node| xml::is_in(*node, ZEEBE_NAMESPACE) && node.tag_name().name() == name)
}

/// The text of an attribute that must say something.
pub(crate) fn required_text<'a>(
    node: Node<'a, '_>,
    name: &str,
    hint: &str,
    problems: &mut Problems,
) -> Option<&'a str> {
    let text = node.attribute(name).filter(|text| !text.trim().is_empty());
    if text.is_none() {
        problems.add(node, format!("Attribute '{name}' must be present and not empty. {hint}"));
    }
    text
}

fn result_variable(node: Node, problems: &mut Problems) -> Option<Arc<str>> {
    let hint = "Set it to the name of the variable that the result becomes.";
    let name = required_text(node, "resultVariable", hint, problems)?;
    names::check(node, "resultVariable", name, problems);
    Some(Arc::from(name))
}

pub(crate) fn job_type(task_definition: Node, problems: &mut Problems) -> Option<StaticOrExpression> {
    let text = task_definition.attribute("type").unwrap_or_default();
    if text.trim().is_empty() {
        problems.add(
            task_definition,
            "Expected expression but not found. Attribute 'type' must be present and not empty: \
             set it to the type of the job worker, or to an expression that starts with '='.",
        );
        return None;
    }
    let job_type = static_or_expression(task_definition, text, problems)?;
    names::check_static(task_definition, "type", &job_type, problems);
    Some(job_type)
}

/// A static text need not be a number: as on the reference, that is an incident when the job is made.
pub(crate) fn retries(task_definition: Node, problems: &mut Problems) -> Option<StaticOrExpression> {
    let text = present(task_definition, "retries").unwrap_or(DEFAULT_RETRIES);
    static_or_expression(task_definition, text, problems)
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
    let text = node.attribute("source").unwrap_or_default();
    // Static text is what it says, but there it is a mistake.
    let source = if problems.is_deployed() && !text.is_empty() {
        static_or_expression(node, text, problems)
    } else {
        required_expression(node, text, problems).map(StaticOrExpression::Expression)
    };
    Some(Mapping { source: source?, target: target? })
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
    names::check_target(node, path, problems);
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

/// Children of a flow element that have no meaning there, or one that this version does not execute. Those that `is_read`
/// knows are looked at elsewhere.
pub(crate) fn check_children(parent: Node, is_read: impl Fn(&str) -> bool, problems: &mut Problems) {
    for node in parent.children().filter(Node::is_element) {
        let name = node.tag_name().name();
        if xml::is_in(node, ZEEBE_NAMESPACE) {
            refuse_misplaced_extension(parent, node, problems);
        } else if xml::is_in(node, BPMN_NAMESPACE) && !vocabulary::is_annotation(name) && !is_read(name) {
            problems.refuse_part(node);
        }
    }
}

/// `extension` is directly in `parent`, where Zeebe would not look for it.
pub(crate) fn refuse_misplaced_extension(parent: Node, extension: Node, problems: &mut Problems) {
    problems.add_for_new(
        parent,
        format!(
            "The extension element 'zeebe:{}' must stand inside 'extensionElements'. Move it there.",
            extension.tag_name().name()
        ),
    );
}
