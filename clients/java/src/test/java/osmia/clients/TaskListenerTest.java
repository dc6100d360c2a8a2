package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.CamundaClient;
import io.camunda.client.api.CamundaFuture;
import io.camunda.client.api.command.CompleteUserTaskJobResultStep1;
import io.camunda.client.api.command.ProblemException;
import io.camunda.client.api.response.ActivatedJob;
import io.camunda.client.api.search.enums.JobKind;
import io.camunda.client.api.search.enums.ListenerEventType;
import io.camunda.client.api.search.enums.UserTaskState;
import io.camunda.client.api.search.response.UserTask;
import io.grpc.Status.Code;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Jobs that listen to what happens to a user task. The client asks for a change over REST whatever it prefers; who listens
 * takes and completes the job over what it prefers.
 */
class TaskListenerTest {
  private final CamundaClient client = Server.client();
  private Model model;
  private long instance;

  @BeforeEach
  void begin() {
    Server.needsRest();
    model = Model.deploy("task-listeners");
    instance = model.create();
  }

  @Test
  void aTaskIsThereWhenItsListenerSaysSo() {
    assertEquals(UserTaskState.CREATING, task().getState());

    complete(heard("creating", ListenerEventType.CREATING), result -> result.correctAssignee("ann").correctPriority(9));

    assertEquals(UserTaskState.CREATED, task().getState());
    assertEquals("ann", task().getAssignee());
    assertEquals(9, task().getPriority());
  }

  @Test
  void anAssignmentIsDeniedAndThenCorrected() {
    created();
    long key = task().getUserTaskKey();

    CamundaFuture<?> asked = client.newAssignUserTaskCommand(key).assignee("ann").action("claim").send();
    ActivatedJob job = heard("assigning", ListenerEventType.ASSIGNING);
    assertEquals("ann", job.getUserTask().getAssignee());
    assertEquals("claim", job.getUserTask().getAction());
    assertEquals(List.of("assignee"), job.getUserTask().getChangedAttributes());
    assertEquals(key, job.getUserTask().getUserTaskKey());
    assertEquals(UserTaskState.ASSIGNING, task().getState());
    complete(job, result -> result.deny(true, "not now"));
    isDenied(asked);
    assertNull(task().getAssignee());

    asked = client.newAssignUserTaskCommand(key).assignee("ann").send();
    String due = "2098-01-31T09:00:00Z";
    complete(
        heard("assigning", ListenerEventType.ASSIGNING),
        result ->
            result
                .correctAssignee("bob")
                .correctCandidateUsers(List.of("eve"))
                .correctCandidateGroups(List.of("legal"))
                .correctDueDate(due)
                .correctPriority(70));
    asked.join();
    UserTask corrected = task();
    assertEquals("bob", corrected.getAssignee());
    assertEquals(List.of("eve"), corrected.getCandidateUsers());
    assertEquals(List.of("legal"), corrected.getCandidateGroups());
    assertEquals(OffsetDateTime.parse(due).toInstant(), corrected.getDueDate().toInstant());
    assertEquals(70, corrected.getPriority());
    assertEquals(1, deniedJobs());
  }

  @Test
  void anUpdateIsDeniedAndThenCorrected() {
    created();
    long key = task().getUserTaskKey();

    CamundaFuture<?> asked = client.newUpdateUserTaskCommand(key).priority(80).send();
    complete(heard("updating", ListenerEventType.UPDATING), result -> result.deny(true, "not now"));
    isDenied(asked);
    assertEquals(50, task().getPriority());

    asked = client.newUpdateUserTaskCommand(key).priority(80).followUpDate("2098-01-31T09:00:00Z").send();
    complete(
        heard("updating", ListenerEventType.UPDATING),
        result -> result.correct(corrections -> corrections.priority(81).followUpDate("")));
    asked.join();
    assertEquals(81, task().getPriority());
    assertNull(task().getFollowUpDate());
  }

