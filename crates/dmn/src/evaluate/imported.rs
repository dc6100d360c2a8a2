//! Elements of imported models, which are evaluated among the names and types of their own files.

use std::collections::BTreeMap;
use std::sync::Arc;

use feel::{Context, Value};

use super::{Evaluator, Failure, Frame, Results, Session};
use crate::model::{Element, Graph, ImportedElement};

impl Evaluator<'_> {
    /// Puts what is required of imported models into the frame: for each import a context of its name.
    pub(super) fn imported(
        &mut self,
        required: &[ImportedElement],
        frame: &mut Frame,
        results: &mut Results,
    ) -> Result<(), Failure> {
        self.allocate_entries(required.len())?;
        let scope = frame.around;
        let mut imports: BTreeMap<&Arc<str>, Context> = BTreeMap::new();
        for ImportedElement { import, graph, element } in required {
            let context = if import.is_empty() { &mut frame.entries } else { imports.entry(import).or_default() };
            match element {
                Element::Input(index) => {
                    let name = &graph.inputs[*index as usize].name;
                    context.put(name.clone(), self.lookup(scope, name)?.unwrap_or_default());
                }
                Element::Decision(index) => {
                    self.within(graph, |evaluator| evaluator.decisions(&[*index], results, scope))?;
                    let value = results.get(graph, *index).cloned().unwrap_or_default();
                    for name in &graph.decisions[*index as usize].result_names {
                        context.put(name.clone(), value.clone());
                    }
                }
                Element::Knowledge(knowledge) => {
                    let (name, function) = self.within(graph, |evaluator| evaluator.knowledge(*knowledge, scope))?;
                    context.put(name, function);
                }
            }
        }
        for (import, context) in imports {
            frame.entries.put(import.clone(), Value::context(context));
        }
        Ok(())
    }

    /// Evaluates something of another graph; work, warnings and reports count as one with these.
    fn within<T>(
        &mut self,
        graph: &Arc<Graph>,
        run: impl FnOnce(&mut Evaluator) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.enter()?;
        let session = Arc::new(Session { graph: graph.clone(), log: self.session.log.clone() });
        let warnings = std::mem::take(&mut self.warnings);
        let mut inner = Evaluator { session: &session, environment: self.environment, budget: self.budget, warnings };
        let result = run(&mut inner);
        self.warnings = inner.warnings;
        self.leave();
        result
    }
}
