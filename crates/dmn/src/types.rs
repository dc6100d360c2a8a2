//! Item definitions, and whether a value is of a type.

use std::collections::BTreeMap;
use std::sync::Arc;

use feel::{Budget, Context, DefinedType, Environment, EvaluationError, Names, SimpleType, UnaryTests, Value};
use roxmltree::Node;

use crate::imports::Imports;
use crate::report::Problems;
use crate::xml::{child, children, is_true, present, trimmed_text};

/// The most types that refer to each other without an item component in between.
const MAXIMUM_TYPE_CHAIN: usize = 16;

/// How deeply values are compared with types: references and levels of values together.
const MAXIMUM_TYPE_DEPTH: u32 = 256;

/// In the name of a type, behind how many points the name of an import may end.
const MAXIMUM_POINTS: usize = 16;

/// Where a type is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeReference {
    /// Every value is of this type. Types that the file does not define are treated like this too, as the dialect does.
    Any,
    Simple(SimpleType),
    /// An index into the item definitions.
    Defined(u32),
    /// An index into the imports, and one into the item definitions of that model.
    Imported(u32, u32),
}

/// FEEL's own types whose names in a file differ from those in expressions, which are understood, too.
const NAMES_IN_FILES: [(SimpleType, &str); 3] = [
    (SimpleType::DateTime, "dateTime"),
    (SimpleType::YearMonthDuration, "yearMonthDuration"),
    (SimpleType::DayTimeDuration, "dayTimeDuration"),
];

fn simple_type(name: &str) -> Option<SimpleType> {
    let in_files = NAMES_IN_FILES.iter().find(|(_, known)| *known == name);
    in_files.map(|(simple, _)| *simple).or_else(|| SimpleType::named(name))
}

/// The name that messages give to one of FEEL's own types.
fn simple_name(simple: SimpleType) -> &'static str {
    let in_files = NAMES_IN_FILES.iter().find(|(known, _)| *known == simple);
    in_files.map_or(simple.name(), |(_, name)| name)
}

#[derive(Debug)]
struct ItemDefinition {
    name: Arc<str>,
    shape: Shape,
    is_collection: bool,
    /// What each value, or each item of a collection, must pass.
    allowed: Option<UnaryTests>,
    /// What the value as a whole must pass.
    constraint: Option<UnaryTests>,
}

#[derive(Debug)]
enum Shape {
    Of(TypeReference),
    Structure(Vec<(Arc<str>, TypeReference)>),
    Function,
}

/// The item definitions of a file.
#[derive(Debug, Default)]
pub(crate) struct Types {
    definitions: Vec<ItemDefinition>,
    by_name: BTreeMap<Arc<str>, u32>,
    imports: Vec<Arc<Types>>,
    imports_by_name: BTreeMap<Arc<str>, u32>,
}

impl Types {
    /// Reads the item definitions. Names are known before shapes, so that they can refer to each other.
    pub(crate) fn read(root: Node, names: &Names, imports: &Imports, problems: &mut Problems) -> Types {
        let mut types = Types::default();
        for (position, (name, imported)) in (0_u32..).zip(imports.types()) {
            types.imports.push(imported.clone());
            types.imports_by_name.entry(name.clone()).or_insert(position);
        }
        let nodes: Vec<Node> = children(root, "itemDefinition").collect();
        for (position, node) in nodes.iter().enumerate() {
            let Some(name) = present(*node, "name") else {
                problems.add(*node, "An item definition must have a name. Give it one.");
                continue;
            };
            let position = u32::try_from(position).expect("the limit of XML nodes is below u32::MAX");
            if types.by_name.insert(Arc::from(name), position).is_some() {
                problems
                    .add(*node, format!("The type '{name}' is defined more than once. Rename one of the definitions."));
            }
        }
        types.definitions = nodes.iter().map(|_| ItemDefinition::any()).collect();
        for (position, node) in nodes.iter().enumerate() {
            types.definitions[position] = types.definition(*node, names, problems);
        }
        types.check_chains(&nodes, problems);
        types
    }

    fn definition(&mut self, node: Node, names: &Names, problems: &mut Problems) -> ItemDefinition {
        let components: Vec<Node> = children(node, "itemComponent").collect();
        let shape = if !components.is_empty() {
            Shape::Structure(components.into_iter().filter_map(|part| self.component(part, names, problems)).collect())
        } else if child(node, "functionItem").is_some() {
            Shape::Function
        } else {
            Shape::Of(child(node, "typeRef").map_or(TypeReference::Any, |part| self.resolve(&trimmed_text(part))))
        };
        ItemDefinition {
            name: Arc::from(node.attribute("name").unwrap_or_default()),
            shape,
            is_collection: is_true(node, "isCollection"),
            allowed: constraint(node, "allowedValues", names, problems),
            constraint: constraint(node, "typeConstraint", names, problems),
        }
    }

