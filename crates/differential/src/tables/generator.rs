//! Random models of decisions and variables for them, from a seed.

use super::model::{Decision, Input, Knowledge, Logic, Model, Output, Rule, Table};
use crate::grammar::Grammar;

const GRAMMAR: &str = include_str!("grammar.txt");
/// The types of expressions.
const TYPES: [char; 8] = ['n', 's', 'b', 'd', 'l', 'm', 'c', 'a'];
/// Lists, literals, tests, and results that fail: never of another type.
const EXACT: [char; 15] = ['l', 'm', 'k', 'v', 'w', 'x', 'y', 'h', 'g', 'f', 'N', 'S', 'B', 'D', 'X'];
/// The types of inputs, with their tests.
const INPUTS: [(char, char); 5] = [('n', 'N'), ('n', 'N'), ('s', 'S'), ('b', 'B'), ('d', 'D')];
const NAMESPACES: [&str; 6] = [
    "https://www.omg.org/spec/DMN/20191111/MODEL/",
    "https://www.omg.org/spec/DMN/20191111/MODEL/",
    "http://www.omg.org/spec/DMN/20151101/dmn.xsd",
    "http://www.omg.org/spec/DMN/20180521/MODEL/",
    "https://www.omg.org/spec/DMN/20211108/MODEL/",
    "https://www.omg.org/spec/DMN/20230324/MODEL/",
];
/// A hit policy and an aggregation.
type HitPolicy = (Option<&'static str>, Option<&'static str>);
/// How often each hit policy comes.
const HIT_POLICIES: [(usize, HitPolicy); 13] = [
    (2, (None, None)),
    (5, (Some("UNIQUE"), None)),
    (3, (Some("FIRST"), None)),
    (4, (Some("ANY"), None)),
    (4, (Some("PRIORITY"), None)),
    (3, (Some("COLLECT"), None)),
    (2, (Some("COLLECT"), Some("SUM"))),
    (2, (Some("COLLECT"), Some("MIN"))),
    (2, (Some("COLLECT"), Some("MAX"))),
    (2, (Some("COLLECT"), Some("COUNT"))),
    (2, (Some("RULE ORDER"), None)),
    (4, (Some("OUTPUT ORDER"), None)),
    (1, (Some("UNIQUE"), Some("SUM"))),
];

/// One case.
#[derive(Debug)]
pub struct Case {
    pub model: Model,
    /// The id of the decision to evaluate.
    pub decision: String,
    /// A JSON object.
    pub variables: String,
}

/// A generator of random models.
pub struct Generator {
    grammar: Grammar,
}

/// A column of results: its type, and what is mostly chosen from.
struct Column {
    letter: char,
    choices: Vec<String>,
}

impl Generator {
    /// A generator with a seed.
    pub fn new(seed: u64) -> Generator {
        Generator { grammar: Grammar::new(GRAMMAR, &TYPES, &EXACT, seed) }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.grammar.random().index(limit)
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.grammar.random().percent(percent)
    }

    fn sometimes(&mut self, percent: usize, make: impl FnOnce(&mut Self) -> String) -> Option<String> {
        self.percent(percent).then(|| make(self))
    }

    /// The next case. The last decision is evaluated, seldom another one.
    pub fn case(&mut self) -> Case {
        let mut model = Model { namespace: self.grammar.random().copy_of(&NAMESPACES), ..Model::default() };
        let decisions = *self.grammar.random().choose(&[1, 1, 1, 1, 2, 2, 3, 4]);
        self.grammar.set_further(Vec::new());
        if self.percent(25) {
            let knowledge = self.knowledge();
            model.knowledge.push(knowledge);
        }
        let mut results: Vec<(char, String)> = Vec::new();
        for number in 1..=decisions {
            let (decision, letter) = self.decision(number, &model, &results);
            let name = decision.variable.as_ref().map_or_else(|| decision.id.clone(), |(name, _)| name.clone());
            results.push((letter, name));
            model.decisions.push(decision);
        }
        let place = if self.percent(5) { self.below(decisions) } else { decisions - 1 };
        Case { decision: model.decisions[place].id.clone(), variables: self.variables(), model }
    }

