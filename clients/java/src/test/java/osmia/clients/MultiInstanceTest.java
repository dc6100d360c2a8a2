package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.ActivatedJob;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class MultiInstanceTest {
  @Test
  void itemsAreWorkedOnTogetherAndThenOneByOneUntilEnoughAreDone() {
    Model model = Model.deploy("multi-instance");
    Map<String, Object> variables = Map.of("items", List.of("a", "b", "c"), "enough", 2);
    var result = model.createWithResult(variables).toCompletableFuture();

    List<ActivatedJob> checks = Jobs.poll(model.jobType("check"), 3);
    for (int n = 2; n >= 0; n--) {
      ActivatedJob check = checks.get(n);
      Jobs.complete(check, Map.of("verdict", check.getVariable("item") + " is good"));
    }
    for (int n = 1; n <= 2; n++) {
      ActivatedJob pack = Jobs.pollOne(model.jobType("pack"));
      assertEquals(n, pack.getVariable("loopCounter"));
      assertEquals(List.of("a", "b", "c").get(n - 1), pack.getVariable("item"));
      Jobs.complete(pack);
    }

    Map<String, Object> end = result.join().getVariablesAsMap();
    // The results are in the order of the items, not of their completion.
    assertEquals(List.of("a is good", "b is good", "c is good"), end.get("checked"));
    assertEquals(java.util.Arrays.asList(1, 2, null), end.get("packed"));
    assertTrue(!end.containsKey("item") && !end.containsKey("loopCounter"), end.toString());
  }

  @Test
  void withoutItemsNothingIsToBeDone() {
    Model model = Model.deploy("multi-instance");
    Map<String, Object> variables = Map.of("items", List.of(), "enough", 0);

    Map<String, Object> end = model.createWithResult(variables).toCompletableFuture().join().getVariablesAsMap();

    assertEquals(List.of(), end.get("checked"));
    assertEquals(List.of(), end.get("packed"));
  }

  @Test
  void itemsThatAreNoListAreAnIncident() throws Exception {
    Model model = Model.deploy("multi-instance");
    long instance = model.create(Map.of("items", "a, b")).getProcessInstanceKey();

    var incident = Records.incident(instance);
    assertEquals("EXTRACT_VALUE_ERROR", incident.errorType());
    assertEquals("check", incident.elementId());
    Server.client().newSetVariablesCommand(instance).variables(Map.of("items", List.of("a"))).send().join();
    Server.client().newResolveIncidentCommand(incident.key()).send().join();

    assertEquals("a", Jobs.pollOne(model.jobType("check")).getVariable("item"));
  }
}
