package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.camunda.client.api.response.ProcessInstanceResult;
import io.grpc.Status.Code;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ResultTest {
  @Test
  void aProcessWithoutWaitingAnswersAtOnce() {
    Model model = Model.deploy("straight-through");

    ProcessInstanceResult result =
        model.createWithResult(Map.of("a", 1)).toCompletableFuture().join();

    assertEquals(model.id(), result.getBpmnProcessId());
    assertEquals(1, result.getVersion());
    assertEquals(Map.of("a", 1), result.getVariablesAsMap());
  }

  @Test
  void theResultHoldsWhatTheWorkersWrote() {
    Model model = Model.deploy("two-tasks");
    var result = model.createWithResult(Map.of("a", 1, "b", 1)).toCompletableFuture();

    Jobs.complete(Jobs.pollOne(model.jobType("first")), Map.of("b", 2));
    assertFalse(result.isDone());
    var second = Jobs.pollOne(model.jobType("second"));
    Jobs.complete(second, Map.of("c", Map.of("deep", "ü \"quoted\"")));

    assertEquals(second.getProcessInstanceKey(), result.join().getProcessInstanceKey());
    assertEquals(
        Map.of("a", 1, "b", 2, "c", Map.of("deep", "ü \"quoted\"")),
        result.join().getVariablesAsMap());
  }

  @Test
  void onlyTheAskedForVariablesAreFetched() {
    Model model = Model.deploy("straight-through");

    ProcessInstanceResult result =
        Server.client()
            .newCreateInstanceCommand()
            .bpmnProcessId(model.id())
            .latestVersion()
            .variables(Map.of("a", 1, "b", 2, "c", 3))
            .withResult()
            .fetchVariables("a", "c", "missing")
            .send()
            .join();

    assertEquals(Map.of("a", 1, "c", 3), result.getVariablesAsMap());
  }

  @Test
  void anUnknownProcessIsNotFound() {
    Status.refused(
        Code.NOT_FOUND,
        () ->
            Server.client()
                .newCreateInstanceCommand()
                .bpmnProcessId("no-such-process")
                .latestVersion()
                .withResult()
                .send()
                .join());
  }
}
