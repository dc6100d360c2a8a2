//! Writes a model as a BPMN file, with incoming and outgoing references as modelers write them.

use model_builder::xml::{expression, optional, tag};

use super::{Item, Model, ModelError};

/// A sequence flow that has left its source and looks for its target.
#[derive(Clone)]
struct Exit {
    source: String,
    condition: Option<String>,
    is_default: bool,
}

struct Flow {
    id: String,
    exit: Exit,
    target: String,
}

struct Node {
    tag: &'static str,
    id: String,
    attributes: Vec<(&'static str, String)>,
    extensions: String,
    content: String,
}

/// The nodes and flows of one process or sub-process.
#[derive(Default)]
struct Scope {
    nodes: Vec<Node>,
    flows: Vec<Flow>,
    /// From compensation boundary events to their handlers.
    associations: Vec<(String, String)>,
}

/// The root elements besides the processes: messages, errors and the like, each once.
#[derive(Default)]
struct Definitions {
    entries: Vec<(String, String)>,
}

pub(super) fn write(model: &Model) -> Result<String, ModelError> {
    let mut definitions = Definitions::default();
    let mut processes = String::new();
    for process in &model.processes {
        if process.keyword != "process" {
            return Err(misplaced(process));
        }
        let scope = scope(process, &mut definitions)?;
        let mut extensions = String::new();
        if let Some(version_tag) = process.get("tag") {
            extensions += &tag("zeebe:versionTag", &[("value", version_tag)], "");
        }
        extensions += &listeners(process);
        let mut content = optional("bpmn:extensionElements", &extensions);
        content += &scope.to_xml();
        processes += &tag("bpmn:process", &[("id", &process.id), ("isExecutable", "true")], &content);
    }
    let roots: String = definitions.entries.into_iter().map(|(_, xml)| xml).collect();
    Ok(model_builder::xml::definitions(&(processes + &roots)))
}

fn misplaced(item: &Item) -> ModelError {
    ModelError::Misplaced { keyword: item.keyword.clone(), id: item.id.clone() }
}

/// The content of a process or sub-process.
fn scope(container: &Item, definitions: &mut Definitions) -> Result<Scope, ModelError> {
    let mut scope = Scope::default();
    let inner = flow_items(container);
    let mut exits = Vec::new();
    if inner.first().is_none_or(|item| item.keyword != "start") {
        let id = format!("{}-start", container.id);
        scope.node("startEvent", &id).extensions = listeners_of_part(container, "start-listen", "end");
        exits = vec![exit(&id)];
    }
    let exits = scope.sequence(&inner, exits, definitions)?;
    scope.finish(&format!("{}-end", container.id), exits);
    scope.event_sub_processes(container, definitions)?;
    Ok(scope)
}

/// The content of an ad-hoc sub-process: each item is the first of a path of its own, which ends behind it.
fn ad_hoc(item: &Item, definitions: &mut Definitions) -> Result<String, ModelError> {
    let mut scope = Scope::default();
    for choice in flow_items(item) {
        scope.item(choice, Vec::new(), definitions)?;
    }
    scope.event_sub_processes(item, definitions)?;
    let condition = item.get("done").map(|text| expression("bpmn:completionCondition", text));
    Ok(scope.to_xml() + &condition.unwrap_or_default())
}

/// What is inside a scope, without what is attached to it.
fn flow_items(container: &Item) -> Vec<&Item> {
    container.items.iter().filter(|item| !matches!(item.keyword.as_str(), "on" | "event")).collect()
}

fn exit(source: &str) -> Exit {
    Exit { source: source.to_owned(), condition: None, is_default: false }
}

impl Scope {
    fn node(&mut self, tag: &'static str, id: &str) -> &mut Node {
        self.nodes.push(Node {
            tag,
            id: id.to_owned(),
            attributes: Vec::new(),
            extensions: String::new(),
            content: String::new(),
        });
        self.nodes.last_mut().expect("just pushed")
    }

