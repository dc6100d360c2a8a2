package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.ActivatedJob;
import io.camunda.client.api.response.EvaluateConditionalResponse;
import io.grpc.Status.Code;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Events that happen because variables are as they are, which clients can ask for since 8.9. */
class ConditionSince89Test {
  private static final long UNKNOWN_KEY = 2251799813685248L + 4_000_000_000L;

  @Test
  void aConditionThatHoldsStartsAnInstance() {
    Model model = Model.deploy("conditions");

    EvaluateConditionalResponse few = evaluate(Map.of("place", model.id(), "stock", 10));
    EvaluateConditionalResponse enough = evaluate(Map.of("place", model.id(), "stock", 11, "weight", 6));

    assertEquals(List.of(), few.getProcessInstances());
    assertEquals("<default>", enough.getTenantId());
    assertTrue(enough.getConditionalEvaluationKey() > 0);
    var started = enough.getProcessInstances().get(0);
    assertEquals(1, enough.getProcessInstances().size());
    assertEquals(model.deployed().getProcessDefinitionKey(), started.getProcessDefinitionKey());
    ActivatedJob send = Jobs.pollOne(model.jobType("send"));
    assertEquals(started.getProcessInstanceKey(), send.getProcessInstanceKey());
    assertEquals(Map.of("place", model.id(), "stock", 11, "weight", 6), send.getVariablesAsMap());
  }

  @Test
  void anInstanceWaitsForItsConditions() {
    Model model = Model.deploy("conditions");
    long instance = start(model);
    Jobs.assertNone(model.jobType("send"));

    set(instance, Map.of("weight", 5));
    Jobs.assertNone(model.jobType("send"));
    set(instance, Map.of("weight", 6));
    ActivatedJob send = Jobs.pollOne(model.jobType("send"));
    set(instance, Map.of("address", "elsewhere"));

    ActivatedJob redirect = Jobs.pollOne(model.jobType("redirect"));
    assertEquals("elsewhere", redirect.getVariable("address"));
    Status.refused(Code.NOT_FOUND, () -> Jobs.complete(send));
    Jobs.complete(redirect);
    Status.refused(Code.NOT_FOUND, () -> Server.client().newCancelInstanceCommand(instance).send().join());
  }

  @Test
  void onlyTheDefinitionThatWasNamedIsLookedAt() {
    Model model = Model.deploy("conditions");
    Model other = Model.deploy("one-task");
    Map<String, Object> variables = Map.of("place", model.id(), "stock", 11);

    Status.refused(Code.NOT_FOUND, () -> evaluate(variables, UNKNOWN_KEY));
    assertEquals(
        List.of(), evaluate(variables, other.deployed().getProcessDefinitionKey()).getProcessInstances());
    assertEquals(
        1, evaluate(variables, model.deployed().getProcessDefinitionKey()).getProcessInstances().size());
  }

  private static long start(Model model) {
    var started = evaluate(Map.of("place", model.id(), "stock", 11), model.deployed().getProcessDefinitionKey());
    return started.getProcessInstances().get(0).getProcessInstanceKey();
  }

  private static EvaluateConditionalResponse evaluate(Map<String, Object> variables) {
    return Server.client().newEvaluateConditionalCommand().variables(variables).send().join();
  }

  private static EvaluateConditionalResponse evaluate(Map<String, Object> variables, long key) {
    return Server.client().newEvaluateConditionalCommand().variables(variables).processDefinitionKey(key).send().join();
  }

  private static void set(long instance, Map<String, Object> variables) {
    Server.client().newSetVariablesCommand(instance).variables(variables).send().join();
  }
}
