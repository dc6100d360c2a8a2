//! Cycles that would run for ever without waiting for anything.
//!
//! The search finds cycles of elements that pass tokens on at once, with at least one task (undefined, manual, or with a
//! script), call activity or intermediate throw event in them. A cycle also runs through a sub-process or multi-instance
//! activity that can end without waiting, from a link to its catch event, and through a call activity into a process of the
//! same file; so a process that calls itself is found, but not one that continues after a call. Cycles of gateways alone
//! are accepted: Zeebe accepts them, and models have such paths whose conditions keep them from being taken for ever.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::model::{
    Behavior, CalledElement, Element, ElementIndex, ElementType, ExecutableProcess, StaticOrExpression,
};
use crate::report::Problems;

/// Reports one cycle for each group of elements that reach each other without waiting.
pub(crate) fn check(processes: &[ExecutableProcess], problems: &mut Problems) {
    let graph = Graph::new(processes);
    let component = graph.components();
    let mut reported = vec![false; graph.successors.len()];
    for (process, &first) in processes.iter().zip(&graph.first_vertices) {
        for (index, element) in process.elements.iter().enumerate() {
            let start = first + index;
            let group = component[start];
            if !makes_progress(element) || reported[group] {
                continue;
            }
            let Some(cycle) = graph.cycle(start, &component) else {
                continue;
            };
            reported[group] = true;
            let ids: Vec<&str> = cycle.into_iter().filter_map(|vertex| graph.ids[vertex]).collect();
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

/// Whether the element does something, if not much, so that a cycle through it would be work without an end.
fn makes_progress(element: &Element) -> bool {
    matches!(
        element.element_type,
        ElementType::Task
            | ElementType::ManualTask
            | ElementType::ScriptTask
            | ElementType::CallActivity
            | ElementType::IntermediateThrowEvent
    ) && !matches!(element.behavior, Behavior::JobWorker(_))
}

/// Where a token goes at once. The vertices are, for each process, its elements and, after them, one exit for each: where a
/// token that ends in a sub-process leaves it.
struct Graph<'a> {
    successors: Vec<Vec<usize>>,
    /// The BPMN id of a vertex that is an element. A multi-instance body has none: its inner activity has the same.
    ids: Vec<Option<&'a str>>,
    /// Where the vertices of each process begin.
    first_vertices: Vec<usize>,
}

impl<'a> Graph<'a> {
    fn new(processes: &'a [ExecutableProcess]) -> Self {
        let mut graph = Self { successors: Vec::new(), ids: Vec::new(), first_vertices: Vec::new() };
        let mut none_start_events = HashMap::new();
        let mut vertices = 0;
        for process in processes {
            graph.first_vertices.push(vertices);
            if let Some(start) = process.none_start_event() {
                none_start_events.entry(&*process.id).or_insert(vertices + start.0 as usize);
            }
            vertices += 2 * process.elements.len();
        }
        for process in processes {
            graph.add(process, &none_start_events);
        }
        graph
    }

    fn add(&mut self, process: &'a ExecutableProcess, none_start_events: &HashMap<&str, usize>) {
        let first = self.successors.len();
        let count = process.elements.len();
        let vertex = |index: ElementIndex| first + index.0 as usize;
        let exit = |scope: ElementIndex| first + count + scope.0 as usize;
        let ends_at_once = ends_at_once(process);
        let mut exits = vec![Vec::new(); count];
        for (element, exit_of_element) in process.elements.iter().zip(&mut exits) {
            let mut leaving: Vec<usize> =
                element.outgoing.iter().map(|flow| vertex(process.flow(*flow).target)).collect();
            if leaving.is_empty() {
                leaving.extend(element.flow_scope.map(exit));
            }
            let successors = match passage(element) {
                Passage::Waits => Vec::new(),
                Passage::At(target) => vec![vertex(target)],
                Passage::Leaves | Passage::LeavesOneWay => leaving,
                Passage::Through(inner) => {
                    // The exit of the process itself leads nowhere; so does one that is not reached at once.
                    if element.flow_scope.is_some() && inner.is_some_and(|inner| ends_at_once[inner.0 as usize]) {
                        *exit_of_element = leaving;
                    }
                    inner.map(vertex).into_iter().collect()
                }
                Passage::Calls(process_id) => none_start_events.get(process_id).copied().into_iter().collect(),
            };
            self.successors.push(successors);
            let is_body = matches!(element.behavior, Behavior::MultiInstanceBody(_));
            self.ids.push(if is_body { None } else { Some(&element.id) });
        }
        self.successors.append(&mut exits);
        self.ids.resize(self.successors.len(), None);
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

/// How a token gets through an element.
enum Passage<'a> {
    /// It stays until something happens.
    Waits,
    /// It continues at another element of the same scope.
    At(ElementIndex),
    /// It takes every outgoing flow.
    Leaves,
    /// It takes at least one outgoing flow.
    LeavesOneWay,
    /// It starts again inside, and takes every outgoing flow when that has ended.
    Through(Option<ElementIndex>),
    /// It starts again in another process.
    Calls(&'a str),
}

fn passage(element: &Element) -> Passage<'_> {
    match &element.behavior {
        Behavior::Container { none_start_event } => Passage::Through(*none_start_event),
        Behavior::MultiInstanceBody(body) => Passage::Through(Some(body.inner)),
        Behavior::LinkThrowEvent { target } => Passage::At(*target),
        Behavior::CallActivity(CalledElement { process_id: StaticOrExpression::Static(id), .. }) => Passage::Calls(id),
        Behavior::ExclusiveGateway { .. } | Behavior::InclusiveGateway { .. } => Passage::LeavesOneWay,
        Behavior::NoneStartEvent
        | Behavior::NoneEndEvent
        | Behavior::TerminateEndEvent
        | Behavior::PassThrough
        | Behavior::Script(_)
        | Behavior::LinkCatchEvent
        | Behavior::EscalationThrowEvent { .. }
        | Behavior::SignalThrowEvent { .. }
        // When there is nothing to be undone.
        | Behavior::CompensationThrowEvent { .. }
        | Behavior::ParallelGateway => Passage::Leaves,
        // An error leaves its scope in a different way; it is not followed.
        Behavior::ErrorEndEvent { .. }
        | Behavior::CallActivity(_)
        | Behavior::EventSubProcess { .. }
        | Behavior::AdHocSubProcess(_)
        | Behavior::AdHocSubProcessInnerInstance
        | Behavior::StartEvent(_)
        | Behavior::IntermediateCatchEvent(_)
        | Behavior::BoundaryEvent { .. }
        | Behavior::CompensationBoundaryEvent { .. }
        | Behavior::ReceiveTask(_)
        | Behavior::EventBasedGateway { .. }
        | Behavior::JobWorker(_)
        | Behavior::UserTask(_)
        // It does not wait, but the reference takes it for something that does.
        | Behavior::CalledDecision(_) => Passage::Waits,
    }
}

/// For every element: whether all tokens that begin there can reach the end of its scope without waiting. Every outgoing
/// flow must get there, at an exclusive or inclusive gateway one of them. The least solution, found backwards from the
/// ends; so what only runs in circles does not end.
fn ends_at_once(process: &ExecutableProcess) -> Vec<bool> {
    let count = process.elements.len();
    // How many conditions of an element are still open, and whose condition it is.
    let mut open = vec![0_usize; count];
    let mut waiting_for: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (index, element) in process.elements.iter().enumerate() {
        let ways = element.outgoing.len();
        let mut also = None;
        open[index] = match passage(element) {
            Passage::Waits | Passage::Calls(_) => usize::MAX,
            Passage::LeavesOneWay => ways.min(1),
            Passage::Leaves => ways,
            Passage::Through(inner) => {
                also = inner;
                ways + 1
            }
            Passage::At(target) => {
                waiting_for[target.0 as usize].push(index);
                open[index] = 1;
                continue;
            }
        };
        if let Some(inner) = also {
            waiting_for[inner.0 as usize].push(index);
        }
        for flow in &element.outgoing {
            waiting_for[process.flow(*flow).target.0 as usize].push(index);
        }
    }
    let mut ended: Vec<usize> = (0..count).filter(|index| open[*index] == 0).collect();
    let mut ends = vec![false; count];
    while let Some(index) = ended.pop() {
        ends[index] = true;
        for &dependent in &waiting_for[index] {
            // An element that waits has more conditions than could ever be met.
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