    fn connect(&mut self, exits: Vec<Exit>, target: &str) {
        for exit in exits {
            let mut id = format!("{}_to_{target}", exit.source);
            while self.flows.iter().any(|flow| flow.id == id) {
                id.push('_');
            }
            self.flows.push(Flow { id, exit, target: target.to_owned() });
        }
    }

    /// Ends what is open.
    fn finish(&mut self, id: &str, exits: Vec<Exit>) {
        if !exits.is_empty() {
            self.node("endEvent", id);
            self.connect(exits, id);
        }
    }

    /// Items in sequence; returns what is left open at the end.
    fn sequence(
        &mut self,
        items: &[&Item],
        mut exits: Vec<Exit>,
        definitions: &mut Definitions,
    ) -> Result<Vec<Exit>, ModelError> {
        for item in items {
            exits = self.item(item, exits, definitions)?;
        }
        Ok(exits)
    }

    fn item(&mut self, item: &Item, exits: Vec<Exit>, definitions: &mut Definitions) -> Result<Vec<Exit>, ModelError> {
        let id = item.id.as_str();
        match item.keyword.as_str() {
            "start" => {
                self.finish(&format!("{id}-before"), exits);
                self.event("startEvent", item, definitions);
                Ok(vec![exit(id)])
            }
            "end" => {
                self.event("endEvent", item, definitions);
                self.connect(exits, id);
                Ok(Vec::new())
            }
            "goto" => {
                self.connect(exits, id);
                Ok(Vec::new())
            }
            "stop" => Ok(Vec::new()),
            "catch" | "throw" => {
                let tag = if item.keyword == "catch" { "intermediateCatchEvent" } else { "intermediateThrowEvent" };
                self.event(tag, item, definitions);
                self.connect(exits, id);
                let goes_on = item.keyword == "catch" || !item.has("link");
                Ok(if goes_on { vec![exit(id)] } else { Vec::new() })
            }
            "exclusive" | "parallel" | "inclusive" | "events" => self.gateway(item, exits, definitions),
            "loop" => self.repeat(item, exits, definitions),
            _ => self.activity(item, exits, definitions),
        }
    }

    fn event(&mut self, tag: &'static str, item: &Item, definitions: &mut Definitions) {
        let content = definitions.event(item);
        let node = self.node(tag, &item.id);
        node.extensions = extensions(item);
        node.content = content;
    }

    fn gateway(
        &mut self,
        item: &Item,
        exits: Vec<Exit>,
        definitions: &mut Definitions,
    ) -> Result<Vec<Exit>, ModelError> {
        let tag = match item.keyword.as_str() {
            "exclusive" => "exclusiveGateway",
            "parallel" => "parallelGateway",
            "inclusive" => "inclusiveGateway",
            _ => "eventBasedGateway",
        };
        let id = item.id.as_str();
        self.node(tag, id).extensions = listeners(item);
        self.connect(exits, id);
        if item.items.is_empty() {
            return Ok(vec![exit(id)]);
        }
        let mut open = Vec::new();
        let mut branches_open = 0;
        for branch in &item.items {
            if branch.keyword != "branch" {
                return Err(misplaced(branch));
            }
            let entry = Exit {
                source: id.to_owned(),
                condition: branch.get("cond").map(str::to_owned),
                is_default: branch.has("default"),
            };
            let items: Vec<&Item> = branch.items.iter().collect();
            let exits = self.sequence(&items, vec![entry], definitions)?;
            branches_open += usize::from(!exits.is_empty());
            open.extend(exits);
        }
        if branches_open < 2 {
            return Ok(open);
        }
        let join = format!("{id}-join");
        let node = self.node(if tag == "eventBasedGateway" { "exclusiveGateway" } else { tag }, &join);
        node.extensions = listeners_of_part(item, "join-listen", "start");
        self.connect(open, &join);
        Ok(vec![exit(&join)])
    }

