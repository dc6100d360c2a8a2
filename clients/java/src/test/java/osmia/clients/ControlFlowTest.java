package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.camunda.client.api.response.ActivatedJob;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Gateways, sub-processes and every kind of task. */
class ControlFlowTest {
  @Test
  void anExclusiveGatewayTakesTheFlowWhoseConditionHolds() {
    Model model = Model.deploy("exclusive-gateway");

    takes(model, "review", Map.of("amount", 1000, "region", "EU"));
    takes(model, "automatic", Map.of("amount", 99.5, "region", "EU"));
    takes(model, "manual-entry", Map.of("amount", 1000, "region", "US"));
    takes(model, "manual-entry", Map.of("amount", 100, "region", "EU"));
  }

  private static void takes(Model model, String task, Map<String, Object> variables) {
    var result = model.createWithResult(variables).toCompletableFuture();
    Jobs.complete(Jobs.pollOne(model.jobType(task)), Map.of("by", task));
    assertEquals(task, result.join().getVariable("by"));
  }

  @Test
  void aParallelGatewayWaitsForAllBranches() {
    Model model = Model.deploy("parallel-gateway");
    var result = model.createWithResult(Map.of()).toCompletableFuture();
    ActivatedJob a = Jobs.pollOne(model.jobType("a"));
    ActivatedJob b = Jobs.pollOne(model.jobType("b"));
    ActivatedJob c = Jobs.pollOne(model.jobType("c"));

    Jobs.complete(c, Map.of("c", 3));
    Jobs.complete(a, Map.of("a", 1));
    Jobs.assertNone(model.jobType("after"));
    Jobs.complete(b, Map.of("b", 2));
    ActivatedJob after = Jobs.pollOne(model.jobType("after"));

    assertEquals(Map.of("a", 1, "b", 2, "c", 3), after.getVariablesAsMap());
    assertFalse(result.isDone());
    Jobs.complete(after);
    assertEquals(a.getProcessInstanceKey(), result.join().getProcessInstanceKey());
    Jobs.assertNone(model.jobType("after"));
  }

  @Test
  void aSubProcessKeepsItsVariablesToItself() {
    Model model = Model.deploy("sub-process");
    Map<String, Object> order = Map.of("items", List.of("a", "b", "c"));
    var result = model.createWithResult(Map.of("order", order)).toCompletableFuture();

    ActivatedJob box = Jobs.pollOne(model.jobType("box"));
    assertEquals(Map.of("order", order, "parcel", order), box.getVariablesAsMap());
    Jobs.complete(box, Map.of("parcel", Map.of("weight", 12), "order", "closed", "fresh", 1));
    ActivatedJob ship = Jobs.pollOne(model.jobType("ship"));
    Map<String, Object> outside = Map.of("order", "closed", "fresh", 1, "parcelWeight", 12);
    assertEquals(outside, ship.getVariablesAsMap());
    Jobs.complete(ship);

    assertEquals(outside, result.join().getVariablesAsMap());
    Jobs.assertNone(model.jobType("envelope"));
  }

  @Test
  void aSubProcessDecidesOnItsOwnVariables() {
    Model model = Model.deploy("sub-process");
    model.create(Map.of("order", Map.of("items", List.of("a")), "parcel", "outer"));

    assertEquals("envelope", Jobs.pollOne(model.jobType("envelope")).getElementId());
  }

  @Test
  void tasksOfAllKindsAreDoneByWorkersOrPass() {
    Model model = Model.deploy("task-kinds");
    var result = model.createWithResult(Map.of()).toCompletableFuture();

    for (String task : List.of("service", "send", "rule", "script")) {
      ActivatedJob job = Jobs.pollOne(model.jobType(task));
      assertEquals(task, job.getElementId());
      Jobs.complete(job, Map.of(task, true));
    }

    assertEquals(
        Map.of("service", true, "send", true, "rule", true, "script", true),
        result.join().getVariablesAsMap());
  }
}
