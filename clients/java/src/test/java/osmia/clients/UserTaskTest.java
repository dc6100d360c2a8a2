package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.CamundaClient;
import io.camunda.client.api.response.DeploymentEvent;
import io.camunda.client.api.response.Form;
import io.camunda.client.api.response.ProcessInstanceEvent;
import io.camunda.client.api.search.enums.UserTaskState;
import io.camunda.client.api.search.response.UserTask;
import io.grpc.Status.Code;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Work for people. The client does all of it over REST, so nothing here runs over gRPC. */
class UserTaskTest {
  private final CamundaClient client = Server.client();
  private String id;
  private Form form;

  @BeforeEach
  void deploy() throws IOException {
    Assumptions.assumeTrue(Server.prefersRest(), "user tasks are there over REST only");
    id = Server.uniqueId("user-task");
    String schema = Files.readString(Path.of("..", "shared", "user-task.form")).replace("PROCESS_ID", id);
    DeploymentEvent deployed =
        client
            .newDeployResourceCommand()
            .addResourceBytes(Model.text("user-task", id).getBytes(StandardCharsets.UTF_8), id + ".bpmn")
            .addResourceBytes(schema.getBytes(StandardCharsets.UTF_8), id + ".form")
            .send()
            .join();
    form = deployed.getForm().get(0);
  }

  @Test
  void aTaskHasWhatItsModelSays() {
    ProcessInstanceEvent instance = create("ann");

    UserTask task = only(instance.getProcessInstanceKey());

    assertEquals("Decide", task.getName());
    assertEquals(UserTaskState.CREATED, task.getState());
    assertEquals("ann", task.getAssignee());
    assertEquals(List.of("sales", "support"), task.getCandidateGroups());
    assertEquals(60, task.getPriority());
    assertEquals(Map.of("kind", "decision"), task.getCustomHeaders());
    assertEquals(form.getFormKey(), task.getFormKey());
    assertEquals(2099, task.getDueDate().getYear());
    assertNotNull(task.getCreationDate());
    assertEquals(task.getName(), get(task).getName());
  }

  @Test
  void tasksAreFoundByWhoIsToDoThem() {
    String person = id + "-somebody";
    long instance = create(person).getProcessInstanceKey();
    create("other");

    List<UserTask> found =
        client
            .newUserTaskSearchRequest()
            .filter(filter -> filter.assignee(person).state(UserTaskState.CREATED))
            .send()
            .join()
            .items();

    assertEquals(1, found.size());
    assertEquals(instance, found.get(0).getProcessInstanceKey());
    assertEquals(2, of(filter -> filter.bpmnProcessId(id).candidateGroup("sales")).size());
    assertEquals(0, of(filter -> filter.bpmnProcessId(id).candidateGroup("other")).size());
    assertEquals(1, of(filter -> filter.bpmnProcessId(id).localVariables(Map.of("who", "\"" + person + "\""))).size());
    assertEquals(1, of(filter -> filter.bpmnProcessId(id).processInstanceVariables(Map.of("person", "\"other\""))).size());
  }

  @Test
  void aTaskIsTakenGivenAndGivenBack() {
    UserTask task = only(create("ann").getProcessInstanceKey());
    long key = task.getUserTaskKey();

    Status.refused(
        Code.FAILED_PRECONDITION,
        () -> client.newAssignUserTaskCommand(key).assignee("bob").allowOverride(false).send().join());
    client.newAssignUserTaskCommand(key).assignee("bob").action("hand over").send().join();
    assertEquals("bob", get(task).getAssignee());
    client.newUnassignUserTaskCommand(key).send().join();
    assertNull(get(task).getAssignee());
    client.newAssignUserTaskCommand(key).assignee("cid").allowOverride(false).send().join();
    assertEquals("cid", get(task).getAssignee());
  }