    fn repeat(
        &mut self,
        item: &Item,
        exits: Vec<Exit>,
        definitions: &mut Definitions,
    ) -> Result<Vec<Exit>, ModelError> {
        let (begin, split) = (format!("{}-begin", item.id), item.id.as_str());
        self.node("exclusiveGateway", &begin).extensions = listeners_of_part(item, "join-listen", "start");
        self.connect(exits, &begin);
        let items: Vec<&Item> = item.items.iter().collect();
        let exits = self.sequence(&items, vec![exit(&begin)], definitions)?;
        if exits.is_empty() {
            return Ok(exits);
        }
        self.node("exclusiveGateway", split).extensions = listeners(item);
        self.connect(exits, split);
        self.connect(vec![Exit { condition: item.get("cond").map(str::to_owned), ..exit(split) }], &begin);
        Ok(vec![Exit { is_default: true, ..exit(split) }])
    }

    fn activity(
        &mut self,
        item: &Item,
        exits: Vec<Exit>,
        definitions: &mut Definitions,
    ) -> Result<Vec<Exit>, ModelError> {
        let id = item.id.as_str();
        let mut attributes = Vec::new();
        let (tag, inner) = match item.keyword.as_str() {
            "service" => ("serviceTask", String::new()),
            "send" => ("sendTask", String::new()),
            "script" => ("scriptTask", String::new()),
            "rule" => ("businessRuleTask", String::new()),
            "user" => ("userTask", String::new()),
            "manual" => ("manualTask", String::new()),
            "task" => ("task", String::new()),
            "call" => ("callActivity", String::new()),
            "sub" => ("subProcess", scope(item, definitions)?.to_xml()),
            "ad-hoc" => {
                if item.has("keeping") {
                    attributes.push(("cancelRemainingInstances", "false".to_owned()));
                }
                ("adHocSubProcess", ad_hoc(item, definitions)?)
            }
            "receive" => {
                if let Some(name) = item.get("message") {
                    attributes.push(("messageRef", definitions.message(name, item.get("key"))));
                }
                ("receiveTask", String::new())
            }
            _ => return Err(misplaced(item)),
        };
        let node = self.node(tag, id);
        node.attributes = attributes;
        node.extensions = extensions(item);
        node.content = multi_instance(item) + &inner;
        self.connect(exits, id);
        let mut open = vec![exit(id)];
        for boundary in item.items.iter().filter(|inner| inner.keyword == "on") {
            let exits = self.boundary(id, boundary, definitions)?;
            if boundary.has("rejoin") {
                open.extend(exits);
            } else {
                self.finish(&format!("{}-end", boundary.id), exits);
            }
        }
        let is_container = matches!(item.keyword.as_str(), "sub" | "ad-hoc");
        if let Some(misplaced_item) = item.items.iter().find(|inner| !is_container && inner.keyword != "on") {
            return Err(misplaced(misplaced_item));
        }
        if open.len() > 1 {
            let merge = format!("{id}-merge");
            self.node("exclusiveGateway", &merge);
            self.connect(open, &merge);
            open = vec![exit(&merge)];
        }
        Ok(open)
    }

    fn boundary(
        &mut self,
        attached_to: &str,
        item: &Item,
        definitions: &mut Definitions,
    ) -> Result<Vec<Exit>, ModelError> {
        self.event("boundaryEvent", item, definitions);
        let node = self.nodes.last_mut().expect("just pushed");
        node.attributes.push(("attachedToRef", attached_to.to_owned()));
        if item.has("non-interrupting") {
            node.attributes.push(("cancelActivity", "false".to_owned()));
        }
        let items: Vec<&Item> = item.items.iter().collect();
        if item.has("compensation") {
            return self.compensation_handler(&item.id, &items, definitions);
        }
        self.sequence(&items, vec![exit(&item.id)], definitions)
    }

