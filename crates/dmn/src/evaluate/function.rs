//! Business knowledge models, decision services and function definitions as functions.

use std::collections::BTreeSet;
use std::sync::Arc;

use feel::{
    Budget, Context, Environment, Evaluation, EvaluationError, NativeFunction, Scope, Value, Warning, WarningKind,
};

use super::{Evaluator, Failed, Failure, Frame, Outcome, Results, Session};
use crate::model::{DecisionService, Element, FunctionDefinition, Knowledge, KnowledgeModel};

/// A function with the variables that it takes from where it was made.
struct Native {
    session: Arc<Session>,
    body: Body,
    captured: Context,
}

enum Body {
    Knowledge(Knowledge),
    Defined(Arc<FunctionDefinition>),
}

impl NativeFunction for Native {
    fn parameters(&self) -> &[Arc<str>] {
        let graph = &self.session.graph;
        match &self.body {
            Body::Knowledge(Knowledge::Model(index)) => &graph.models[*index as usize].parameters,
            Body::Knowledge(Knowledge::Service(index)) => &graph.services[*index as usize].parameters,
            Body::Defined(definition) => &definition.parameters,
        }
    }

    fn call(
        &self,
        arguments: &[Value],
        environment: &Environment,
        budget: &Budget,
    ) -> Result<Evaluation, EvaluationError> {
        let graph = &self.session.graph;
        let before = (budget.steps_used(), budget.bytes_built());
        let mut evaluator = Evaluator::new(&self.session, environment, budget);
        // After a failure that gives null, the caller continues at its own level.
        let outcome = budget.nested(|| match &self.body {
            Body::Knowledge(Knowledge::Model(index)) => {
                evaluator.model(&graph.models[*index as usize], arguments, &self.captured)
            }
            Body::Knowledge(Knowledge::Service(index)) => {
                evaluator.service(&graph.services[*index as usize], arguments)
            }
            Body::Defined(definition) => evaluator.definition(definition, arguments, &self.captured),
        });
        let value = match outcome {
            Ok(value) => value,
            Err(failure) => match *failure {
                Failed::Limit(error) => return Err(error),
                // Like any function that cannot work with its arguments.
                Failed::Message(message, _) => {
                    let message = format!("Failed to invoke function '{}': {message}", self.name());
                    evaluator.warn([Warning { kind: WarningKind::FunctionInvocationFailure, message }]);
                    Value::Null
                }
            },
        };
        let (steps, memory_bytes) = (budget.steps_used() - before.0, budget.bytes_built() - before.1);
        Ok(Evaluation { value, warnings: evaluator.warnings, steps, memory_bytes })
    }
}

impl Native {
    fn name(&self) -> &str {
        let graph = &self.session.graph;
        match &self.body {
            Body::Knowledge(Knowledge::Model(index)) => &graph.models[*index as usize].name,
            Body::Knowledge(Knowledge::Service(index)) => &graph.services[*index as usize].name,
            Body::Defined(_) => "function",
        }
    }
}

