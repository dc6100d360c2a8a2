// Evaluates decisions with the reference's decision engine, line by line.
//
// In:  the file, the id of the decision and the variables as one JSON array of three texts: ["<definitions …", "d1", "{}"].
// Out: the outcome as one JSON object in one line: {"invalid": problems} for a file that is refused; else the evaluated
//      decisions, and either the output, or the message and the decision of the failure.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.camunda.zeebe.dmn.DecisionEngine;
import io.camunda.zeebe.dmn.DecisionEngineFactory;
import io.camunda.zeebe.dmn.DecisionEvaluationResult;
import io.camunda.zeebe.dmn.EvaluatedDecision;
import io.camunda.zeebe.dmn.EvaluatedInput;
import io.camunda.zeebe.dmn.EvaluatedOutput;
import io.camunda.zeebe.dmn.MatchedRule;
import io.camunda.zeebe.dmn.ParsedDecisionRequirementsGraph;
import io.camunda.zeebe.dmn.impl.VariablesContext;
import io.camunda.zeebe.protocol.impl.encoding.MsgPackConverter;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

public final class Decisions {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(final String[] arguments) throws Exception {
    final DecisionEngine engine = DecisionEngineFactory.createDecisionEngine();
    final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    final BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
    // What libraries print is no outcome.
    System.setOut(System.err);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      final JsonNode request = JSON.readTree(line);
      out.write(JSON.writeValueAsString(
          outcome(engine, request.get(0).asText(), request.get(1).asText(), request.get(2).asText())));
      out.newLine();
      if (!in.ready()) {
        out.flush();
      }
    }
    out.flush();
  }

  private static ObjectNode outcome(
      final DecisionEngine engine, final String file, final String decision, final String variables) {
    final ObjectNode told = JSON.createObjectNode();
    try {
      final ParsedDecisionRequirementsGraph graph =
          engine.parse(new ByteArrayInputStream(file.getBytes(StandardCharsets.UTF_8)));
      if (!graph.isValid()) {
        return told.put("invalid", graph.getFailureMessage());
      }
      final Map<String, Object> given =
          MsgPackConverter.convertToMap(new UnsafeBuffer(MsgPackConverter.convertToMsgPack(variables)));
      final DecisionEvaluationResult result =
          engine.evaluateDecisionById(graph, decision, new VariablesContext(given));
      final ArrayNode evaluated = told.putArray("evaluated");
      for (final EvaluatedDecision each : result.getEvaluatedDecisions()) {
        tell(each, evaluated.addObject());
      }
      if (result.isFailure()) {
        told.put("failure", result.getFailureMessage()).put("failed", result.getFailedDecisionId());
      } else {
        told.set("output", value(result.getOutput()));
      }
      return told;
    } catch (final Throwable failure) {
      return JSON.createObjectNode().put("exception", String.valueOf(failure));
    }
  }

  private static void tell(final EvaluatedDecision decision, final ObjectNode told) throws Exception {
    told.put("id", decision.decisionId()).put("name", decision.decisionName());
    told.put("type", decision.decisionType().name());
    told.set("output", value(decision.decisionOutput()));
    final ArrayNode inputs = told.putArray("inputs");
    for (final EvaluatedInput input : decision.evaluatedInputs()) {
      inputs.addObject().put("id", input.inputId()).put("name", input.inputName())
          .set("value", value(input.inputValue()));
    }
    final ArrayNode rules = told.putArray("rules");
    for (final MatchedRule rule : decision.matchedRules()) {
      final ObjectNode toldRule = rules.addObject().put("id", rule.ruleId()).put("index", rule.ruleIndex());
      final ArrayNode outputs = toldRule.putArray("outputs");
      for (final EvaluatedOutput output : rule.evaluatedOutputs()) {
        outputs.addObject().put("id", output.outputId()).put("name", output.outputName())
            .set("value", value(output.outputValue()));
      }
    }
  }

  private static JsonNode value(final DirectBuffer buffer) throws Exception {
    return JSON.readTree(MsgPackConverter.convertToJson(buffer));
  }
}