    fn compensation_handler(
        &mut self,
        boundary_event: &str,
        items: &[&Item],
        definitions: &mut Definitions,
    ) -> Result<Vec<Exit>, ModelError> {
        for handler in items {
            self.sequence(&[handler], Vec::new(), definitions)?;
            if let Some(node) = self.nodes.iter_mut().find(|node| node.id == handler.id) {
                node.attributes.push(("isForCompensation", "true".to_owned()));
            }
            self.associations.push((boundary_event.to_owned(), handler.id.clone()));
        }
        Ok(Vec::new())
    }

    fn event_sub_processes(&mut self, container: &Item, definitions: &mut Definitions) -> Result<(), ModelError> {
        let mut events = container.items.iter().filter(|item| item.keyword == "event");
        events.try_for_each(|event| self.event_sub_process(event, definitions))
    }

    fn event_sub_process(&mut self, item: &Item, definitions: &mut Definitions) -> Result<(), ModelError> {
        let mut inner = Scope::default();
        let mut start = Item { id: format!("{}-start", item.id), items: Vec::new(), ..item.clone() };
        start.attributes.retain(|(name, _)| !name.starts_with("listen."));
        inner.event("startEvent", &start, definitions);
        inner.nodes[0].extensions += &listeners_of_part(item, "start-listen", "end");
        if item.has("non-interrupting") {
            inner.nodes[0].attributes.push(("isInterrupting", "false".to_owned()));
        }
        let exits = inner.sequence(&flow_items(item), vec![exit(&start.id)], definitions)?;
        inner.finish(&format!("{}-end", item.id), exits);
        inner.event_sub_processes(item, definitions)?;
        let content = inner.to_xml();
        let node = self.node("subProcess", &item.id);
        node.attributes.push(("triggeredByEvent", "true".to_owned()));
        node.extensions = listeners(item);
        node.content = content;
        Ok(())
    }

    fn to_xml(&self) -> String {
        let mut xml = String::new();
        for node in &self.nodes {
            let mut content = optional("bpmn:extensionElements", &node.extensions);
            for flow in self.flows.iter().filter(|flow| flow.target == node.id) {
                content += &tag("bpmn:incoming", &[], &flow.id);
            }
            for flow in self.flows.iter().filter(|flow| flow.exit.source == node.id) {
                content += &tag("bpmn:outgoing", &[], &flow.id);
            }
            content += &node.content;
            let default = self.flows.iter().find(|flow| flow.exit.source == node.id && flow.exit.is_default);
            let mut attributes = vec![("id", node.id.as_str())];
            attributes.extend(node.attributes.iter().map(|(name, value)| (*name, value.as_str())));
            attributes.extend(default.map(|flow| ("default", flow.id.as_str())));
            xml += &tag(&format!("bpmn:{}", node.tag), &attributes, &content);
        }
        for flow in &self.flows {
            let attributes = [("id", flow.id.as_str()), ("sourceRef", &flow.exit.source), ("targetRef", &flow.target)];
            let condition = flow.exit.condition.as_ref().map(|text| expression("bpmn:conditionExpression", text));
            xml += &tag("bpmn:sequenceFlow", &attributes, &condition.unwrap_or_default());
        }
        for (source, target) in &self.associations {
            let id = format!("{source}_with_{target}");
            let attributes = [("id", id.as_str()), ("sourceRef", source), ("targetRef", target)];
            xml += &tag("bpmn:association", &attributes, "");
        }
        xml
    }
}

impl Definitions {
    /// The id of a root element, which is made when it is new.
    fn reference(&mut self, kind: &str, attributes: &[(&str, &str)], content: &str) -> String {
        let (known, count) = (self.entries.iter(), self.entries.len());
        let signature = format!("{kind} {attributes:?} {content}");
        if let Some((index, _)) = known.enumerate().find(|(_, (known, _))| *known == signature) {
            return format!("definition-{}", index + 1);
        }
        let id = format!("definition-{}", count + 1);
        let mut all = vec![("id", id.as_str())];
        all.extend_from_slice(attributes);
        let xml = tag(&format!("bpmn:{kind}"), &all, content);
        self.entries.push((signature, xml));
        id
    }

