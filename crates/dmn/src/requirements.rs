//! No element may need itself: evaluation follows requirements without looking back.

use roxmltree::Node;

use crate::model::{Graph, Knowledge};
use crate::report::Problems;

/// Adds a problem for every cycle of requirements that a search from the first element finds.
pub(crate) fn check_cycles(
    graph: &Graph,
    decisions: &[Node],
    models: &[Node],
    services: &[Node],
    problems: &mut Problems,
) {
    let search = Search { graph, models_from: decisions.len(), services_from: decisions.len() + models.len() };
    let nodes: Vec<Node> = [decisions, models, services].concat();
    let mut states = vec![State::New; nodes.len()];
    for start in 0..nodes.len() {
        if let Some(cycle) = search.cycle_from(start, &mut states) {
            let kind = search.kind(&cycle);
            let names: Vec<&str> =
                cycle.iter().take(20).map(|index| nodes[*index].attribute("name").unwrap_or_default()).collect();
            problems.add(
                nodes[cycle[0]],
                format!(
                    "Invalid DMN model: Cyclic dependencies between {kind} detected. Each of these needs the next one, and \
                     the last one the first: {}. Remove one of the requirements.",
                    names.join(", ")
                ),
            );
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

/// Decisions, business knowledge models and decision services, numbered in this order.
struct Search<'a> {
    graph: &'a Graph,
    models_from: usize,
    services_from: usize,
}

impl Search<'_> {
    fn number(&self, knowledge: Knowledge) -> usize {
        match knowledge {
            Knowledge::Model(index) => self.models_from + index as usize,
            Knowledge::Service(index) => self.services_from + index as usize,
        }
    }

    fn requirements(&self, element: usize) -> Vec<usize> {
        if element < self.models_from {
            let decision = &self.graph.decisions[element];
            let knowledge = decision.knowledge.iter().map(|knowledge| self.number(*knowledge));
            return decision.decisions.iter().map(|index| *index as usize).chain(knowledge).collect();
        }
        if element < self.services_from {
            let model = &self.graph.models[element - self.models_from];
            return model.knowledge.iter().map(|knowledge| self.number(*knowledge)).collect();
        }
        let service = &self.graph.services[element - self.services_from];
        service.outputs.iter().map(|index| *index as usize).collect()
    }

    /// The first cycle that a depth-first search finds, continued where an earlier one ended.
    fn cycle_from(&self, start: usize, states: &mut [State]) -> Option<Vec<usize>> {
        if states[start] != State::New {
            return None;
        }
        let mut cycle = None;
        let mut path = vec![(start, self.requirements(start).into_iter())];
        states[start] = State::Open;
        while let Some((element, rest)) = path.last_mut() {
            let element = *element;
            match rest.next() {
                None => {
                    states[element] = State::Done;
                    path.pop();
                }
                Some(next) if states[next] == State::New => {
                    states[next] = State::Open;
                    path.push((next, self.requirements(next).into_iter()));
                }
                Some(next) if states[next] == State::Open && cycle.is_none() => {
                    let from = path.iter().position(|(known, _)| *known == next).unwrap_or(0);
                    cycle = Some(path[from..].iter().map(|(element, _)| *element).collect());
                }
                Some(_) => {}
            }
        }
        cycle
    }

    fn kind(&self, cycle: &[usize]) -> &'static str {
        if cycle.iter().all(|element| *element < self.models_from) {
            "decisions"
        } else if cycle.iter().all(|element| (self.models_from..self.services_from).contains(element)) {
            "BKMs"
        } else {
            "decisions and what they call"
        }
    }
}
