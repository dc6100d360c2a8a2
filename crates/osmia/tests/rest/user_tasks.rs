//! User tasks: what people and task lists do with them.

use super::*;

const MODEL: &str = include_str!("../../../../clients/shared/user-task.bpmn");
const FORM: &str = include_str!("../../../../clients/shared/user-task.form");

struct Tasks {
    connection: Connection,
    form: String,
}

impl Tasks {
    fn deploy(server: &Server) -> Tasks {
        let mut connection = Connection::open(server);
        let (model, form) = (MODEL.replace("PROCESS_ID", "ask"), FORM.replace("PROCESS_ID", "ask"));
        let deployed = connection.deploy(&[("ask.bpmn", model.as_bytes()), ("ask.form", form.as_bytes())]);
        let form = deployed["deployments"][1]["form"]["formKey"].as_str().expect("a form").to_owned();
        Tasks { connection, form }
    }

    /// Starts an instance and answers its key.
    fn start(&mut self, person: &str) -> String {
        let body = json!({"processDefinitionId": "ask", "variables": {"person": person, "who": "nobody"}});
        let created = self.connection.tell("POST", "/v2/process-instances", &body.to_string());
        created["processInstanceKey"].as_str().expect("a key").to_owned()
    }

    fn search(&mut self, filter: Value) -> Vec<Value> {
        let sort = json!([{"field": "creationDate"}, {"field": "priority", "order": "DESC"}]);
        let body = json!({"filter": filter, "sort": sort});
        let found = self.connection.tell("POST", "/v2/user-tasks/search", &body.to_string());
        found["items"].as_array().expect("items").clone()
    }

    /// The path of the task of an instance.
    fn path_of(&mut self, instance: &str) -> String {
        let found = self.search(json!({"processInstanceKey": instance}));
        assert_eq!(found.len(), 1, "{found:?}");
        format!("/v2/user-tasks/{}", found[0]["userTaskKey"].as_str().expect("a key"))
    }

    fn get(&mut self, path: &str) -> Value {
        self.connection.tell("GET", path, "")
    }

