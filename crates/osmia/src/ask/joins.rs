//! Tokens that wait at joins. Nothing that is searched says so of them: it follows from the model, the flows that were taken,
//! and the elements that began.

use std::collections::{BTreeMap, HashSet};

use bpmn::model::{Element, ElementType, ExecutableProcess, FlowIndex};
use serde_json::Value;

use super::rest::{Rest, text};
use crate::client::Outcome;

/// A gateway that joins, and the flows by which tokens came that wait there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Join {
    /// Its id in the model.
    pub gateway: String,
    /// The flows by which tokens came.
    pub came: Vec<String>,
    /// The flows by which none came.
    pub missing: Vec<String>,
}

impl Join {
    /// For people.
    pub fn sentence(&self) -> String {
        let came = self.came.join(", ");
        let missing = self.missing.join(", ");
        match self.missing.is_empty() {
            true => format!("a token waits at the join {}: it came by {came}", self.gateway),
            false => {
                format!("a token waits at the join {}: it came by {came}, and none came by {missing}", self.gateway)
            }
        }
    }
}

/// The joins of an active process instance at which tokens wait. `elements` are those of the instance.
pub(super) fn find(rest: &Rest, instance: &Value, elements: &[Value]) -> Outcome<Vec<Join>> {
    let part = |name: &str| text(instance, name).unwrap_or_default();
    if part("state") != "ACTIVE" {
        return Ok(Vec::new());
    }
    let model = rest.get_bytes(&format!("/v2/process-definitions/{}/xml", part("processDefinitionKey")))?;
    // What was deployed can be read, unless this program is older than the node.
    let processes = bpmn::parse_deployed("", &model).unwrap_or_default();
    let Some(process) = processes.into_iter().find(|process| *process.id == *part("processDefinitionId")) else {
        return Ok(Vec::new());
    };
    if !process.elements.iter().any(is_join) {
        return Ok(Vec::new());
    }
    let taken = rest.get(&format!("/v2/process-instances/{}/sequence-flows", part("processInstanceKey")))?;
    let taken = taken["items"].as_array().cloned().unwrap_or_default();
    let taken: HashSet<&str> = taken.iter().filter_map(|flow| text(flow, "elementId")).collect();
    Ok(waiting(&process, elements, &taken))
}

fn is_join(element: &Element) -> bool {
    matches!(element.element_type, ElementType::ParallelGateway | ElementType::InclusiveGateway)
        && element.incoming.len() > 1
}

/// How many instances there are of an element.
#[derive(Clone, Copy, Default)]
struct Count {
    active: usize,
    completed: usize,
    all: usize,
}

/// A flow that is taken whenever its source completes brought as many tokens as that did. Of another one it is only known
/// that it was taken at some time, which says enough as long as its gateway has not begun.
fn waiting(process: &ExecutableProcess, elements: &[Value], taken: &HashSet<&str>) -> Vec<Join> {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for element in elements {
        let count = counts.entry(text(element, "elementId").unwrap_or_default()).or_default();
        let state = text(element, "state").unwrap_or_default();
        count.active += usize::from(state == "ACTIVE");
        count.completed += usize::from(state == "COMPLETED");
        count.all += 1;
    }
    let count_of = |id: &str| counts.get(id).copied().unwrap_or_default();
    // The process itself is none of its elements.
    let lives = |element: &Element| {
        element
            .flow_scope
            .map(|scope| process.element(scope))
            .is_some_and(|scope| scope.element_type == ElementType::Process || count_of(&scope.id).active > 0)
    };
    let waits = |flow: FlowIndex, begun: usize| {
        let flow = process.flow(flow);
        let source = process.element(flow.source);
        let always = source.outgoing.len() == 1 || source.element_type == ElementType::ParallelGateway;
        taken.contains(&*flow.id) && if always { count_of(&source.id).completed > begun } else { begun == 0 }
    };
    let joins = process.elements.iter().filter(|element| is_join(element) && lives(element));
    let joins = joins.map(|gateway| {
        let begun = count_of(&gateway.id).all;
        let (came, missing): (Vec<FlowIndex>, Vec<FlowIndex>) =
            gateway.incoming.iter().copied().partition(|flow| waits(*flow, begun));
        let ids = |flows: Vec<FlowIndex>| flows.into_iter().map(|flow| process.flow(flow).id.to_string()).collect();
        Join { gateway: gateway.id.to_string(), came: ids(came), missing: ids(missing) }
    });
    joins.filter(|join| !join.came.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MODEL: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="x">
        <process id="p" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="split"/>
        <parallelGateway id="split"/><sequenceFlow id="fa" sourceRef="split" targetRef="a"/>
        <sequenceFlow id="fb" sourceRef="split" targetRef="b"/><manualTask id="a"/><manualTask id="b"/>
        <sequenceFlow id="ga" sourceRef="a" targetRef="join"/><sequenceFlow id="gb" sourceRef="b" targetRef="join"/>
        <parallelGateway id="join"/></process></definitions>"#;

    fn found(elements: &[(&str, &str)], taken: &[&str]) -> Vec<Join> {
        let process = bpmn::parse_deployed("p.bpmn", MODEL.as_bytes()).expect("it is a model").remove(0);
        let element = |(id, state): &(&str, &str)| json!({ "elementId": id, "state": state });
        let elements: Vec<Value> = elements.iter().map(element).collect();
        waiting(&process, &elements, &taken.iter().copied().collect())
    }

    #[test]
    fn a_token_waits_at_a_join_until_the_others_have_come_each_time() {
        let (done, ended) = ("COMPLETED", "TERMINATED");
        let waits = [Join { gateway: "join".into(), came: vec!["ga".into()], missing: vec!["gb".into()] }];
        assert_eq!(found(&[("a", done), ("b", "ACTIVE")], &["f", "fa", "fb", "ga"]), waits);
        assert_eq!(found(&[("a", done), ("b", ended)], &["ga"]), waits, "also when none will come");
        let taken = ["ga", "gb"];
        assert_eq!(found(&[("a", done), ("b", done), ("join", done)], &taken), []);
        let again = [("a", done), ("b", done), ("join", done), ("a", done), ("b", "ACTIVE")];
        assert_eq!(found(&again, &taken), waits, "once more, although both flows were taken before");
        assert_eq!(waits[0].sentence(), "a token waits at the join join: it came by ga, and none came by gb");
    }
}
