//! From a path to its operation.

use std::collections::HashMap;

use super::operations::{OPERATIONS, Operation};
use super::search::Read;

/// How many parts of a path differ at most.
const PARAMETERS: usize = 2;

/// The operations that exist here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    GetTopology,
    GetStatus,
    GetLicense,
    GetAuthentication,
    PinClock,
    ResetClock,
    CreateDeployment,
    DeleteResource,
    GetResource,
    GetResourceContent,
    GetResourceContentBinary,
    CreateProcessInstance,
    CancelProcessInstance,
    ModifyProcessInstance,
    MigrateProcessInstance,
    SetVariables,
    ActivateAdHocElements,
    ActivateJobs,
    CompleteJob,
    FailJob,
    ThrowJobError,
    UpdateJob,
    ResolveIncident,
    ResolveIncidentsOfInstance,
    GetSystemConfiguration,
    PublishMessage,
    CorrelateMessage,
    BroadcastSignal,
    EvaluateDecision,
    EvaluateConditionals,
    CompleteUserTask,
    AssignUserTask,
    UnassignUserTask,
    UpdateUserTask,
    EvaluateExpression,
    CreateGlobalTaskListener,
    UpdateGlobalTaskListener,
    DeleteGlobalTaskListener,
    /// What only reads.
    Read(Read),
}

impl Existing {
    const ALL: &[(&str, Existing)] = &[
        ("getTopology", Existing::GetTopology),
        ("getStatus", Existing::GetStatus),
        ("getLicense", Existing::GetLicense),
        ("getAuthentication", Existing::GetAuthentication),
        ("pinClock", Existing::PinClock),
        ("resetClock", Existing::ResetClock),
        ("createDeployment", Existing::CreateDeployment),
        ("deleteResource", Existing::DeleteResource),
        ("getResource", Existing::GetResource),
        ("getResourceContent", Existing::GetResourceContent),
        ("getResourceContentBinary", Existing::GetResourceContentBinary),
        ("createProcessInstance", Existing::CreateProcessInstance),
        ("cancelProcessInstance", Existing::CancelProcessInstance),
        ("modifyProcessInstance", Existing::ModifyProcessInstance),
        ("migrateProcessInstance", Existing::MigrateProcessInstance),
        ("createElementInstanceVariables", Existing::SetVariables),
        ("activateAdHocSubProcessActivities", Existing::ActivateAdHocElements),
        ("activateJobs", Existing::ActivateJobs),
        ("completeJob", Existing::CompleteJob),
        ("failJob", Existing::FailJob),
        ("throwJobError", Existing::ThrowJobError),
        ("updateJob", Existing::UpdateJob),
        ("resolveIncident", Existing::ResolveIncident),
        ("resolveProcessInstanceIncidents", Existing::ResolveIncidentsOfInstance),
        ("getSystemConfiguration", Existing::GetSystemConfiguration),
        ("publishMessage", Existing::PublishMessage),
        ("correlateMessage", Existing::CorrelateMessage),
        ("broadcastSignal", Existing::BroadcastSignal),
        ("evaluateDecision", Existing::EvaluateDecision),
        ("evaluateConditionals", Existing::EvaluateConditionals),
        ("completeUserTask", Existing::CompleteUserTask),
        ("assignUserTask", Existing::AssignUserTask),
        ("unassignUserTask", Existing::UnassignUserTask),
        ("updateUserTask", Existing::UpdateUserTask),
        ("evaluateExpression", Existing::EvaluateExpression),
        ("createGlobalTaskListener", Existing::CreateGlobalTaskListener),
        ("updateGlobalTaskListener", Existing::UpdateGlobalTaskListener),
        ("deleteGlobalTaskListener", Existing::DeleteGlobalTaskListener),
    ];

    /// The operation with a name, if it exists here.
    pub(super) fn of_name(name: &str) -> Option<Existing> {
        let reads = Read::ALL.iter().map(|(known, read)| (*known, Existing::Read(*read)));
        Self::ALL.iter().copied().chain(reads).find(|(known, _)| *known == name).map(|(_, existing)| existing)
    }
}

/// All operations, to be found by path.
pub(super) struct Routes {
    /// By the second part of the path, which tells most of them apart.
    by_part: HashMap<&'static str, Vec<Route>>,
}

/// A path and a method that lead to an operation.
pub(super) struct Route {
    pub operation: &'static Operation,
    /// None when it does not exist here yet.
    pub existing: Option<Existing>,
    /// Its place in [`OPERATIONS`].
    pub number: usize,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Word(&'static str),
    Parameter,
}

/// The parts of a path that differ, in their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parameters<'a>([&'a str; PARAMETERS]);

impl<'a> Parameters<'a> {
    pub(super) fn first(&self) -> &'a str {
        self.0[0]
    }
}

