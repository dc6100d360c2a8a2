package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class VariablesTest {
  @Test
  void everyKindOfJsonValueComesBackAsItWent() {
    Model model = Model.deploy("straight-through");
    Map<String, Object> variables = new HashMap<>();
    variables.put("text", "quote \" backslash \\ newline \n bee \uD83D\uDC1D");
    variables.put("integer", 42);
    variables.put("large", 9_007_199_254_740_993L);
    variables.put("negative", -1);
    variables.put("decimal", 0.25);
    variables.put("yes", true);
    variables.put("nothing", null);
    variables.put("list", Arrays.asList(1, "two", null, List.of()));
    variables.put("object", Map.of("a", Map.of("b", List.of(Map.of()))));
    variables.put("a name with spaces", "x");

    var result = model.createWithResult(variables).toCompletableFuture().join();

    assertEquals(variables, result.getVariablesAsMap());
  }

  @Test
  void setOnTheInstanceChangesWhatTasksSee() {
    Model model = Model.deploy("two-tasks");
    long instance = model.create(Map.of("a", 1, "b", 1)).getProcessInstanceKey();
    ActivatedJob first = Jobs.pollOne(model.jobType("first"));

    var answer =
        Server.client().newSetVariablesCommand(instance).variables(Map.of("b", 2, "c", 3)).send().join();
    // REST answers without a body.
    assertTrue(Server.prefersRest() || answer.getKey() > 0);
    Jobs.complete(first);

    assertEquals(
        Map.of("a", 1, "b", 2, "c", 3),
        Jobs.pollOne(model.jobType("second")).getVariablesAsMap());
  }

  @Test
  void setOnAnElementGoesUpToWhereTheVariableIs() {
    Model model = Model.deploy("two-tasks");
    model.create(Map.of("a", 1));
    ActivatedJob first = Jobs.pollOne(model.jobType("first"));

    Server.client()
        .newSetVariablesCommand(first.getElementInstanceKey())
        .variables(Map.of("a", 2, "b", 2))
        .send()
        .join();
    Jobs.complete(first);

    assertEquals(
        Map.of("a", 2, "b", 2), Jobs.pollOne(model.jobType("second")).getVariablesAsMap());
  }

  @Test
  void localVariablesStayWithTheirElement() {
    Model model = Model.deploy("two-tasks");
    model.create(Map.of("a", 1));
    ActivatedJob first = Jobs.pollOne(model.jobType("first"));

    Server.client()
        .newSetVariablesCommand(first.getElementInstanceKey())
        .variables(Map.of("a", 2, "b", 2))
        .local(true)
        .send()
        .join();
    Jobs.fail(first, 1, "look again");
    ActivatedJob again = Jobs.pollOne(model.jobType("first"));
    assertEquals(Map.of("a", 2, "b", 2), again.getVariablesAsMap());
    Jobs.complete(again);

    assertEquals(Map.of("a", 1), Jobs.pollOne(model.jobType("second")).getVariablesAsMap());
  }

  @Test
  void anUnknownScopeIsNotFound() {
    Status.refused(
        Code.NOT_FOUND,
        () ->
            Server.client()
                .newSetVariablesCommand(2251799813685248L + 4_000_000_000L)
                .variables(Map.of("a", 1))
                .send()
                .join());
  }

  @Test
  void variablesThatAreNoObjectAreInvalid() {
    Server.needsGrpc();
    Server.needsFullGateway();
    Model model = Model.deploy("one-task");
    long instance = model.create();

    Status.refused(
        Code.INVALID_ARGUMENT,
        () -> Server.client().newSetVariablesCommand(instance).variables("[1]").send().join());
  }

  @Test
  void mappingsComputeWhatATaskSeesAndWhatLeavesIt() {
    Model model = Model.deploy("mappings");
    Map<String, Object> order = Map.of("customer", "Ada", "quantity", 3, "unitPrice", 7);
    var result = model.createWithResult(Map.of("order", order)).toCompletableFuture();

    ActivatedJob job = Jobs.pollOne(model.jobType("price"));
    assertEquals(
        Map.of("order", order, "customer", "Ada", "total", 21, "text", "order of Ada"),
        job.getVariablesAsMap());
    Jobs.complete(job, Map.of("discounted", 20, "internal", "stays here"));

    assertEquals(
        Map.of("order", order, "result", Map.of("price", 20)), result.join().getVariablesAsMap());
  }
}