  @Test
  void aCompletionIsDeniedAndThenAccepted() {
    created();
    long key = task().getUserTaskKey();

    CamundaFuture<?> asked = client.newCompleteUserTaskCommand(key).variables(Map.of("answer", "no")).send();
    ActivatedJob job = heard("completing", ListenerEventType.COMPLETING);
    assertEquals(Map.of("answer", "no"), job.getVariablesAsMap());
    complete(job, result -> result.deny(true).deniedReason("not now"));
    isDenied(asked);
    assertEquals(UserTaskState.CREATED, task().getState());

    asked = client.newCompleteUserTaskCommand(key).variables(Map.of("answer", "yes")).send();
    complete(heard("completing", ListenerEventType.COMPLETING), result -> result.deny(false));
    asked.join();
    assertEquals(UserTaskState.COMPLETED, task().getState());
  }

  /** Who listens may speak another protocol than who asks. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aListenerAnswersOverGrpcAndOverRest(boolean overRest) {
    created();
    long key = task().getUserTaskKey();
    try (CamundaClient listening = Server.connect(overRest)) {
      CamundaFuture<?> asked = client.newAssignUserTaskCommand(key).assignee("ann").send();
      ActivatedJob job = Jobs.pollOne(listening, model.jobType("assigning"));
      ListenerTest.isOf(job, JobKind.TASK_LISTENER, ListenerEventType.ASSIGNING);
      assertEquals("ann", job.getUserTask().getAssignee());
      complete(listening, job, result -> result.deny(true, "not now"));
      isDenied(asked);

      asked = client.newAssignUserTaskCommand(key).assignee("ann").send();
      job = Jobs.pollOne(listening, model.jobType("assigning"));
      complete(listening, job, result -> result.correctAssignee("bob").correctCandidateGroups(List.of()));
      asked.join();
      assertEquals("bob", task().getAssignee());
    }
  }

  @Test
  void denialAndCorrectionsExcludeEachOther() {
    created();
    CamundaFuture<?> asked = client.newAssignUserTaskCommand(task().getUserTaskKey()).assignee("ann").send();
    ActivatedJob job = heard("assigning", ListenerEventType.ASSIGNING);

    Status.refused(Code.INVALID_ARGUMENT, () -> complete(job, result -> result.deny(true, "no").correctPriority(3)));
    Status.refused(Code.INVALID_ARGUMENT, () -> complete(job, result -> result.correctPriority(101)));

    Jobs.complete(job);
    asked.join();
    assertEquals("ann", task().getAssignee());
  }

  @Test
  void aTaskIsGoneWhenItsListenerSaysSo() {
    created();
    client.newCancelInstanceCommand(instance).send().join();

    ActivatedJob job = heard("canceling", ListenerEventType.CANCELING);
    assertEquals(UserTaskState.CANCELING, task().getState());
    Jobs.complete(job);

    assertEquals(UserTaskState.CANCELED, task().getState());
    Status.refused(Code.NOT_FOUND, () -> client.newCancelInstanceCommand(instance).send().join());
  }

  private void created() {
    Jobs.complete(heard("creating", ListenerEventType.CREATING));
  }

  private ActivatedJob heard(String event, ListenerEventType eventType) {
    ActivatedJob job = Jobs.pollOne(model.jobType(event));
    ListenerTest.isOf(job, JobKind.TASK_LISTENER, eventType);
    return job;
  }

  private void complete(ActivatedJob job, UnaryOperator<CompleteUserTaskJobResultStep1> says) {
    complete(client, job, says);
  }

  private static void complete(
      CamundaClient listening, ActivatedJob job, UnaryOperator<CompleteUserTaskJobResultStep1> says) {
    listening.newCompleteCommand(job).withResult(result -> says.apply(result.forUserTask())).send().join();
  }

  private void isDenied(CamundaFuture<?> asked) {
    ProblemException refusal = assertThrows(ProblemException.class, asked::join);
    assertEquals(409, refusal.code(), refusal.getMessage());
    String detail = refusal.details().getDetail();
    assertTrue(detail.contains("denied by a task listener. Reason to deny: 'not now'"), detail);
    assertEquals(UserTaskState.CREATED, task().getState());
  }

  private int deniedJobs() {
    return client
        .newJobSearchRequest()
        .filter(filter -> filter.processInstanceKey(instance).isDenied(true).deniedReason("not now"))
        .send()
        .join()
        .items()
        .size();
  }

  private UserTask task() {
    List<UserTask> found =
        client.newUserTaskSearchRequest().filter(filter -> filter.processInstanceKey(instance)).send().join().items();
    assertEquals(1, found.size());
    return found.get(0);
  }
}