    /// A component is a definition without a name in the file.
    fn component(&mut self, node: Node, names: &Names, problems: &mut Problems) -> Option<(Arc<str>, TypeReference)> {
        let Some(name) = present(node, "name") else {
            problems.add(node, "An item component must have a name. Give it one.");
            return None;
        };
        let definition = self.definition(node, names, problems);
        let index = u32::try_from(self.definitions.len()).expect("the limit of XML nodes is below u32::MAX");
        self.definitions.push(definition);
        Some((Arc::from(name), TypeReference::Defined(index)))
    }

    /// A value is compared along references to other types, which must come to an end.
    fn check_chains(&self, nodes: &[Node], problems: &mut Problems) {
        // How many references there are from each definition on, once that is known.
        let mut lengths: Vec<Option<usize>> = vec![None; self.definitions.len()];
        for start in 0..self.definitions.len() {
            let mut path = Vec::new();
            let mut next = Some(start);
            let mut length = 0;
            while let Some(current) = next {
                if let Some(known) = lengths[current] {
                    length = known;
                    break;
                }
                // What is on the path counts as known, so that a cycle ends the search.
                lengths[current] = Some(usize::MAX);
                path.push(current);
                next = match self.definitions[current].shape {
                    Shape::Of(TypeReference::Defined(next)) => Some(next as usize),
                    _ => None,
                };
            }
            for current in path.into_iter().rev() {
                length = length.saturating_add(1);
                lengths[current] = Some(length);
                let Some(node) = nodes.get(current).filter(|_| length > MAXIMUM_TYPE_CHAIN) else {
                    continue;
                };
                problems.add(
                    *node,
                    format!(
                        "The type '{}' refers to itself, or to others through more than {MAXIMUM_TYPE_CHAIN} types. Correct its \
                         type reference.",
                        self.definitions[current].name
                    ),
                );
            }
        }
    }

    /// The type of this name, with or without the prefix of FEEL's own types.
    pub(crate) fn resolve(&self, name: &str) -> TypeReference {
        let local = name.rsplit(':').next().unwrap_or(name);
        for name in [name, local] {
            if let Some(index) = self.by_name.get(name) {
                return TypeReference::Defined(*index);
            }
        }
        if let Some(imported) = self.resolve_imported(local) {
            return imported;
        }
        simple_type(local).map_or(TypeReference::Any, TypeReference::Simple)
    }

    /// `import.type`, where both names may have points, or a type of an import without a name.
    fn resolve_imported(&self, name: &str) -> Option<TypeReference> {
        let split = name.match_indices('.').take(MAXIMUM_POINTS).map(|(at, _)| (&name[..at], &name[at + 1..]));
        split.chain([("", name)]).find_map(|(import, name)| {
            let import = *self.imports_by_name.get(import)?;
            let index = *self.imports[import as usize].by_name.get(name)?;
            Some(TypeReference::Imported(import, index))
        })
    }

    /// The type in the attribute `typeRef`, or in the child of this name that DMN 1.1 has.
    pub(crate) fn of(&self, node: Node) -> TypeReference {
        match present(node, "typeRef") {
            Some(name) => self.resolve(name),
            None => child(node, "typeRef").map_or(TypeReference::Any, |part| self.resolve(&trimmed_text(part))),
        }
    }

    /// The name that messages give to a type.
    pub(crate) fn name(&self, reference: TypeReference) -> &str {
        match reference {
            TypeReference::Any => "Any",
            TypeReference::Simple(simple) => simple_name(simple),
            TypeReference::Defined(index) => &self.definitions[index as usize].name,
            TypeReference::Imported(import, index) => self.imports[import as usize].name(TypeReference::Defined(index)),
        }
    }

    /// The value as a value of the type; `None` if it is none. A list of one item counts as the item if that is of the
    /// type. Null is of every type. Each step of work is taken from the budget; without budget, nothing is of a type.
    pub(crate) fn conform(&self, value: &Value, reference: TypeReference, budget: &mut usize) -> Option<Value> {
        let check = &mut Check { budget, depth: 0, constrained: true };
        if reference == TypeReference::Any || value.is_null() || self.matches(value, reference, check) {
            return Some(value.clone());
        }
        match value {
            Value::List(items) if items.len() == 1 && self.matches(&items[0], reference, check) => {
                Some(items[0].clone())
            }
            _ => None,
        }
    }

