//! Listeners of user tasks: who asks for a change is answered when they are done.

use super::*;

const MODEL: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<process id="watched" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>
<userTask id="t"><extensionElements><zeebe:userTask/><zeebe:taskListeners>
<zeebe:taskListener eventType="assigning" type="watch"/><zeebe:taskListener eventType="updating" type="watch"/>
<zeebe:taskListener eventType="completing" type="watch"/></zeebe:taskListeners></extensionElements></userTask></process></definitions>"#;

/// One who asks, and one who listens.
struct Watched {
    asking: Connection,
    listening: Connection,
    element: String,
    path: String,
}

impl Watched {
    fn start(server: &Server) -> Watched {
        let (mut asking, listening) = (Connection::open(server), Connection::open(server));
        asking.deploy(&[("watched.bpmn", MODEL.as_bytes())]);
        let created = asking.tell("POST", "/v2/process-instances", r#"{"processDefinitionId":"watched"}"#);
        let filter = json!({"filter": {"processInstanceKey": created["processInstanceKey"]}}).to_string();
        let task = asking.tell("POST", "/v2/user-tasks/search", &filter)["items"][0].clone();
        let text = |name: &str| task[name].as_str().expect("a key").to_owned();
        let path = format!("/v2/user-tasks/{}", text("userTaskKey"));
        Watched { asking, listening, element: text("elementInstanceKey"), path }
    }

    /// Sends a request that is not answered yet, and waits for the job of its listener.
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Value {
        self.asking.send(&request(method, path, &body.to_string()));
        let wanted = r#"{"type":"watch","timeout":600000,"maxJobsToActivate":1,"requestTimeout":60000}"#;
        self.listening.tell("POST", "/v2/jobs/activation", wanted)["jobs"][0].clone()
    }

    fn complete(&mut self, job: &Value, result: Value) {
        let path = format!("/v2/jobs/{}/completion", job["jobKey"].as_str().expect("a key"));
        self.listening.done("POST", &path, &json!({"result": result}).to_string());
    }

    fn task(&mut self) -> Value {
        self.listening.tell("GET", &self.path.clone(), "")
    }

    fn is_denied(&mut self, path: &str) {
        let (status, title, detail) = self.asking.read(true).problem(path);
        assert_eq!((status, &*title), (409, "INVALID_STATE"), "{detail}");
        assert!(detail.contains("was denied by a task listener. Reason to deny: 'not now'"), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_task_waits_for_its_listeners() {
    let (server, _data) = start(&[]).await;
    let mut watched = Watched::start(&server);
    let denied = || json!({"type": "userTask", "denied": true, "deniedReason": "not now"});
    let assignment = format!("{}/assignment", watched.path);

    let job = watched.ask("POST", &assignment, &json!({"assignee": "ann"}));
    assert_eq!((&job["kind"], &job["listenerEventType"]), (&json!("TASK_LISTENER"), &json!("ASSIGNING")));
    let key = watched.path.trim_start_matches("/v2/user-tasks/");
    let told = json!({"action": "assign", "assignee": "ann", "candidateGroups": [], "candidateUsers": [],
        "changedAttributes": ["assignee"], "dueDate": null, "followUpDate": null, "formKey": null, "priority": 50,
        "userTaskKey": key});
    assert_eq!(job["userTask"], told);
    let task = watched.task();
    assert_eq!((&task["state"], &task["assignee"]), (&json!("ASSIGNING"), &json!(null)), "nobody has it yet");
    let again = (assignment.as_str(), r#"{"assignee":"bob"}"#);
    watched.listening.refused(("POST", again.0, again.1), 409, "INVALID_STATE", "in state 'ASSIGNING'");
    watched.complete(&job, denied());
    watched.is_denied(&assignment);
    let task = watched.task();
    assert_eq!((&task["state"], &task["assignee"]), (&json!("CREATED"), &json!(null)));

    let job = watched.ask("POST", &assignment, &json!({"assignee": "ann"}));
    let corrections = json!({"assignee": "bob", "candidateUsers": ["eve"], "priority": 9, "dueDate": null});
    watched.complete(&job, json!({"corrections": corrections}));
    assert_eq!(watched.asking.read(false).status, 204);
    let task = watched.task();
    assert_eq!((&task["assignee"], &task["candidateUsers"]), (&json!("bob"), &json!(["eve"])));
    assert_eq!((&task["state"], &task["priority"]), (&json!("CREATED"), &json!(9)));

    let path = watched.path.clone();
    let job = watched.ask("PATCH", &path, &json!({"changeset": {"priority": 70}}));
    watched.complete(&job, denied());
    watched.is_denied(&path);
    let variables = format!("/v2/element-instances/{}/variables", watched.element);
    let job = watched.ask("PUT", &variables, &json!({"variables": {"answer": 1}}));
    assert_eq!((&job["variables"], &job["listenerEventType"]), (&json!({"answer": 1}), &json!("UPDATING")));
    watched.complete(&job, denied());
    watched.is_denied(&variables);
    let job = watched.ask("PUT", &variables, &json!({"variables": {"answer": 2}}));
    watched.complete(&job, json!(null));
    assert_eq!(watched.asking.read(false).status, 204);

    let completion = format!("{path}/completion");
    let job = watched.ask("POST", &completion, &json!({"variables": {"answer": 3}}));
    assert_eq!(job["variables"], json!({"answer": 3}));
    watched.complete(&job, denied());
    watched.is_denied(&completion);
    let job = watched.ask("POST", &completion, &json!({"variables": {"answer": 4}}));
    watched.complete(&job, json!({"denied": false}));
    assert_eq!(watched.asking.read(false).status, 204);
    assert_eq!(watched.task()["state"], "COMPLETED");
    let denied = r#"{"filter":{"isDenied":true,"kind":"TASK_LISTENER"}}"#;
    let found = watched.listening.tell("POST", "/v2/jobs/search", denied)["items"].as_array().expect("items").clone();
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|job| job["isDenied"] == true && job["deniedReason"] == "not now"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_too_long_is_told_so_and_the_change_still_happens() {
    let (server, _data) = start(&["--request-timeout", "15s"]).await;
    let mut watched = Watched::start(&server);
    let path = format!("{}/completion", watched.path);
    let job = watched.ask("POST", &path, &json!({}));
    let (status, title, detail) = watched.asking.read(true).problem(&path);
    assert_eq!((status, &*title), (504, "DEADLINE_EXCEEDED"), "{detail}");
    assert_eq!(watched.task()["state"], "COMPLETING");
    let wrong = json!({"result": {"denied": true, "corrections": {"priority": 3}}}).to_string();
    let completion = format!("/v2/jobs/{}/completion", job["jobKey"].as_str().expect("a key"));
    watched.listening.refused(("POST", &completion, &wrong), 400, "INVALID_ARGUMENT", "give one of the two");
    watched.complete(&job, json!(null));
    assert_eq!(watched.task()["state"], "COMPLETED");
}
