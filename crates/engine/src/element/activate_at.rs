//! An element begins where no flow leads to it: at the creation of an instance or by its modification. Those of its
//! flow scopes that are not there yet begin first.

use std::collections::BTreeMap;
use std::sync::Arc;

use bpmn::model::{Behavior, Element, ElementIndex, ExecutableProcess, PROCESS};
use protocol::{BpmnElementType, Command, Key, Payload, ProcessInstanceIntent, ProcessInstanceValue, Rejection, Text};

use super::activate;
use crate::event;
use crate::execution::step::Step;
use crate::execution::token::{Token, value_of};
use crate::execution::{Execution, Failure, Outcome};
use crate::state::{ElementInstance, Lifecycle, State};
use crate::variable::document::{self, Entry};

/// Elements that begin together in one instance.
pub(crate) struct Activations<'a> {
    /// The value of the process itself, which need not have begun.
    pub instance: &'a Arc<ProcessInstanceValue>,
    pub process: &'a Arc<ExecutableProcess>,
    /// What was found of flow scopes, by (element, enclosing instance).
    found: BTreeMap<(ElementIndex, Key), Found>,
    /// What begins once its flow scopes have begun, in order.
    targets: Vec<(Key, Arc<ProcessInstanceValue>)>,
}

/// The living instances of a flow scope.
#[derive(Clone, Copy)]
enum Found {
    None,
    One(Key),
    Several,
}

/// Which element begins, where, and with which variables.
pub(crate) struct ActivateInstruction<'a> {
    pub element: ElementIndex,
    /// The flow scope in which it begins, or one that encloses it; none to take the only one. It lives in the instance, and
    /// its element encloses the one that begins.
    pub ancestor: Key,
    pub variables: &'a [ScopeVariables],
}

/// Variables of a scope that is looked through or begun on the way.
pub(crate) struct ScopeVariables {
    /// BPMN id of the scope, or of the element that begins; empty for the process.
    pub element_id: Text,
    pub entries: Vec<Entry>,
}

/// Why an element cannot begin.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// A flow scope has several instances, and none was chosen.
    SeveralInstances { scope_id: Arc<str> },
    /// A flow scope that would have to begin is a multi-instance activity.
    MultiInstance { scope_id: Arc<str> },
    /// A flow scope lives, but nothing can begin in it.
    NotActive { scope_id: Arc<str>, key: Key, reason: &'static str },
    /// What waits in a new flow scope cannot be opened.
    Subscription { scope_id: Arc<str>, message: String },
    /// A broken invariant.
    Failure(Failure),
}

impl From<Failure> for Obstacle {
    fn from(failure: Failure) -> Self {
        Obstacle::Failure(failure)
    }
}

impl Obstacle {
    /// The refusal of the command; `instructions` names it and those of its instructions that begin something.
    pub fn refuse(self, instructions: &str) -> Failure {
        let rejection = match self {
            Obstacle::Failure(failure) => return failure,
            Obstacle::SeveralInstances { scope_id } => Rejection::invalid_argument(format!(
                "{instructions} for an element that has a flow scope with more than one active instance: '{scope_id}'. Name \
                 the ancestor element instance key in which the element is to be activated."
            )),
            Obstacle::MultiInstance { scope_id } => Rejection::invalid_argument(format!(
                "{instructions} that would result in the activation of multi-instance element '{scope_id}', which is \
                 currently unsupported; choose a living instance of it as the ancestor."
            )),
            Obstacle::NotActive { scope_id, key, reason } => Rejection::invalid_state(format!(
                "{instructions} for an element whose flow scope '{scope_id}' with key '{key}' cannot take it: {reason}."
            )),
            Obstacle::Subscription { scope_id, message } => Rejection::invalid_argument(format!(
                "{instructions} for which something has to wait in flow scope '{scope_id}'. Expected to subscribe to catch \
                 event(s) of '{scope_id}', but that failed: {message}"
            )),
        };
        rejection.into()
    }
}

impl<'a> Activations<'a> {
    pub fn new(instance: &'a Arc<ProcessInstanceValue>, process: &'a Arc<ExecutableProcess>) -> Self {
        Activations { instance, process, found: BTreeMap::new(), targets: Vec::new() }
    }

    /// Begins the flow scopes of an element and sets its variables. Returns these scopes, outermost first. The element
    /// itself begins with [`Activations::begin_targets`].
    pub fn begin_scopes(
        &mut self,
        execution: &mut Execution<'_>,
        instruction: &ActivateInstruction<'_>,
    ) -> Result<Vec<Key>, Obstacle> {
        let chosen = chosen_scopes(execution, instruction.ancestor);
        let mut scopes = Vec::new();
        let mut enclosing = Key::NONE;
        for scope in scopes_of(self.process, instruction.element) {
            enclosing = match self.find_scope(execution, scope, enclosing, &chosen)? {
                Some(key) => {
                    self.check_open(execution, scope, key)?;
                    self.set_variables(execution, instruction, scope, key);
                    key
                }
                None => self.begin_scope(execution, instruction, scope, enclosing)?,
            };
            scopes.push(enclosing);
        }
        let key = execution.state.next_key();
        let value = value_of(self.process, instruction.element, enclosing, self.instance, true);
        for entries in self.variables_of(instruction, instruction.element) {
            document::set_in(execution, &value, key, entries);
        }
        self.targets.push((key, Arc::new(value)));
        Ok(scopes)
    }

