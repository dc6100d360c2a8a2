//! Decision models and how they are written as DMN files.

use model_builder::xml::{escape, tag};

/// A file. Its decisions require only those before them.
#[derive(Debug, Default)]
pub struct Model {
    /// The namespace, which says the version of DMN.
    pub namespace: &'static str,
    pub decisions: Vec<Decision>,
    pub knowledge: Vec<Knowledge>,
}

/// A decision.
#[derive(Debug)]
pub struct Decision {
    pub id: String,
    /// The name and type of its variable.
    pub variable: Option<(String, Option<&'static str>)>,
    /// The ids of the decisions that it requires.
    pub decisions: Vec<String>,
    /// The ids of the business knowledge models that it requires.
    pub knowledge: Vec<String>,
    pub logic: Logic,
}

/// A business knowledge model. Its name is its id.
#[derive(Debug)]
pub struct Knowledge {
    pub id: String,
    /// Names and types.
    pub parameters: Vec<(String, Option<&'static str>)>,
    pub logic: Logic,
}

/// A boxed expression.
#[derive(Debug)]
pub enum Logic {
    Table(Table),
    Literal(String),
    /// The last entry may have no name, and then is the result.
    Context(Vec<(Option<String>, Logic)>),
    List(Vec<Logic>),
    Relation(Vec<String>, Vec<Vec<Logic>>),
    /// A parameter and the body.
    Function(String, String),
    /// The name of a business knowledge model and what its parameters are.
    Invocation(String, Vec<(String, String)>),
}

/// A decision table.
#[derive(Debug, Default)]
pub struct Table {
    pub hit_policy: Option<&'static str>,
    pub aggregation: Option<&'static str>,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub rules: Vec<Rule>,
}

/// An input of a table.
#[derive(Debug)]
pub struct Input {
    pub id: Option<String>,
    pub label: Option<String>,
    pub expression: String,
    /// Input values, which say what a modeler expects.
    pub values: Option<String>,
}

/// An output of a table.
#[derive(Debug)]
pub struct Output {
    pub id: Option<String>,
    pub name: Option<String>,
    pub label: Option<String>,
    /// Output values, in the order of their priorities.
    pub values: Option<String>,
    pub default: Option<String>,
}

/// A rule of a table.
#[derive(Debug)]
pub struct Rule {
    pub id: Option<String>,
    pub tests: Vec<String>,
    pub results: Vec<String>,
}

fn text(name: &str, text: &str) -> String {
    tag(name, &[], &tag("text", &[], &escape(text)).replace("<text/>", "<text></text>"))
}

/// The attributes that have a value.
fn some<'a>(attributes: &[(&'a str, Option<&'a str>)]) -> Vec<(&'a str, &'a str)> {
    attributes.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect()
}

fn variable(name: &str, variable: &(String, Option<&'static str>)) -> String {
    tag(name, &some(&[("name", Some(&variable.0)), ("typeRef", variable.1)]), "")
}

fn requirement(kind: &str, of: &str, id: &str) -> String {
    tag(kind, &[], &tag(of, &[("href", &format!("#{id}"))], ""))
}

impl Model {
    /// The DMN file.
    pub fn write(&self) -> String {
        let mut content = String::new();
        for knowledge in &self.knowledge {
            let parameters: String =
                knowledge.parameters.iter().map(|parameter| variable("formalParameter", parameter)).collect();
            let logic = tag("encapsulatedLogic", &[], &(parameters + &knowledge.logic.write()));
            content += &tag("businessKnowledgeModel", &[("id", &knowledge.id), ("name", &knowledge.id)], &logic);
        }
        for decision in &self.decisions {
            let mut parts = decision.variable.as_ref().map(|found| variable("variable", found)).unwrap_or_default();
            for id in &decision.decisions {
                parts += &requirement("informationRequirement", "requiredDecision", id);
            }
            for id in &decision.knowledge {
                parts += &requirement("knowledgeRequirement", "requiredKnowledge", id);
            }
            parts += &decision.logic.write();
            let name = format!("Decision {}", decision.id);
            content += &tag("decision", &[("id", &decision.id), ("name", &name)], &parts);
        }
        let attributes =
            [("xmlns", self.namespace), ("id", "definitions"), ("name", "Random"), ("namespace", "osmia:random")];
        let file = tag("definitions", &attributes, &content);
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{file}")
    }

    /// The logic of a decision or business knowledge model.
    pub fn logic(&self, id: &str) -> Option<&Logic> {
        let decision = self.decisions.iter().find(|decision| decision.id == id).map(|decision| &decision.logic);
        decision.or_else(|| self.knowledge.iter().find(|known| known.id == id).map(|known| &known.logic))
    }

    /// Whether more than one decision requires the same one.
    pub fn has_shared_decision(&self) -> bool {
        let mut required: Vec<&String> = self.decisions.iter().flat_map(|decision| &decision.decisions).collect();
        let count = required.len();
        required.sort();
        required.dedup();
        required.len() < count
    }
}

impl Logic {
    fn write(&self) -> String {
        match self {
            Logic::Table(table) => table.write(),
            Logic::Literal(expression) => text("literalExpression", expression),
            Logic::Context(entries) => {
                let entry = |(name, value): &(Option<String>, Logic)| {
                    let name = name.as_ref().map(|name| tag("variable", &[("name", name)], "")).unwrap_or_default();
                    tag("contextEntry", &[], &(name + &value.write()))
                };
                tag("context", &[], &entries.iter().map(entry).collect::<String>())
            }
            Logic::List(items) => tag("list", &[], &items.iter().map(Logic::write).collect::<String>()),
            Logic::Relation(columns, rows) => {
                let columns: String = columns.iter().map(|name| tag("column", &[("name", name)], "")).collect();
                let row = |row: &Vec<Logic>| tag("row", &[], &row.iter().map(Logic::write).collect::<String>());
                tag("relation", &[], &(columns + &rows.iter().map(row).collect::<String>()))
            }
            Logic::Function(parameter, body) => {
                let parameter = tag("formalParameter", &[("name", parameter)], "");
                tag("functionDefinition", &[], &(parameter + &text("literalExpression", body)))
            }
            Logic::Invocation(name, bindings) => {
                let binding = |(name, value): &(String, String)| {
                    let parameter = tag("parameter", &[("name", name)], "");
                    tag("binding", &[], &(parameter + &text("literalExpression", value)))
                };
                let bindings: String = bindings.iter().map(binding).collect();
                tag("invocation", &[], &(text("literalExpression", name) + &bindings))
            }
        }
    }
}

impl Table {
    fn write(&self) -> String {
        let mut content = String::new();
        for input in &self.inputs {
            let values = input.values.as_ref().map(|values| text("inputValues", values)).unwrap_or_default();
            let parts = text("inputExpression", &input.expression) + &values;
            content += &tag("input", &some(&[("id", input.id.as_deref()), ("label", input.label.as_deref())]), &parts);
        }
        for output in &self.outputs {
            let values = output.values.as_ref().map(|values| text("outputValues", values)).unwrap_or_default();
            let default = output.default.as_ref().map(|default| text("defaultOutputEntry", default));
            let names =
                [("id", output.id.as_deref()), ("name", output.name.as_deref()), ("label", output.label.as_deref())];
            content += &tag("output", &some(&names), &(values + &default.unwrap_or_default()));
        }
        for rule in &self.rules {
            let tests: String = rule.tests.iter().map(|test| text("inputEntry", test)).collect();
            let results: String = rule.results.iter().map(|result| text("outputEntry", result)).collect();
            content += &tag("rule", &some(&[("id", rule.id.as_deref())]), &(tests + &results));
        }
        let attributes = some(&[("hitPolicy", self.hit_policy), ("aggregation", self.aggregation)]);
        tag("decisionTable", &attributes, &content)
    }
}
