//! Cycles that would run for ever without waiting for anything.
//!
//! Looked for are cycles of elements that pass tokens on at once, with at least one manual or undefined task in them. A
//! cycle also runs through a sub-process that can end without waiting. Cycles of gateways alone are accepted: Zeebe
//! accepts them, and models have such paths whose conditions keep them from being taken for ever.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{Behavior, ElementIndex, ExecutableProcess};
use crate::report::Problems;

/// Reports one cycle for each group of elements that reach each other without waiting.
pub(crate) fn check(process: &ExecutableProcess, problems: &mut Problems) {
    let graph = Graph::new(process);
    let component = graph.components();
    let mut reported = vec![false; graph.successors.len()];
    for (index, element) in process.elements.iter().enumerate() {
        let group = component[index];
        if !matches!(element.behavior, Behavior::PassThrough) || reported[group] {
            continue;
        }
        if let Some(cycle) = graph.cycle(index, &component) {
            reported[group] = true;
            let ids: Vec<&str> = cycle
                .into_iter()
                .filter_map(|vertex| process.elements.get(vertex))
                .map(|element| &*element.id)
                .collect();
            problems.add_to_process(
                &process.id,
                format!(
                    "Processes are not allowed to contain a straight-through processing loop: {}. \
                     Put an element that waits, such as a service task, into the loop.",
                    ids.join(" > ")
                ),
            );
        }
    }
}

/// Where a token goes at once. The vertices are the elements and, after them, one exit for each: where a token that ends
/// in a sub-process leaves it.
struct Graph {
    successors: Vec<Vec<usize>>,
}

impl Graph {
    fn new(process: &ExecutableProcess) -> Self {
        let count = process.elements.len();
        let exit = |scope: ElementIndex| count + scope.0 as usize;
        let ends_at_once = ends_at_once(process);
        let mut successors = vec![Vec::new(); 2 * count];
        for (index, element) in process.elements.iter().enumerate() {
            let mut leaving: Vec<usize> =
                element.outgoing.iter().map(|flow| process.flow(*flow).target.0 as usize).collect();
            if leaving.is_empty() {
                leaving.extend(element.flow_scope.map(exit));
            }
            match element.behavior {
                Behavior::Container { none_start_event } => {
                    let start = none_start_event.map(|start| start.0 as usize);
                    successors[index] = start.into_iter().filter(|start| ends_at_once[*start]).collect();
                    // The exit of the process itself leads nowhere.
                    if element.flow_scope.is_some() {
                        successors[count + index] = leaving;
                    }
                }
                Behavior::NoneStartEvent
                | Behavior::NoneEndEvent
                | Behavior::PassThrough
                | Behavior::ExclusiveGateway { .. }
                | Behavior::ParallelGateway => successors[index] = leaving,
                _ => {}
            }
        }
        Self { successors }
    }

    /// The strongly connected component of every vertex (Tarjan's algorithm with an explicit stack).
    fn components(&self) -> Vec<usize> {
        const UNSEEN: usize = usize::MAX;
        let count = self.successors.len();
        let mut order = vec![UNSEEN; count];
        let mut lowest = vec![UNSEEN; count];
        let mut component = vec![UNSEEN; count];
        let mut open = Vec::new();
        let mut path: Vec<(usize, usize)> = Vec::new();
        let mut next_order = 0;
        for root in 0..count {
            if order[root] != UNSEEN {
                continue;
            }
            path.push((root, 0));
            while let Some((vertex, position)) = path.last_mut() {
                let vertex = *vertex;
                if *position == 0 {
                    order[vertex] = next_order;
                    lowest[vertex] = next_order;
                    next_order += 1;
                    open.push(vertex);
                }
                if let Some(&successor) = self.successors[vertex].get(*position) {
                    *position += 1;
                    if order[successor] == UNSEEN {
                        path.push((successor, 0));
                    } else if component[successor] == UNSEEN {
                        lowest[vertex] = lowest[vertex].min(order[successor]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    lowest[*parent] = lowest[*parent].min(lowest[vertex]);
                }
                if lowest[vertex] == order[vertex] {
                    while let Some(member) = open.pop() {
                        component[member] = vertex;
                        if member == vertex {
                            break;
                        }
                    }
                }
            }
        }
        component
    }

    /// The shortest cycle through `start`, first and last vertex being `start`; all of it lies in its component.
    fn cycle(&self, start: usize, component: &[usize]) -> Option<Vec<usize>> {
        let mut reached_from = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(vertex) = queue.pop_front() {
            for &successor in &self.successors[vertex] {
                if successor == start {
                    let mut cycle = vec![start, vertex];
                    while let Some(&previous) = reached_from.get(cycle.last()?) {
                        cycle.push(previous);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if component[successor] == component[start] && !reached_from.contains_key(&successor) {
                    reached_from.insert(successor, vertex);
                    queue.push_back(successor);
                }
            }
        }
        None
    }
}

/// For every element: whether all tokens that begin there can reach the end of its scope without waiting. Every outgoing
/// flow must get there, at an exclusive gateway one of them. The least solution, found backwards from the ends; so what
/// only runs in circles does not end.
fn ends_at_once(process: &ExecutableProcess) -> Vec<bool> {
    let count = process.elements.len();
    // How many conditions of an element are still open, and whose condition it is.
    let mut open = vec![0_usize; count];
    let mut waiting_for: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (index, element) in process.elements.iter().enumerate() {
        open[index] = match element.behavior {
            Behavior::ExclusiveGateway { .. } => element.outgoing.len().min(1),
            Behavior::Container { none_start_event } => {
                if let Some(start) = none_start_event {
                    waiting_for[start.0 as usize].push(index);
                }
                element.outgoing.len() + 1
            }
            Behavior::NoneStartEvent | Behavior::NoneEndEvent | Behavior::PassThrough | Behavior::ParallelGateway => {
                element.outgoing.len()
            }
            _ => usize::MAX,
        };
        for flow in &element.outgoing {
            waiting_for[process.flow(*flow).target.0 as usize].push(index);
        }
    }
    let mut ended: Vec<usize> = (0..count).filter(|index| open[*index] == 0).collect();
    let mut ends = vec![false; count];
    while let Some(index) = ended.pop() {
        ends[index] = true;
        for &dependent in &waiting_for[index] {
            if open[dependent] > 0 {
                open[dependent] -= 1;
                if open[dependent] == 0 {
                    ended.push(dependent);
                }
            }
        }
    }
    ends
}