    /// As on the reference, each element takes a token that waits at a parallel join of its scope, if there is one: the
    /// token counts no longer for the end of the scope. Nothing else would ever end a scope whose token was moved past the
    /// join. Returns the scope of each such token.
    pub fn scopes_that_pass_on_tokens(&self, execution: &Execution<'_>) -> Vec<Key> {
        let mut left: BTreeMap<Key, u32> = BTreeMap::new();
        let takes_none = |value: &ProcessInstanceValue| {
            matches!(value.bpmn_element_type, BpmnElementType::StartEvent | BpmnElementType::EventSubProcess)
        };
        let takes_one = |scope: &Key| {
            let left = left.entry(*scope).or_insert_with(|| self.tokens_to_pass_on(execution, *scope));
            let takes = *left > 0;
            *left = left.saturating_sub(1);
            takes
        };
        let targets = self.targets.iter().filter(|(_, value)| !takes_none(value));
        targets.map(|(_, value)| value.flow_scope_key).filter(takes_one).collect()
    }

    /// How many tokens wait in a scope at parallel joins that lack another one, and were not taken before.
    fn tokens_to_pass_on(&self, execution: &Execution<'_>, scope: Key) -> u32 {
        let Some(instance) = execution.state.element_instance(scope) else { return 0 };
        if instance.tokens <= instance.tokens_passed_on {
            return 0;
        }
        let mut waiting = 0_u32;
        let mut at_gateway: Option<(Arc<str>, u32, usize)> = None;
        let lacks_one = |(id, _, flows): &(Arc<str>, u32, usize)| {
            let gateway = self.process.element_by_id.get(&**id).map(|gateway| self.process.element(*gateway));
            gateway.is_some_and(|gateway| {
                matches!(gateway.behavior, Behavior::ParallelGateway) && *flows < gateway.incoming.len()
            })
        };
        for ((_, id, _), count) in execution.state.tables.waiting_tokens.prefix(&scope.raw()) {
            match &mut at_gateway {
                Some((same, tokens, flows)) if *same == id => {
                    *tokens += *count;
                    *flows += 1;
                }
                before => {
                    waiting += before.take().filter(&lacks_one).map_or(0, |(_, tokens, _)| tokens);
                    *before = Some((id, *count, 1));
                }
            }
        }
        waiting += at_gateway.filter(lacks_one).map_or(0, |(_, tokens, _)| tokens);
        waiting.saturating_sub(instance.tokens_passed_on)
    }

    /// Begins the elements in order. All of them enter their flow scopes in this application, because before that
    /// nothing in the state says that something will begin there; what exceeds the limits of the command is done later.
    pub fn begin_targets(self, execution: &mut Execution<'_>) -> Outcome {
        for (key, value) in self.targets {
            if !execution.is_over_budget() {
                activate::activate(execution, Some(key), value)?;
            } else if let Some(key) = activate::enter(execution, Some(key), value)? {
                execution.steps.push_back(Step::ContinueActivation { key });
            }
        }
        Ok(())
    }

    /// The living instance of a flow scope: inside the chosen one there is none yet.
    fn find_scope(
        &mut self,
        execution: &Execution<'_>,
        scope: ElementIndex,
        enclosing: Key,
        chosen: &[(Key, Arc<ElementInstance>)],
    ) -> Result<Option<Key>, Obstacle> {
        let definition = self.process.element(scope);
        if scope == PROCESS {
            let key = self.instance.process_instance_key;
            return Ok(execution.state.element_instance(key).map(|_| key));
        }
        if !chosen.is_empty() {
            return Ok(chosen.iter().find(|(_, instance)| is_instance(instance, definition)).map(|(key, _)| *key));
        }
        let found = self
            .found
            .entry((scope, enclosing))
            .or_insert_with(|| find_among_children(execution, definition, enclosing));
        match *found {
            Found::None => Ok(None),
            Found::One(key) => Ok(Some(key)),
            Found::Several => Err(Obstacle::SeveralInstances { scope_id: definition.id.clone() }),
        }
    }

    /// Refuses a flow scope in which nothing can begin, although the client may not know that.
    fn check_open(&self, execution: &Execution<'_>, scope: ElementIndex, key: Key) -> Result<(), Obstacle> {
        let Some(instance) = execution.state.element_instance(key) else { return Ok(()) };
        let scope_id = || self.process.element(scope).id.clone();
        let not_active = |reason| Err(Obstacle::NotActive { scope_id: scope_id(), key, reason });
        match instance.lifecycle {
            Lifecycle::Activating => not_active("it has not begun; resolve its incident first"),
            Lifecycle::Activated => {
                let is_being_interrupted = instance.interrupted_by.is_some()
                    && (event::find_trigger(&execution.state, self.process, key).is_some()
                        || has_forgotten_token(&execution.state, key));
                if is_being_interrupted { not_active("an event is interrupting it; try again") } else { Ok(()) }
            }
            Lifecycle::Completing => not_active("it is completing"),
            Lifecycle::Terminating => not_active("it is being terminated"),
        }
    }