    /// What the logic of a decision may mention besides the variables.
    fn visible(&mut self, model: &Model, decision: &Decision, results: &[(char, String)]) {
        let mut visible = Vec::new();
        for (known, (letter, name)) in model.decisions.iter().zip(results) {
            if decision.decisions.contains(&known.id) {
                visible.push((*letter, name.clone()));
                visible.push(('a', name.clone()));
                visible.push(('n', format!("{name}.one")));
                visible.push(('s', format!("{name}.two")));
            }
        }
        for knowledge in model.knowledge.iter().filter(|known| decision.knowledge.contains(&known.id)) {
            let arguments: Vec<&str> = knowledge.parameters.iter().map(|(name, _)| by_name(name)).collect();
            let call = format!("{}({})", knowledge.id, arguments.join(", "));
            visible.extend(['n', 's', 'a'].map(|letter| (letter, call.clone())));
        }
        self.grammar.set_further(visible);
    }

    fn decision(&mut self, number: usize, model: &Model, results: &[(char, String)]) -> (Decision, char) {
        let mut decision = Decision {
            id: format!("d{number}"),
            variable: None,
            decisions: Vec::new(),
            knowledge: Vec::new(),
            logic: Logic::List(Vec::new()),
        };
        for known in &model.decisions {
            if self.percent(65) {
                decision.decisions.push(known.id.clone());
            }
        }
        for known in &model.knowledge {
            if self.percent(80) {
                decision.knowledge.push(known.id.clone());
            }
        }
        self.visible(model, &decision, results);
        let (logic, letter) = match model.knowledge.first().filter(|_| !decision.knowledge.is_empty()) {
            Some(knowledge) if self.percent(30) => (self.invocation(knowledge), 'a'),
            _ => self.logic(),
        };
        decision.logic = logic;
        if self.percent(70) {
            let type_name = if self.percent(20) { Some(self.type_of(letter)) } else { None };
            decision.variable = Some((format!("r{number}"), type_name));
        }
        (decision, letter)
    }