/// What a path leads to.
pub(super) enum Found<'r, 'p> {
    Operation(&'r Route, Parameters<'p>),
    /// There are operations, but of these methods.
    OtherMethods(Vec<&'static str>),
    Nothing,
}

impl Routes {
    pub(super) fn new() -> Routes {
        let mut by_part: HashMap<_, Vec<Route>> = HashMap::new();
        for (number, operation) in OPERATIONS.iter().enumerate() {
            let part = |part: &'static str| if part.starts_with('{') { Part::Parameter } else { Part::Word(part) };
            let parts = operation.path.split('/').skip(1).map(part).collect();
            let second = operation.path.split('/').nth(2).unwrap_or_default();
            let route = Route { operation, existing: Existing::of_name(operation.name), number, parts };
            by_part.entry(second).or_default().push(route);
        }
        // Of the paths that fit, the one with words where others have parameters is meant.
        for routes in by_part.values_mut() {
            routes.sort_by_key(|route| route.parts.iter().map(|part| *part == Part::Parameter).collect::<Vec<_>>());
        }
        Routes { by_part }
    }

    /// The operation of a path and a method.
    pub(super) fn find<'p>(&self, method: &str, path: &'p str) -> Found<'_, 'p> {
        let second = path.split('/').nth(2).unwrap_or_default();
        let mut methods = Vec::new();
        for route in self.by_part.get(second).into_iter().flatten() {
            let Some(parameters) = route.parameters(path) else { continue };
            if route.operation.method == method {
                return Found::Operation(route, parameters);
            }
            methods.push(route.operation.method);
        }
        if methods.is_empty() { Found::Nothing } else { Found::OtherMethods(methods) }
    }
}

impl Route {
    fn parameters<'p>(&self, path: &'p str) -> Option<Parameters<'p>> {
        let mut parameters = Parameters::default();
        let mut places = parameters.0.iter_mut();
        let mut given = path.split('/').skip(1);
        for part in &self.parts {
            let given = given.next()?;
            match part {
                Part::Word(word) if *word == given => {}
                Part::Parameter if !given.is_empty() => *places.next()? = given,
                _ => return None,
            }
        }
        given.next().is_none().then_some(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(method: &str, path: &str) -> &'static str {
        match Routes::new().find(method, path) {
            Found::Operation(route, _) => route.operation.name,
            Found::OtherMethods(_) => "other methods",
            Found::Nothing => "nothing",
        }
    }

    #[test]
    fn every_operation_is_found_by_its_path() {
        let routes = Routes::new();
        for operation in OPERATIONS {
            let path: Vec<&str> =
                operation.path.split('/').map(|part| if part.starts_with('{') { "7" } else { part }).collect();
            let Found::Operation(route, _) = routes.find(operation.method, &path.join("/")) else {
                panic!("{operation:?} is not found")
            };
            assert_eq!(route.operation, operation);
        }
        for name in Existing::ALL.iter().map(|(name, _)| name).chain(Read::ALL.iter().map(|(name, _)| name)) {
            assert!(OPERATIONS.iter().any(|operation| operation.name == *name), "{name} is an operation");
        }
    }

    #[test]
    fn words_go_before_parameters_and_what_is_not_there_is_not_found() {
        assert_eq!(name("GET", "/v2/process-instances/7"), "getProcessInstance");
        assert_eq!(name("POST", "/v2/process-instances/search"), "searchProcessInstances");
        assert_eq!(name("POST", "/v2/process-instances/7/cancellation"), "cancelProcessInstance");
        assert_eq!(name("GET", "/cluster/v2/topology"), "getClusterTopology");
        assert_eq!(name("DELETE", "/v2/topology"), "other methods");
        for nothing in ["", "/", "/v2", "/v2/", "/v2/topology/", "/v1/topology", "/v2/jobs//completion", "*"] {
            assert_eq!(name("GET", nothing), "nothing", "{nothing}");
        }
        let routes = Routes::new();
        let Found::Operation(_, parameters) = routes.find("POST", "/v2/jobs/17/completion") else {
            panic!("it exists")
        };
        assert_eq!(parameters.first(), "17");
        let Found::OtherMethods(methods) = routes.find("PUT", "/v2/jobs/17") else { panic!("there is another method") };
        assert_eq!(methods, ["PATCH"]);
    }
}