impl Evaluator<'_> {
    /// The name and the function of what a decision or business knowledge model can call.
    pub(super) fn knowledge(&mut self, knowledge: Knowledge, scope: &dyn Scope) -> Result<(Arc<str>, Value), Failure> {
        let graph = self.session.graph.clone();
        let (name, captured) = match knowledge {
            Knowledge::Model(index) => (&graph.models[index as usize].name, self.capture_for_model(index, scope)?),
            Knowledge::Service(index) => (&graph.services[index as usize].name, Context::new()),
        };
        Ok((name.clone(), self.native(Body::Knowledge(knowledge), captured)))
    }

    pub(super) fn defined_function(&mut self, definition: &Arc<FunctionDefinition>, scope: &dyn Scope) -> Outcome {
        let captured = self.capture(&definition.free_names, scope)?;
        Ok(self.native(Body::Defined(definition.clone()), captured))
    }

    fn native(&self, body: Body, captured: Context) -> Value {
        Value::function(Arc::new(Native { session: self.session.clone(), body, captured }))
    }

    /// The values of the names that a business knowledge model takes from around it, and those of all that it can call.
    fn capture_for_model(&mut self, model: u32, scope: &dyn Scope) -> Result<Context, Failure> {
        let graph = self.session.graph.clone();
        let mut captured = Context::new();
        let mut seen = BTreeSet::from([(Arc::as_ptr(&graph), model)]);
        let mut waiting = vec![(graph, model)];
        while let Some((graph, index)) = waiting.pop() {
            let model = &graph.models[index as usize];
            self.allocate_entries(model.free_names.len() + model.knowledge.len() + model.imported.len())?;
            for name in &model.free_names {
                if captured.get(name).is_none()
                    && let Some(value) = self.lookup(scope, name)?
                {
                    captured.put(name.clone(), value);
                }
            }
            let own = model.knowledge.iter().map(|knowledge| (&graph, Element::Knowledge(*knowledge)));
            let imported = model.imported.iter().map(|imported| (&imported.graph, imported.element));
            for (graph, element) in own.chain(imported) {
                match element {
                    Element::Knowledge(Knowledge::Model(required)) if seen.insert((Arc::as_ptr(graph), required)) => {
                        waiting.push((graph.clone(), required));
                    }
                    _ => {}
                }
            }
        }
        Ok(captured)
    }

    /// The values of the names that there are.
    fn capture(&mut self, names: &[Arc<str>], scope: &dyn Scope) -> Result<Context, Failure> {
        self.allocate_entries(names.len())?;
        let mut captured = Context::new();
        for name in names {
            if let Some(value) = self.lookup(scope, name)? {
                captured.put(name.clone(), value);
            }
        }
        Ok(captured)
    }

    /// Calls a business knowledge model with as many arguments as it has parameters.
    pub(super) fn model(&mut self, model: &KnowledgeModel, arguments: &[Value], scope: &dyn Scope) -> Outcome {
        self.enter()?;
        self.allocate_entries(arguments.len())?;
        let mut frame = Frame::new(scope);
        for required in &model.knowledge {
            let (name, function) = self.knowledge(*required, scope)?;
            frame.entries.put(name, function);
        }
        self.imported(&model.imported, &mut frame, &mut Results::default())?;
        for ((name, item), argument) in model.parameters.iter().zip(&model.parameter_types).zip(arguments) {
            frame.entries.put(name.clone(), self.conform(argument.clone(), *item)?);
        }
        let value = self.logic(&model.id, &model.name, model.logic.as_ref(), &frame)?;
        self.leave();
        if let Some(logic) = &model.logic {
            let value = self.conform(value, logic.item)?;
            return self.conform(value, model.result_type);
        }
        Ok(value)
    }

    fn definition(&mut self, definition: &FunctionDefinition, arguments: &[Value], scope: &dyn Scope) -> Outcome {
        self.enter()?;
        self.allocate_entries(arguments.len())?;
        let mut frame = Frame::new(scope);
        for ((name, item), argument) in definition.parameters.iter().zip(&definition.parameter_types).zip(arguments) {
            frame.entries.put(name.clone(), self.conform(argument.clone(), *item)?);
        }
        let value = self.boxed(&definition.body, &frame)?;
        self.leave();
        self.conform(value, definition.body.item)
    }

    /// Evaluates the output decisions of a service. They see its parameters and nothing else.
    pub(super) fn service(&mut self, service: &DecisionService, arguments: &[Value]) -> Outcome {
        self.enter()?;
        self.allocate_entries(arguments.len())?;
        let mut parameters = Context::new();
        let mut results = Results::default();
        let graph = self.session.graph.clone();
        for (position, (name, item)) in service.parameters.iter().zip(&service.parameter_types).enumerate() {
            let value = self.conform(arguments.get(position).cloned().unwrap_or_default(), *item)?;
            // The parameters of the input decisions are the last ones.
            let first_decision = service.parameters.len() - service.input_decisions.len();
            if let Some(decision) = position.checked_sub(first_decision).map(|at| service.input_decisions[at]) {
                results.insert(&graph, decision, value.clone());
            }
            parameters.put(name.clone(), value);
        }
        self.decisions(&service.outputs, &mut results, &parameters)?;
        self.leave();
        let value = match &service.outputs[..] {
            [output] => results.get(&graph, *output).cloned().unwrap_or_default(),
            outputs => {
                let mut context = Context::new();
                for output in outputs {
                    let name = graph.decisions[*output as usize].result_names[0].clone();
                    context.put(name, results.get(&graph, *output).cloned().unwrap_or_default());
                }
                Value::context(context)
            }
        };
        let value = self.shallow(value)?;
        self.conform(value, service.result_type)
    }
}