    fn begin_scope(
        &mut self,
        execution: &mut Execution<'_>,
        instruction: &ActivateInstruction<'_>,
        scope: ElementIndex,
        enclosing: Key,
    ) -> Result<Key, Obstacle> {
        let definition = self.process.element(scope);
        let is_body =
            |element: ElementIndex| matches!(self.process.element(element).behavior, Behavior::MultiInstanceBody(_));
        if is_body(scope) || definition.flow_scope.is_some_and(is_body) {
            return Err(Obstacle::MultiInstance { scope_id: definition.id.clone() });
        }
        let (key, value) = if scope == PROCESS {
            (self.instance.process_instance_key, (**self.instance).clone())
        } else {
            (execution.state.next_key(), value_of(self.process, scope, enclosing, self.instance, true))
        };
        let value = activating(execution, key, value);
        self.set_variables(execution, instruction, scope, key);
        execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivated, value));
        if let Some(token) = Token::find(execution, key)? {
            event::subscribe(execution, &token).map_err(|problem| Obstacle::Subscription {
                scope_id: definition.id.clone(),
                message: problem.message,
            })?;
        }
        if let Some(found) = self.found.get_mut(&(scope, enclosing)) {
            *found = if let Found::None = found { Found::One(key) } else { Found::Several };
        }
        Ok(key)
    }

    fn set_variables(
        &self,
        execution: &mut Execution<'_>,
        instruction: &ActivateInstruction<'_>,
        element: ElementIndex,
        key: Key,
    ) {
        for entries in self.variables_of(instruction, element) {
            document::set_local(execution, key, entries);
        }
    }

    fn variables_of(
        &self,
        instruction: &ActivateInstruction<'_>,
        element: ElementIndex,
    ) -> impl Iterator<Item = Vec<Entry>> {
        let id = &self.process.element(element).id;
        let is_meant = move |variables: &&ScopeVariables| {
            if variables.element_id.is_empty() { element == PROCESS } else { variables.element_id == **id }
        };
        instruction.variables.iter().filter(is_meant).map(|variables| variables.entries.clone())
    }
}

/// The flow scopes of an element, the process first.
pub(crate) fn scopes_of(process: &ExecutableProcess, element: ElementIndex) -> Vec<ElementIndex> {
    let enclosing = |element: &ElementIndex| process.element(*element).flow_scope;
    let mut scopes: Vec<ElementIndex> = std::iter::successors(enclosing(&element), enclosing).collect();
    scopes.reverse();
    scopes
}

/// The chosen flow scope and its enclosing ones.
fn chosen_scopes(execution: &Execution<'_>, ancestor: Key) -> Vec<(Key, Arc<ElementInstance>)> {
    let find = |key: Key| execution.state.element_instance(key).map(|instance| (key, instance));
    std::iter::successors(find(ancestor), |(_, instance)| find(instance.value.flow_scope_key)).collect()
}

fn is_instance(instance: &ElementInstance, definition: &Element) -> bool {
    instance.value.element_id == *definition.id && instance.value.bpmn_element_type == definition.element_type
}

/// Whether a token that an interruption forgot is still on its way in a scope: an element for which interrupted work has yet
/// to find the scope closed. Were the scope opened before, the token would be taken, which is not there any more.
fn has_forgotten_token(state: &State, scope: Key) -> bool {
    let is_of_scope = |command: &Command| match &command.payload {
        Payload::ProcessInstance(ProcessInstanceIntent::ActivateElement, value) => value.flow_scope_key == scope,
        _ => false,
    };
    state.counters.work_entries > 0 && state.tables.work.iter().any(|(_, row)| row.commands.iter().any(is_of_scope))
}

fn find_among_children(execution: &Execution<'_>, definition: &Element, enclosing: Key) -> Found {
    let tables = &execution.state.tables;
    let children = tables.children.prefix(&enclosing.raw());
    let mut instances = children.map(|((_, child), _)| child).filter(|child| {
        let instance = tables.element_instances.get(child);
        let is_living = |lifecycle| matches!(lifecycle, Lifecycle::Activating | Lifecycle::Activated);
        instance.is_some_and(|instance| is_instance(&instance, definition) && is_living(instance.lifecycle))
    });
    match (instances.next(), instances.next()) {
        (None, _) => Found::None,
        (Some(instance), None) => Found::One(Key::from_raw(instance)),
        (Some(_), Some(_)) => Found::Several,
    }
}

fn activating(execution: &mut Execution<'_>, key: Key, value: ProcessInstanceValue) -> Arc<ProcessInstanceValue> {
    let value = Arc::new(value);
    execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value.clone()));
    value
}
