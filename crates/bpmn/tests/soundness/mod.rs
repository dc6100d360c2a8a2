//! What must hold of every process that is compiled, whatever the rules for new deployments say.

use bpmn::model::{Behavior, Element, ElementIndex, ElementType, ExecutableProcess, FlowIndex, PROCESS};

/// Panics where an invariant of the crate does not hold.
pub fn check(process: &ExecutableProcess) {
    assert_eq!(process.elements[0].element_type, ElementType::Process);
    for (number, element) in (0_u32..).zip(&process.elements) {
        let index = ElementIndex(number);
        let scope = element.flow_scope;
        assert_eq!(scope.is_none(), index == PROCESS);
        assert!(scope.is_none_or(|scope| scope < index), "scopes come before what is inside");
        check_flows(process, index);
        check_behavior(process, index);
        for &event in &element.boundary_events {
            let (Behavior::BoundaryEvent { attached_to, .. } | Behavior::CompensationBoundaryEvent { attached_to, .. }) =
                process.element(event).behavior
            else {
                panic!("'{}' is no boundary event", process.element(event).id);
            };
            assert_eq!(attached_to, index);
        }
        for &sub_process in &element.event_sub_processes {
            assert_eq!(process.element(sub_process).element_type, ElementType::EventSubProcess);
            assert_eq!(process.element(sub_process).flow_scope, Some(index));
        }
    }
    for &start in &process.triggered_start_events {
        assert!(matches!(process.element(start).behavior, Behavior::StartEvent(_)));
        assert_eq!(process.element(start).flow_scope, Some(PROCESS));
    }
    let joins = |element: &&Element| {
        matches!(element.behavior, Behavior::InclusiveGateway { .. }) && element.incoming.len() > 1
    };
    let joining: Vec<&Element> =
        process.joining_inclusive_gateways.iter().map(|index| process.element(*index)).collect();
    assert!(joining.iter().all(joins));
    assert_eq!(joining.len(), process.elements.iter().filter(joins).count());
}

fn check_flows(process: &ExecutableProcess, index: ElementIndex) {
    let element = process.element(index);
    for &flow in &element.outgoing {
        assert_eq!(process.flow(flow).source, index);
        let target = process.element(process.flow(flow).target);
        assert_eq!(target.flow_scope, element.flow_scope);
        assert!(target.incoming.contains(&flow));
    }
    assert!(element.incoming.iter().all(|flow| process.flow(*flow).target == index));
    let (may_enter, may_leave) = match element.element_type {
        ElementType::Process | ElementType::EventSubProcess => (false, false),
        ElementType::StartEvent | ElementType::BoundaryEvent => (false, true),
        ElementType::EndEvent => (true, false),
        _ => (true, true),
    };
    assert!(may_enter || element.incoming.is_empty());
    assert!(may_leave || element.outgoing.is_empty());
}

fn check_behavior(process: &ExecutableProcess, index: ElementIndex) {
    let element = process.element(index);
    match &element.behavior {
        Behavior::Container { none_start_event } => {
            assert!(index == PROCESS || none_start_event.is_some());
            let start = none_start_event.map(|start| process.element(start));
            assert!(start.is_none_or(|start| start.flow_scope == Some(index)));
            assert!(start.is_none_or(|start| matches!(start.behavior, Behavior::NoneStartEvent)));
        }
        Behavior::EventSubProcess { start_event } => {
            assert_eq!(process.element(*start_event).flow_scope, Some(index));
            assert!(matches!(process.element(*start_event).behavior, Behavior::StartEvent(_)));
        }
        Behavior::BoundaryEvent { attached_to, .. } => {
            let activity = process.element(*attached_to);
            assert_eq!(activity.flow_scope, element.flow_scope);
            assert!(activity.boundary_events.contains(&index));
        }
        Behavior::CompensationBoundaryEvent { attached_to, handler } => {
            let activity = process.element(*attached_to);
            assert_eq!(activity.flow_scope, element.flow_scope);
            assert!(activity.boundary_events.contains(&index));
            assert!(element.outgoing.is_empty());
            assert_ne!(*handler, PROCESS);
        }
        Behavior::CompensationThrowEvent { activity: Some(activity) } => assert_ne!(*activity, PROCESS),
        Behavior::MultiInstanceBody(body) => {
            assert_eq!(body.inner, ElementIndex(index.0 + 1), "the inner activity follows its body");
            let inner = process.element(body.inner);
            assert_eq!((inner.flow_scope, &inner.id), (Some(index), &element.id));
            assert!(inner.incoming.is_empty() && inner.outgoing.is_empty() && inner.boundary_events.is_empty());
        }
        Behavior::AdHocSubProcess(ad_hoc) => {
            assert_eq!(ad_hoc.inner_instance, ElementIndex(index.0 + 1), "the inner instance follows");
            let inner = process.element(ad_hoc.inner_instance);
            assert_eq!(inner.flow_scope, Some(index));
            assert!(matches!(inner.behavior, Behavior::AdHocSubProcessInnerInstance));
            let elements: Vec<_> = ad_hoc.choices.elements.iter().map(|element| process.element(*element)).collect();
            assert!(elements.iter().all(|element| element.flow_scope == Some(ad_hoc.inner_instance)));
            assert!(elements.iter().all(|element| element.incoming.is_empty()));
            assert!(elements.is_sorted_by(|one, other| one.id < other.id), "a search finds them by their ids");
        }
        Behavior::LinkThrowEvent { target } => {
            assert!(matches!(process.element(*target).behavior, Behavior::LinkCatchEvent));
            assert_eq!(process.element(*target).flow_scope, element.flow_scope);
        }
        Behavior::EventBasedGateway { events } => {
            let targets: Vec<ElementIndex> = element.outgoing.iter().map(|flow| process.flow(*flow).target).collect();
            assert_eq!(*events, targets);
            let is_event =
                |event: &ElementIndex| matches!(process.element(*event).behavior, Behavior::IntermediateCatchEvent(_));
            assert!(events.iter().all(is_event));
        }
        Behavior::ExclusiveGateway { default } | Behavior::InclusiveGateway { default } => {
            assert!(default.is_none_or(|default: FlowIndex| element.outgoing.contains(&default)));
        }
        // Only these pass without doing anything: an element with a problem would, too.
        Behavior::PassThrough => assert!(matches!(
            element.element_type,
            ElementType::Task | ElementType::ManualTask | ElementType::IntermediateThrowEvent
        )),
        _ => {}
    }
}
