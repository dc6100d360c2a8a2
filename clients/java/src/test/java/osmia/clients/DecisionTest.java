package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.DeploymentEvent;
import io.camunda.client.api.response.EvaluateDecisionResponse;
import io.grpc.Status.Code;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class DecisionTest {
  @Test
  void theAnswerDescribesTheDecisions() {
    String id = Server.uniqueId("decision");

    DeploymentEvent deployment = deploy(id);

    var graph = deployment.getDecisionRequirements().get(0);
    assertEquals(id + "-graph", graph.getDmnDecisionRequirementsId());
    assertEquals("Discounts", graph.getDmnDecisionRequirementsName());
    assertEquals(1, graph.getVersion());
    assertEquals(id + ".dmn", graph.getResourceName());
    var decision = deployment.getDecisions().get(0);
    assertEquals(id + "-discount", decision.getDmnDecisionId());
    assertEquals("Discount", decision.getDmnDecisionName());
    assertEquals(1, decision.getVersion());
    assertEquals(graph.getDecisionRequirementsKey(), decision.getDecisionRequirementsKey());
  }

  @Test
  void anEvaluationTellsHowItCameToItsOutput() {
    String id = Server.uniqueId("decision");
    long key = deploy(id).getDecisions().get(0).getDecisionKey();

    EvaluateDecisionResponse response = evaluate(id, 20);

    assertEquals("10", response.getDecisionOutput());
    assertEquals(key, response.getDecisionKey());
    assertEquals(Server.prefersRest() ? null : "", response.getFailureMessage());
    var table =
        response.getEvaluatedDecisions().stream()
            .filter(decision -> decision.getDecisionId().equals(id + "-discount"))
            .findFirst()
            .orElseThrow();
    assertEquals("DECISION_TABLE", table.getDecisionType());
    assertEquals("Level", table.getEvaluatedInputs().get(0).getInputName());
    assertEquals("\"gold\"", table.getEvaluatedInputs().get(0).getInputValue());
    assertEquals("gold", table.getMatchedRules().get(0).getRuleId());
    assertEquals(1, table.getMatchedRules().get(0).getRuleIndex());
    assertEquals(
        "10", table.getMatchedRules().get(0).getEvaluatedOutputs().get(0).getOutputValue());
  }

  @Test
  void aFailedEvaluationIsAnAnswerThatNamesTheDecision() {
    String id = Server.uniqueId("decision");
    deploy(id);

    EvaluateDecisionResponse response = evaluate(id, -1);

    assertEquals(id + "-level", response.getFailedDecisionId());
    assertTrue(
        response.getFailureMessage().contains(id + "-discount"), response.getFailureMessage());
  }

  @Test
  void anUnknownDecisionIsNotFound() {
    String id = Server.uniqueId("decision");

    String message = Status.refused(Code.NOT_FOUND, () -> evaluate(id, 1));

    assertTrue(message.contains("no decision found for id '" + id + "-discount'"), message);
  }

  @Test
  void aProcessEvaluatesAScriptAndADecision() {
    String id = Server.uniqueId("decision");
    deploy(id);
    Model.deployText(id, Model.text("business-rule", id));

    var result =
        Server.client()
            .newCreateInstanceCommand()
            .bpmnProcessId(id)
            .latestVersion()
            .variables(Map.of("items", List.of(1, 2, 3)))
            .withResult()
            .send()
            .join();

    assertEquals(
        Map.of("items", List.of(1, 2, 3), "orders", 3, "discount", 5), result.getVariablesAsMap());
  }

  @Test
  void aDeletedGraphTakesItsDecisionsWithIt() {
    String id = Server.uniqueId("decision");
    long key = deploy(id).getDecisionRequirements().get(0).getDecisionRequirementsKey();

    Server.client().newDeleteResourceCommand(key).send().join();

    Status.refused(Code.NOT_FOUND, () -> evaluate(id, 1));
  }

  static DeploymentEvent deploy(String id) {
    try {
      String text = Files.readString(Path.of("..", "shared", "decision.dmn"));
      return Server.client()
          .newDeployResourceCommand()
          .addResourceBytes(
              text.replace("PROCESS_ID", id).getBytes(StandardCharsets.UTF_8), id + ".dmn")
          .send()
          .join();
    } catch (IOException e) {
      throw new IllegalStateException("The shared decision cannot be read.", e);
    }
  }

  static EvaluateDecisionResponse evaluate(String id, int orders) {
    return Server.client()
        .newEvaluateDecisionCommand()
        .decisionId(id + "-discount")
        .variables(Map.of("orders", orders))
        .send()
        .join();
  }
}