    fn message(&mut self, name: &str, key: Option<&str>) -> String {
        let subscription = key.map(|key| tag("zeebe:subscription", &[("correlationKey", key)], "")).unwrap_or_default();
        self.reference("message", &[("name", name)], &optional("bpmn:extensionElements", &subscription))
    }

    /// The event definition of an item.
    fn event(&mut self, item: &Item) -> String {
        let id = format!("{}-definition", item.id);
        let definition = |kind: &str, attributes: &[(&str, &str)], content: &str| {
            let attributes = [&[("id", id.as_str())], attributes].concat();
            tag(&format!("bpmn:{kind}EventDefinition"), &attributes, content)
        };
        let timer = |name: &str, text: &str| definition("timer", &[], &expression(&format!("bpmn:{name}"), text));
        let mut coded = |kind: &str, code: &str, attribute: &str, reference: &str| {
            if code.is_empty() {
                return definition(kind, &[], "");
            }
            let id = self.reference(kind, &[("name", code), (attribute, code)], "");
            definition(kind, &[(reference, id.as_str())], "")
        };
        if let Some(text) = item.get("timer") {
            timer("timeDuration", text)
        } else if let Some(text) = item.get("date") {
            timer("timeDate", text)
        } else if let Some(text) = item.get("cycle") {
            timer("timeCycle", text)
        } else if let Some(code) = item.get("error") {
            coded("error", code, "errorCode", "errorRef")
        } else if let Some(code) = item.get("escalation") {
            coded("escalation", code, "escalationCode", "escalationRef")
        } else if let Some(name) = item.get("signal") {
            let id = self.reference("signal", &[("name", name)], "");
            definition("signal", &[("signalRef", id.as_str())], "")
        } else if let Some(name) = item.get("link") {
            definition("link", &[("name", name)], "")
        } else if item.has("terminate") {
            definition("terminate", &[], "")
        } else if let Some(activity) = item.get("compensation") {
            let reference = [("activityRef", activity)];
            definition("compensate", if activity.is_empty() { &[] } else { &reference }, "")
        } else if let Some(name) = item.get("message").or_else(|| item.get("type")) {
            let id = self.message(name, item.get("key"));
            definition("message", &[("messageRef", id.as_str())], "")
        } else {
            String::new()
        }
    }
}

fn extensions(item: &Item) -> String {
    let mut xml = String::new();
    let sole = |name: &str, attributes: &[(&str, Option<&str>)]| {
        let attributes: Vec<(&str, &str)> =
            attributes.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
        tag(name, &attributes, "")
    };
    if let Some(job_type) = item.get("type") {
        xml += &sole("zeebe:taskDefinition", &[("type", Some(job_type)), ("retries", item.get("retries"))]);
    }
    if let Some(script) = item.get("expression") {
        xml += &sole("zeebe:script", &[("expression", Some(script)), ("resultVariable", item.get("variable"))]);
    }
    if let Some(decision) = item.get("decision") {
        xml += &sole(
            "zeebe:calledDecision",
            &[
                ("decisionId", Some(decision)),
                ("resultVariable", item.get("variable")),
                ("bindingType", item.get("binding")),
                ("versionTag", item.get("tag")),
            ],
        );
    }
    if item.keyword == "user" {
        xml += &user_task(item);
    }
    if item.keyword == "ad-hoc" && item.get("type").is_none() {
        let attributes = [
            ("activeElementsCollection", item.get("active")),
            ("outputCollection", item.get("gather")),
            ("outputElement", item.get("gathered")),
        ];
        xml += &sole("zeebe:adHoc", &attributes);
    }
    if item.keyword == "call" {
        xml += &sole(
            "zeebe:calledElement",
            &[
                ("processId", item.get("process")),
                ("propagateAllChildVariables", item.get("all-child")),
                ("propagateAllParentVariables", item.get("all-parent")),
                ("bindingType", item.get("binding")),
                ("versionTag", item.get("tag")),
            ],
        );
    }
    let headers: String = item
        .prefixed("header.")
        .map(|(key, value)| tag("zeebe:header", &[("key", key), ("value", value)], ""))
        .collect();
    xml += &optional("zeebe:taskHeaders", &headers);
    xml += &listeners(item);
    let mapping = |name: &'static str| {
        move |(target, source): (&str, &str)| tag(name, &[("source", source), ("target", target)], "")
    };
    let inputs: String = item.prefixed("in.").map(mapping("zeebe:input")).collect();
    let outputs: String = item.prefixed("out.").map(mapping("zeebe:output")).collect();
    xml + &optional("zeebe:ioMapping", &(inputs + &outputs))
}