    /// The name of a type, occasionally of another one.
    fn type_of(&mut self, letter: char) -> &'static str {
        let letter = if self.percent(10) { *self.grammar.random().choose(&TYPES) } else { letter };
        match letter {
            'n' => "number",
            's' => "string",
            'b' => "boolean",
            'd' => "date",
            _ => "Any",
        }
    }

    /// Decision tables, and occasionally something else, with the type of the result.
    fn logic(&mut self) -> (Logic, char) {
        match self.below(20) {
            0 | 1 => {
                let letter = *self.grammar.random().choose(&TYPES);
                (Logic::Literal(self.grammar.expression(letter, 2)), letter)
            }
            2 => (self.context(), 'c'),
            3 => (Logic::List((0..self.below(4)).map(|_| self.literal('n')).collect()), 'l'),
            4 => {
                let row = |of: &mut Self| vec![of.literal('n'), of.literal('s')];
                let rows = (0..=self.below(3)).map(|_| row(self)).collect();
                (Logic::Relation(vec!["one".to_owned(), "two".to_owned()], rows), 'a')
            }
            _ => {
                let (table, letter) = self.table();
                (Logic::Table(table), letter)
            }
        }
    }

    fn literal(&mut self, letter: char) -> Logic {
        Logic::Literal(self.grammar.expression(letter, 1))
    }

    fn context(&mut self) -> Logic {
        let mut entries =
            vec![(Some("one".to_owned()), self.literal('n')), (Some("two".to_owned()), self.literal('s'))];
        if self.percent(30) {
            let body = self.grammar.expression('n', 1);
            entries.push((Some("double".to_owned()), Logic::Function("x".to_owned(), format!("x * 2 + ({body})"))));
            entries.push((Some("three".to_owned()), Logic::Literal("double(one)".to_owned())));
            entries.push((None, Logic::Literal("[one, two, three]".to_owned())));
        } else if self.percent(40) {
            entries.push((None, Logic::Table(self.table().0)));
        } else if self.percent(40) {
            entries.push((Some("nested".to_owned()), Logic::Table(self.table().0)));
        } else {
            entries.push((Some("three".to_owned()), Logic::Literal("one + 1".to_owned())));
        }
        Logic::Context(entries)
    }

    fn knowledge(&mut self) -> Knowledge {
        let mut parameters: Vec<(String, Option<&'static str>)> = Vec::new();
        for (name, type_name) in [("u", "number"), ("w", "string")] {
            if self.percent(70) {
                parameters.push((name.to_owned(), *self.grammar.random().choose(&[Some(type_name), None])));
            }
        }
        let visible = parameters.iter().map(|(name, _)| if name == "u" { ('n', name) } else { ('s', name) });
        let visible = visible.map(|(letter, name)| (letter, name.clone())).collect();
        self.grammar.set_further(visible);
        let logic = self.logic().0;
        Knowledge { id: "rate".to_owned(), parameters, logic }
    }

    /// Binds the parameters, occasionally not all.
    fn invocation(&mut self, knowledge: &Knowledge) -> Logic {
        let mut bindings = Vec::new();
        for (name, _) in &knowledge.parameters {
            if self.percent(95) {
                let letter = if name == "u" { 'n' } else { 's' };
                bindings.push((name.clone(), self.grammar.expression(letter, 1)));
            }
        }
        Logic::Invocation(knowledge.id.clone(), bindings)
    }

    fn table(&mut self) -> (Table, char) {
        let chosen = self.grammar.random().weighted(&HIT_POLICIES).copied();
        let (hit_policy, aggregation) = chosen.unwrap_or((None, None));
        let prioritised = matches!(hit_policy, Some("PRIORITY" | "OUTPUT ORDER"));
        let inputs = *self.grammar.random().choose(&[1, 1, 1, 2, 2, 3, 4]);
        let mut outputs = *self.grammar.random().choose(&[1, 1, 1, 2, 2, 3]);
        if hit_policy == Some("COLLECT") && aggregation.is_some() && self.percent(95) {
            outputs = 1;
        }
        let types: Vec<(char, char)> = (0..inputs).map(|_| *self.grammar.random().choose(&INPUTS)).collect();
        let mut table = Table { hit_policy, aggregation, ..Table::default() };
        for (number, (letter, _)) in types.iter().enumerate() {
            let input = self.input(number + 1, *letter);
            table.inputs.push(input);
        }
        let columns: Vec<Column> = (0..outputs).map(|_| self.column(hit_policy, aggregation)).collect();
        for (number, column) in columns.iter().enumerate() {
            let output = self.output(number, column, outputs == 1, prioritised);
            table.outputs.push(output);
        }
        let rules = if self.percent(20) { 8 + self.below(20) } else { self.below(6) };
        // Few of a hundred rows of tests let everything pass.
        let dashes = if self.percent(50) { 10 } else { 35 };
        for number in 1..=rules {
            let tests = types.iter().map(|(_, tests)| self.test(*tests, dashes)).collect();
            let results = columns.iter().map(|column| self.result(column)).collect();
            let id = self.sometimes(80, |_| format!("rule{number}"));
            table.rules.push(Rule { id, tests, results });
        }
        // Ids are unique in a file, also where it has several tables.
        let suffix = self.grammar.random().index(1 << 40);
        let ids = table.rules.iter_mut().map(|rule| &mut rule.id);
        let ids = ids.chain(table.inputs.iter_mut().map(|input| &mut input.id));
        for id in ids.chain(table.outputs.iter_mut().map(|output| &mut output.id)).flatten() {
            *id = format!("{id}_{suffix}");
        }
        let single = matches!(hit_policy, None | Some("UNIQUE" | "FIRST" | "ANY" | "PRIORITY"));
        let letter = match (single, outputs) {
            (true, 1) => columns[0].letter,
            (true, _) => 'c',
            (false, _) if aggregation.is_some() => 'n',
            (false, _) => 'l',
        };
        (table, letter)
    }

    fn input(&mut self, number: usize, letter: char) -> Input {
        let depth = *self.grammar.random().choose(&[0, 0, 1]);
        Input {
            id: self.sometimes(80, |_| format!("input{number}")),
            label: self.sometimes(30, |_| format!("Input {number}")),
            expression: self.grammar.expression(letter, depth),
            values: self.sometimes(10, |_| "\"a\", \"b\"".to_owned()),
        }
    }

    fn column(&mut self, hit_policy: Option<&str>, aggregation: Option<&str>) -> Column {
        let (letter, literal) = match (hit_policy, aggregation) {
            (Some("COLLECT"), Some(_)) if self.percent(90) => ('n', 'v'),
            (Some("PRIORITY" | "OUTPUT ORDER"), _) => {
                *self.grammar.random().choose(&[('s', 'h'), ('s', 'h'), ('n', 'g')])
            }
            _ => *self.grammar.random().choose(&[('n', 'v'), ('s', 'w'), ('b', 'x'), ('d', 'y')]),
        };
        let count = if hit_policy == Some("ANY") { 1 + self.below(2) } else { 4 };
        Column { letter, choices: (0..count).map(|_| self.grammar.operand(literal)).collect() }
    }

    fn output(&mut self, number: usize, column: &Column, is_single: bool, prioritised: bool) -> Output {
        let mut values = column.choices.clone();
        values.sort();
        values.dedup();
        if self.percent(50) {
            values.reverse();
        }
        if self.percent(10) {
            values.truncate(1);
        }
        let name = ["one", "two", "three"][number].to_owned();
        let default = if self.percent(90) { column.letter } else { 'f' };
        Output {
            id: self.sometimes(80, |_| format!("output{}", number + 1)),
            name: if is_single && self.percent(30) { None } else { Some(name) },
            label: self.sometimes(30, |_| format!("Output {}", number + 1)),
            values: self.sometimes(if prioritised { 95 } else { 15 }, |_| values.join(", ")),
            default: self.sometimes(25, |of| of.grammar.expression(default, 1)),
        }
    }

    fn test(&mut self, letter: char, dashes: usize) -> String {
        if self.percent(dashes) {
            return self.grammar.random().copy_of(&["-", "-", "-", "", " - "]).to_owned();
        }
        let letter = if self.percent(4) { *self.grammar.random().choose(&['N', 'S', 'B', 'D', 'X']) } else { letter };
        self.grammar.composed(letter, 1).unwrap_or_else(|| "-".to_owned())
    }

    fn result(&mut self, column: &Column) -> String {
        match self.below(100) {
            0..70 => self.grammar.random().choose(&column.choices).clone(),
            70..94 => self.grammar.expression(column.letter, 1),
            94..98 => self.grammar.operand('f'),
            _ => self.grammar.expression('a', 1),
        }
    }

    /// A value for most of the variables, mostly of its type.
    fn variables(&mut self) -> String {
        const NUMBERS: [&str; 11] = ["0", "1", "2", "3", "5", "10", "-1", "2.5", "1.0", "100", "null"];
        const TEXTS: [&str; 8] = ["\"a\"", "\"b\"", "\"gold\"", "\"silver\"", "\"\"", "\"A\"", "\"2\"", "null"];
        const CONDITIONS: [&str; 5] = ["true", "false", "true", "false", "null"];
        const DATES: [&str; 6] =
            ["\"2024-01-15\"", "\"2024-02-29\"", "\"2024-06-30\"", "\"2025-12-31\"", "\"2024-02-30\"", "null"];
        const LISTS: [&str; 6] = ["[1,2,3]", "[5]", "[]", "[0,2.5,-1]", "[1,null]", "null"];
        const LISTS_OF_TEXTS: [&str; 5] = ["[\"a\",\"b\"]", "[\"gold\"]", "[]", "[\"\",null]", "null"];
        const CONTEXTS: [&str; 4] = ["{\"x\":2,\"name\":\"gold\"}", "{\"x\":null}", "{}", "null"];
        /// The first of the names.
        const SCALARS: usize = 9;
        let names: [(&str, &[&'static str]); 13] = [
            ("a", &NUMBERS),
            ("b", &NUMBERS),
            ("n", &NUMBERS),
            ("s", &TEXTS),
            ("t", &TEXTS),
            ("p", &CONDITIONS),
            ("q", &CONDITIONS),
            ("on", &DATES),
            ("due", &DATES),
            ("l", &LISTS),
            ("m", &LISTS_OF_TEXTS),
            ("c", &CONTEXTS),
            ("u", &NUMBERS),
        ];
        let mut entries = Vec::new();
        for (name, values) in names {
            // `u` is the name of a parameter too.
            if !self.percent(if name == "u" { 10 } else { 95 }) {
                continue;
            }
            // Lists count as their only item, and items as lists, which the reference does not support.
            let is_scalar = !matches!(name, "l" | "m" | "c");
            let values = if is_scalar && self.percent(2) { names[self.below(SCALARS)].1 } else { values };
            entries.push(format!("\"{name}\":{}", self.grammar.random().copy_of(values)));
        }
        format!("{{{}}}", entries.join(","))
    }
}

/// An argument for a parameter.
fn by_name(parameter: &str) -> &'static str {
    if parameter == "u" { "a" } else { "s" }
}