    fn done(&mut self, method: &str, path: &str, body: Value) {
        self.connection.done(method, path, &if body.is_null() { String::new() } else { body.to_string() });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_found_assigned_changed_and_completed() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut tasks = Tasks::deploy(&server);
    let (instance, _other) = (tasks.start("ann"), tasks.start("bob"));
    let path = tasks.path_of(&instance);
    let task = tasks.get(&path);
    for (name, expected) in [
        ("name", json!("Decide")),
        ("state", json!("CREATED")),
        ("assignee", json!("ann")),
        ("candidateGroups", json!(["sales", "support"])),
        ("candidateUsers", json!([])),
        ("priority", json!(60)),
        ("dueDate", json!("2099-01-31T09:00:00.000Z")),
        ("customHeaders", json!({"kind": "decision"})),
        ("processName", json!("A person decides")),
        ("processDefinitionId", json!("ask")),
        ("processInstanceKey", json!(instance)),
        ("rootProcessInstanceKey", json!(instance)),
        ("formKey", json!(tasks.form)),
        ("completionDate", json!(null)),
    ] {
        assert_eq!(task[name], expected, "{name}");
    }
    for (filter, count) in [
        (json!({"assignee": "ann", "state": "CREATED"}), 1),
        (json!({"assignee": {"$in": ["ann", "bob"]}}), 2),
        (json!({"assignee": {"$like": "a*"}}), 1),
        (json!({"assignee": {"$exists": false}}), 0),
        (json!({"candidateGroup": "sales", "candidateUser": {"$exists": true}}), 0),
        (json!({"candidateGroup": "support"}), 2),
        (json!({"candidateGroup": {"$neq": "sales"}}), 0),
        (json!({"candidateGroup": {"$notIn": ["finance", "legal"]}}), 2),
        (json!({"candidateGroup": {"$exists": false}}), 0),
        (json!({"candidateUser": {"$exists": false}}), 2),
        (json!({"candidateUser": {"$neq": "eve"}, "candidateGroup": {"$like": "s*"}}), 2),
        (json!({"$or": [{"assignee": "ann"}, {"priority": {"$gt": 60}}]}), 1),
        (json!({"dueDate": {"$gt": "2099-01-01T00:00:00Z", "$lt": "2100-01-01T00:00:00Z"}}), 2),
        (json!({"processInstanceVariables": [{"name": "person", "value": "\"bob\""}]}), 1),
        (json!({"processInstanceVariables": [{"name": "who", "value": "\"bob\""}]}), 0),
        (json!({"localVariables": [{"name": "who", "value": "\"bob\""}]}), 1),
        (json!({"elementId": "decide", "name": "Decide", "processDefinitionId": "ask"}), 2),
    ] {
        assert_eq!(tasks.search(filter.clone()).len(), count, "{filter}");
    }

    let assignment = format!("{path}/assignment");
    let taken = json!({"assignee": "cid", "allowOverride": false}).to_string();
    tasks.connection.refused(("POST", &assignment, &taken), 409, "INVALID_STATE", "already been assigned");
    tasks.done("POST", &assignment, json!({"assignee": "cid"}));
    assert_eq!(tasks.get(&path)["assignee"], "cid");
    tasks.done("DELETE", &format!("{path}/assignee"), Value::Null);
    assert_eq!(tasks.get(&path)["assignee"], json!(null));
    tasks.connection.refused(("POST", &assignment, "{}"), 400, "INVALID_ARGUMENT", "No assignee provided.");

    let changes = json!({"candidateGroups": [], "candidateUsers": ["eve"], "priority": 80, "dueDate": "",
        "followUpDate": "2098-01-31T09:00:00+01:00"});
    tasks.done("PATCH", &path, json!({"changeset": changes, "action": "escalate"}));
    let task = tasks.get(&path);
    assert_eq!((&task["candidateGroups"], &task["candidateUsers"]), (&json!([]), &json!(["eve"])));
    assert_eq!((&task["priority"], &task["dueDate"]), (&json!(80), &json!(null)));
    assert_eq!(task["followUpDate"], "2098-01-31T08:00:00.000Z");
    assert_eq!(tasks.search(json!({"candidateUser": "eve"})).len(), 1);
    assert_eq!(tasks.search(json!({"candidateGroup": "sales"})).len(), 1);

    tasks.done("POST", &format!("{path}/completion"), json!({"variables": {"answer": 1}, "action": "approve"}));
    let task = tasks.get(&path);
    assert_eq!((&task["state"], task["completionDate"].is_string()), (&json!("COMPLETED"), true));
    let ended = tasks.get(&format!("/v2/process-instances/{instance}"));
    assert_eq!(ended["state"], "COMPLETED");
    let completion = format!("{path}/completion");
    tasks.connection.refused(("POST", &completion, ""), 404, "NOT_FOUND", "Command 'COMPLETE' rejected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_shows_its_form_and_the_variables_that_it_sees() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut tasks = Tasks::deploy(&server);
    let instance = tasks.start("ann");
    let path = tasks.path_of(&instance);
    let form = tasks.get(&format!("{path}/form"));
    assert_eq!((&form["formId"], &form["version"], &form["formKey"]), (&json!("ask"), &json!(1), &json!(tasks.form)));
    assert_eq!(form["schema"], FORM.replace("PROCESS_ID", "ask"));
    let variables = |tasks: &mut Tasks, what: &str, body: &str| {
        let found = tasks.connection.tell("POST", &format!("{path}/{what}/search"), body);
        let items = found["items"].as_array().expect("items").clone();
        let mut shown: Vec<String> =
            items.iter().map(|item| format!("{}={}", item["name"], item["value"]).replace(['"', '\\'], "")).collect();
        shown.sort();
        shown
    };
    assert_eq!(variables(&mut tasks, "variables", ""), ["person=ann", "who=ann", "who=nobody"]);
    assert_eq!(variables(&mut tasks, "effective-variables", ""), ["person=ann", "who=ann"]);
    assert_eq!(variables(&mut tasks, "variables", r#"{"filter":{"name":"person"}}"#), ["person=ann"]);
    let unknown = "/v2/user-tasks/2251799813999999";
    for what in ["", "/form"] {
        let path = format!("{unknown}{what}");
        tasks.connection.refused(("GET", &path, ""), 404, "NOT_FOUND", "User task with key");
    }
    let path = format!("{unknown}/variables/search");
    tasks.connection.refused(("POST", &path, "{}"), 404, "NOT_FOUND", "User task with key");
    for (method, what, body) in [
        ("POST", "/completion", "{}"),
        ("POST", "/assignment", r#"{"assignee":"ann"}"#),
        ("DELETE", "/assignee", ""),
        ("PATCH", "", r#"{"changeset":{"priority":1}}"#),
    ] {
        let path = format!("{unknown}{what}");
        tasks.connection.refused((method, &path, body), 404, "NOT_FOUND", "user task");
    }
    let filter = r#"{"filter":{"state":"OPEN"}}"#;
    tasks.connection.refused(("POST", "/v2/user-tasks/search", filter), 400, "Bad Request", "enum field 'state'");
    let sort = r#"{"sort":[{"field":"assignee"}]}"#;
    tasks.connection.refused(("POST", "/v2/user-tasks/search", sort), 400, "INVALID_ARGUMENT", "Unknown sortBy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_instance_takes_its_task_with_it() {
    let (server, _data) = start(&[]).await;
    let mut tasks = Tasks::deploy(&server);
    let instance = tasks.start("ann");
    let path = tasks.path_of(&instance);
    tasks.done("POST", &format!("/v2/process-instances/{instance}/cancellation"), Value::Null);
    let task = tasks.get(&path);
    assert_eq!((&task["state"], task["completionDate"].is_string()), (&json!("CANCELED"), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_with_tasks_and_how_much_was_used_is_told() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut tasks = Tasks::deploy(&server);
    let (instance, other) = (tasks.start("ann"), tasks.start("bob"));
    let path = tasks.path_of(&instance);
    tasks.done("DELETE", &format!("{path}/assignee"), Value::Null);
    tasks.done("POST", &format!("{path}/assignment"), json!({"assignee": "eve"}));
    let taken = r#"{"assignee":"mallory","allowOverride":false}"#;
    tasks.connection.refused(("POST", &format!("{path}/assignment"), taken), 409, "INVALID_STATE", "claim");
    tasks.done("PATCH", &path, json!({"changeset": {"priority": 1}}));
    tasks.done("POST", &format!("{path}/completion"), json!({}));
    let entries = |tasks: &mut Tasks, path: &str, body: Value| {
        let found = tasks.connection.tell("POST", path, &body.to_string());
        found["items"].as_array().expect("items").clone()
    };
    let of_task = format!("{path}/audit-logs/search");
    let by_time = json!({"sort": [{"field": "auditLogKey"}]});
    let told = entries(&mut tasks, &of_task, by_time);
    let done: Vec<_> = told.iter().map(|of| (of["operationType"].clone(), of["result"].clone())).collect();
    let expected = [
        ("ASSIGN", "SUCCESS"),
        ("UNASSIGN", "SUCCESS"),
        ("ASSIGN", "SUCCESS"),
        ("ASSIGN", "FAIL"),
        ("UPDATE", "SUCCESS"),
        ("COMPLETE", "SUCCESS"),
    ];
    assert_eq!(done, expected.map(|(operation, result)| (json!(operation), json!(result))));
    let task = path.rsplit('/').next().expect("a key");
    for entry in &told {
        for (name, expected) in [
            ("entityType", json!("USER_TASK")),
            ("category", json!("USER_TASKS")),
            ("entityKey", json!(task)),
            ("userTaskKey", json!(task)),
            ("processInstanceKey", json!(instance)),
            ("rootProcessInstanceKey", json!(instance)),
            ("processDefinitionId", json!("ask")),
            ("actorType", json!("ANONYMOUS")),
            ("actorId", Value::Null),
            ("tenantId", json!("<default>")),
        ] {
            assert_eq!(entry[name], expected, "{name} of {entry}");
        }
        let one = tasks.get(&format!("/v2/audit-logs/{}", entry["auditLogKey"].as_str().expect("a key")));
        assert_eq!(one, *entry);
    }
    let failed = json!({"filter": {"result": "FAIL"}});
    assert_eq!(entries(&mut tasks, "/v2/audit-logs/search", failed).len(), 1);
    let of_other = json!({"filter": {"processInstanceKey": other}});
    assert_eq!(entries(&mut tasks, "/v2/audit-logs/search", of_other).len(), 1, "it was given to bob");
    tasks.connection.refused(("GET", "/v2/audit-logs/2251799813695999", ""), 404, "NOT_FOUND", "Audit log entry");

    let year = "startTime=2020-01-01T00:00:00Z&endTime=2120-01-01T00:00:00Z";
    let used = tasks.get(&format!("/v2/system/usage-metrics?{year}"));
    let numbers = json!({"processInstances": 2, "decisionInstances": 0, "assignees": 3});
    let mut expected = numbers.clone();
    (expected["activeTenants"], expected["tenants"]) = (json!(1), json!({}));
    assert_eq!(used, expected);
    let by_tenant = tasks.get(&format!("/v2/system/usage-metrics?{year}&withTenants=true"));
    assert_eq!(by_tenant["tenants"], json!({"<default>": numbers}));
    let before = "startTime=2020-01-01T00:00:00Z&endTime=2020-01-02T00:00:00Z";
    let used = tasks.get(&format!("/v2/system/usage-metrics?{before}"));
    assert_eq!((&used["processInstances"], &used["activeTenants"]), (&json!(0), &json!(0)));
    let incomplete = "/v2/system/usage-metrics?startTime=2020-01-01T00:00:00Z";
    let (status, problem) = Server::request(&server.rest, "GET", incomplete, "");
    assert!(status == 400 && problem.contains("No endTime provided."), "{problem}");
}