/// `listen.EVENT=TYPE` or `listen.EVENT=TYPE@RETRIES`: execution listeners, and task listeners.
fn listeners(item: &Item) -> String {
    let (mut of_element, mut of_task) = (String::new(), String::new());
    for (event_type, text) in item.prefixed("listen.") {
        if item.keyword == "user" && !matches!(event_type, "start" | "end") {
            of_task += &listener("zeebe:taskListener", event_type, text);
        } else {
            of_element += &listener("zeebe:executionListener", event_type, text);
        }
    }
    optional("zeebe:executionListeners", &of_element) + &optional("zeebe:taskListeners", &of_task)
}

/// Execution listeners of what an item becomes besides, such as the join of a gateway.
fn listeners_of_part(item: &Item, attribute: &str, event_type: &str) -> String {
    let of_part = item.attributes.iter().filter(|(name, _)| name == attribute);
    let listeners: String = of_part.map(|(_, text)| listener("zeebe:executionListener", event_type, text)).collect();
    optional("zeebe:executionListeners", &listeners)
}

/// One whose job is given as `TYPE` or `TYPE@RETRIES`.
fn listener(name: &str, event_type: &str, text: &str) -> String {
    let (job_type, retries) = text.split_once('@').unwrap_or((text, ""));
    let attributes = [("eventType", event_type), ("type", job_type), ("retries", retries)];
    tag(name, if retries.is_empty() { &attributes[..2] } else { &attributes }, "")
}

fn user_task(item: &Item) -> String {
    let some = |name: &str, pairs: &[(&'static str, &str)]| {
        let attributes: Vec<(&str, &str)> =
            pairs.iter().filter_map(|(attribute, key)| Some((*attribute, item.get(key)?))).collect();
        if attributes.is_empty() { String::new() } else { tag(name, &attributes, "") }
    };
    let mut xml = if item.has("native") { tag("zeebe:userTask", &[], "") } else { String::new() };
    xml += &some(
        "zeebe:assignmentDefinition",
        &[("assignee", "assignee"), ("candidateGroups", "groups"), ("candidateUsers", "users")],
    );
    xml += &some("zeebe:taskSchedule", &[("dueDate", "due"), ("followUpDate", "follow")]);
    xml += &some("zeebe:priorityDefinition", &[("priority", "priority")]);
    xml += &some(
        "zeebe:formDefinition",
        &[
            ("formKey", "form-key"),
            ("formId", "form"),
            ("bindingType", "binding"),
            ("versionTag", "tag"),
            ("externalReference", "reference"),
        ],
    );
    xml
}

fn multi_instance(item: &Item) -> String {
    let Some(collection) = item.get("each") else { return String::new() };
    let pairs = [
        ("inputCollection", Some(collection)),
        ("inputElement", item.get("element")),
        ("outputCollection", item.get("collect")),
        ("outputElement", item.get("result")),
    ];
    let attributes: Vec<(&str, &str)> = pairs.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
    let mut content = tag("bpmn:extensionElements", &[], &tag("zeebe:loopCharacteristics", &attributes, ""));
    if let Some(condition) = item.get("until") {
        content += &expression("bpmn:completionCondition", condition);
    }
    let sequential = [("isSequential", if item.has("sequential") { "true" } else { "false" })];
    tag("bpmn:multiInstanceLoopCharacteristics", &sequential, &content)
}
