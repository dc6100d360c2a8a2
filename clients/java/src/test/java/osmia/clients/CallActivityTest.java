package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CallActivityTest {
  @Test
  void theCalledInstanceGetsVariablesAndGivesVariables() {
    Model called = Model.deploy("one-task");
    Model caller = Model.deploy("call-activity");
    var result = caller.createWithResult(Map.of("called", called.id(), "a", 1)).toCompletableFuture();

    ActivatedJob work = Jobs.pollOne(called.jobType("work"));
    assertEquals(called.id(), work.getBpmnProcessId());
    assertEquals(Map.of("called", called.id(), "a", 1), work.getVariablesAsMap());
    Jobs.complete(work, Map.of("b", 2));
    ActivatedJob after = Jobs.pollOne(caller.jobType("after"));

    assertNotEquals(work.getProcessInstanceKey(), after.getProcessInstanceKey());
    Map<String, Object> variables = Map.of("called", called.id(), "a", 1, "b", 2);
    assertEquals(variables, after.getVariablesAsMap());
    Jobs.complete(after);
    assertEquals(variables, result.join().getVariablesAsMap());
  }

  @Test
  void cancellingTheCallerCancelsTheCalled() {
    Model called = Model.deploy("one-task");
    Model caller = Model.deploy("call-activity");
    long instance = caller.create(Map.of("called", called.id())).getProcessInstanceKey();
    ActivatedJob work = Jobs.pollOne(called.jobType("work"));

    Server.client().newCancelInstanceCommand(instance).send().join();

    Status.refused(Code.NOT_FOUND, () -> Jobs.complete(work));
    Status.refused(Code.NOT_FOUND, () -> cancel(work.getProcessInstanceKey()));
  }

  @Test
  void theCalledInstanceCannotBeCancelledAlone() {
    Model called = Model.deploy("one-task");
    Model caller = Model.deploy("call-activity");
    long instance = caller.create(Map.of("called", called.id())).getProcessInstanceKey();
    ActivatedJob work = Jobs.pollOne(called.jobType("work"));

    String message =
        Status.refused(Code.FAILED_PRECONDITION, () -> cancel(work.getProcessInstanceKey()));

    assertTrue(message.contains(Long.toString(instance)), message);
    Jobs.complete(work);
    Jobs.pollOne(caller.jobType("after"));
  }

  @Test
  void anErrorOfTheCalledIsCaughtAtTheCall() {
    Model called = Model.deploy("one-task");
    Model caller = Model.deploy("call-activity");
    long instance = caller.create(Map.of("called", called.id())).getProcessInstanceKey();
    ActivatedJob work = Jobs.pollOne(called.jobType("work"));

    ErrorTest.throwError(work, "OUT_OF_STOCK", Map.of());

    assertEquals(instance, Jobs.pollOne(caller.jobType("reorder")).getProcessInstanceKey());
    Status.refused(Code.NOT_FOUND, () -> Jobs.complete(work));
  }

  @Test
  void aProcessThatIsMissingIsAnIncidentUntilItIsThere() throws Exception {
    Model caller = Model.deploy("call-activity");
    String missing = Server.uniqueId("missing");
    long instance = caller.create(Map.of("called", missing)).getProcessInstanceKey();

    var incident = Records.incident(instance);
    assertEquals("CALLED_ELEMENT_ERROR", incident.errorType());
    assertTrue(incident.errorMessage().contains(missing), incident.errorMessage());
    Model.deployText(missing, Model.text("one-task", missing));
    Server.client().newResolveIncidentCommand(incident.key()).send().join();

    Jobs.pollOne(missing + "-work");
  }

  private static void cancel(long processInstanceKey) {
    Server.client().newCancelInstanceCommand(processInstanceKey).send().join();
  }
}