    /// A value that is nested too deeply for its type is not of it.
    fn matches(&self, value: &Value, reference: TypeReference, check: &mut Check) -> bool {
        check.depth += 1;
        let matches = check.depth <= MAXIMUM_TYPE_DEPTH && self.matches_here(value, reference, check);
        check.depth -= 1;
        matches
    }

    fn matches_here(&self, value: &Value, reference: TypeReference, check: &mut Check) -> bool {
        *check.budget = check.budget.saturating_sub(1);
        if *check.budget == 0 {
            return false;
        }
        let definition = match reference {
            TypeReference::Any => return true,
            TypeReference::Simple(simple) => return value.is_null() || simple.contains(value),
            TypeReference::Defined(index) => &self.definitions[index as usize],
            TypeReference::Imported(import, index) => {
                return self.imports[import as usize].matches(value, TypeReference::Defined(index), check);
            }
        };
        let mut fits = |value: &Value| {
            value.is_null() || definition.shape_matches(self, value, check) && check.passes(&definition.allowed, value)
        };
        let shaped = match value {
            Value::List(items) if definition.is_collection => items.iter().all(fits),
            value => !definition.is_collection && fits(value),
        };
        shaped && check.passes(&definition.constraint, value)
    }

    /// The named types, for `instance of`.
    pub(crate) fn named(types: &Arc<Types>) -> Vec<(&str, Arc<dyn DefinedType>)> {
        let named = |index: &u32| Arc::new(Named { types: types.clone(), index: *index }) as Arc<dyn DefinedType>;
        types.by_name.iter().map(|(name, index)| (&**name, named(index))).collect()
    }
}

/// An item definition where an expression names it. What counts is the shape of a value.
struct Named {
    types: Arc<Types>,
    index: u32,
}

impl DefinedType for Named {
    fn contains(&self, value: &Value, budget: &mut usize) -> bool {
        !value.is_null()
            && self.types.matches(
                value,
                TypeReference::Defined(self.index),
                &mut Check { budget, depth: 0, constrained: false },
            )
    }
}

impl ItemDefinition {
    fn any() -> ItemDefinition {
        ItemDefinition {
            name: Arc::from(""),
            shape: Shape::Of(TypeReference::Any),
            is_collection: false,
            allowed: None,
            constraint: None,
        }
    }

    fn shape_matches(&self, types: &Types, value: &Value, check: &mut Check) -> bool {
        match (&self.shape, value) {
            (Shape::Of(reference), value) => types.matches(value, *reference, check),
            (Shape::Structure(components), Value::Context(context)) => {
                components.iter().all(|(name, reference)| has_component(types, context, name, *reference, check))
            }
            (Shape::Function, Value::Function(_)) => true,
            _ => false,
        }
    }
}

fn has_component(types: &Types, context: &Context, name: &str, reference: TypeReference, check: &mut Check) -> bool {
    context.get(name).is_some_and(|value| types.matches(value, reference, check))
}

/// A look at one value.
struct Check<'a> {
    budget: &'a mut usize,
    depth: u32,
    /// Whether allowed values and constraints count, besides the shape.
    constrained: bool,
}

impl Check<'_> {
    /// Constraints see nothing but the value.
    fn passes(&mut self, tests: &Option<UnaryTests>, value: &Value) -> bool {
        let Some(tests) = tests.as_ref().filter(|_| self.constrained) else {
            return true;
        };
        let step_limit = u32::try_from(*self.budget).unwrap_or(u32::MAX);
        let environment = Environment { step_limit, ..Environment::at(0) };
        let budget = Budget::of(&environment);
        let evaluation = tests.evaluate_within(value, &(), &environment, &budget);
        // What is stopped has no result: nothing is left then.
        let steps = match &evaluation {
            Err(error) if !matches!(error, EvaluationError::AssertionFailed { .. }) => usize::MAX,
            _ => budget.steps_used() as usize,
        };
        *self.budget = self.budget.saturating_sub(steps);
        evaluation.is_ok_and(|evaluation| evaluation.value.as_bool() == Some(true))
    }
}

/// The unary tests in a child such as `allowedValues`; without text there are none.
fn constraint(node: Node, name: &'static str, names: &Names, problems: &mut Problems) -> Option<UnaryTests> {
    let node = child(node, name)?;
    let text = child(node, "text").map(trimmed_text).filter(|text| !text.is_empty())?;
    let parsed = UnaryTests::parse_with(&text, feel::INPUT_NAME, names);
    match parsed.and_then(UnaryTests::unless_objected) {
        Ok(tests) => Some(tests),
        Err(error) => {
            problems.add(node, format!("FEEL unary-tests: {error}"));
            None
        }
    }
}