  @Test
  void attributesChangeAndAreTakenAway() {
    UserTask task = only(create("ann").getProcessInstanceKey());
    long key = task.getUserTaskKey();

    client
        .newUpdateUserTaskCommand(key)
        .priority(80)
        .candidateGroups("legal")
        .candidateUsers("eve")
        .followUpDate("2098-01-31T09:00:00Z")
        .send()
        .join();
    UserTask updated = get(task);
    assertEquals(80, updated.getPriority());
    assertEquals(List.of("legal"), updated.getCandidateGroups());
    assertEquals(List.of("eve"), updated.getCandidateUsers());
    assertEquals(2098, updated.getFollowUpDate().getYear());
    assertEquals(2099, updated.getDueDate().getYear());

    client.newUpdateUserTaskCommand(key).clearDueDate().clearCandidateGroups().send().join();
    UserTask cleared = get(task);
    assertNull(cleared.getDueDate());
    assertEquals(List.of(), cleared.getCandidateGroups());
    assertEquals(List.of("eve"), cleared.getCandidateUsers());
    Status.refused(Code.INVALID_ARGUMENT, () -> client.newUpdateUserTaskCommand(key).priority(101).send().join());
  }

  @Test
  void aCompletionGivesVariablesAndEndsTheTask() {
    long instance = create("ann").getProcessInstanceKey();
    UserTask task = only(instance);
    long key = task.getUserTaskKey();

    client.newCompleteUserTaskCommand(key).variables(Map.of("answer", "yes")).action("approve").send().join();

    UserTask completed = get(task);
    assertEquals(UserTaskState.COMPLETED, completed.getState());
    assertNotNull(completed.getCompletionDate());
    assertEquals(
        1,
        client
            .newVariableSearchRequest()
            .filter(filter -> filter.processInstanceKey(instance).name("answer").value("\"yes\""))
            .send()
            .join()
            .items()
            .size());
    Status.refused(Code.NOT_FOUND, () -> client.newCompleteUserTaskCommand(key).send().join());
  }

  @Test
  void aCancelledInstanceTakesItsTaskWithIt() {
    long instance = create("ann").getProcessInstanceKey();
    UserTask task = only(instance);

    client.newCancelInstanceCommand(instance).send().join();

    assertEquals(UserTaskState.CANCELED, get(task).getState());
  }

  @Test
  void aTaskAndAProcessHaveTheirForms() {
    UserTask task = only(create("ann").getProcessInstanceKey());

    var ofTask = client.newUserTaskGetFormRequest(task.getUserTaskKey()).send().join();
    var ofProcess = client.newProcessDefinitionGetFormRequest(task.getProcessDefinitionKey()).send().join();

    assertEquals(form.getFormKey(), ofTask.getFormKey());
    assertTrue(String.valueOf(ofTask.getSchema()).contains("textfield"), String.valueOf(ofTask.getSchema()));
    assertEquals(form.getFormKey(), ofProcess.getFormKey());
  }

  @Test
  void aTaskShowsTheVariablesThatItSees() {
    UserTask task = only(create("ann").getProcessInstanceKey());

    List<String> names =
        client.newUserTaskVariableSearchRequest(task.getUserTaskKey()).send().join().items().stream()
            .map(variable -> variable.getName())
            .sorted()
            .toList();

    assertEquals(List.of("person", "who"), names);
  }

  private ProcessInstanceEvent create(String person) {
    return client
        .newCreateInstanceCommand()
        .bpmnProcessId(id)
        .latestVersion()
        .variables(Map.of("person", person))
        .send()
        .join();
  }

  private List<UserTask> of(
      java.util.function.Consumer<io.camunda.client.api.search.filter.UserTaskFilter> filter) {
    return client.newUserTaskSearchRequest().filter(filter).send().join().items();
  }

  private UserTask only(long instance) {
    List<UserTask> found = of(filter -> filter.processInstanceKey(instance));
    assertEquals(1, found.size());
    return found.get(0);
  }

  private UserTask get(UserTask task) {
    return client.newUserTaskGetRequest(task.getUserTaskKey()).send().join();
  }
}
