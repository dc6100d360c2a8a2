import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.camunda.zeebe.protocol.impl.record.value.adhocsubprocess.AdHocSubProcessInstructionRecord;
import io.camunda.zeebe.protocol.impl.record.value.job.JobRecord;
import io.camunda.zeebe.protocol.impl.record.value.job.JobResult;
import io.camunda.zeebe.protocol.impl.record.value.job.JobResultActivateElement;
import io.camunda.zeebe.protocol.record.ValueType;
import io.camunda.zeebe.protocol.record.intent.AdHocSubProcessInstructionIntent;
import io.camunda.zeebe.protocol.record.intent.JobIntent;
import io.camunda.zeebe.protocol.record.value.JobResultType;

/** What ad-hoc sub-processes do next, as a client or the worker of their job says it. */
final class AdHocSubProcesses {
  private static final ObjectMapper JSON = new ObjectMapper();

  private AdHocSubProcesses() {}

  static void choose(final Object gateway, final long key, final String json) throws Exception {
    final JsonNode choice = JSON.readTree(json);
    final var value = new AdHocSubProcessInstructionRecord();
    value.setAdHocSubProcessInstanceKey(key);
    value.setCancelRemainingInstances(choice.path("cancels").asBoolean());
    for (final JsonNode element : choice.path("elements")) {
      final var instruction = value.activateElements().add();
      instruction.setElementId(element.path("id").asText());
      if (element.has("variables")) {
        instruction.setVariables(Commands.variables(element.path("variables")));
      }
    }
    final var type = ValueType.AD_HOC_SUB_PROCESS_INSTRUCTION;
    Commands.write(gateway, type, AdHocSubProcessInstructionIntent.ACTIVATE, key, value);
  }

  static void decide(final Object gateway, final long job, final String json) throws Exception {
    final JsonNode choice = JSON.readTree(json);
    final var result = new JobResult().setType(JobResultType.AD_HOC_SUB_PROCESS);
    result.setCompletionConditionFulfilled(choice.path("fulfilled").asBoolean());
    result.setCancelRemainingInstances(choice.path("cancels").asBoolean());
    for (final JsonNode element : choice.path("elements")) {
      final var chosen = new JobResultActivateElement().setElementId(element.path("id").asText());
      if (element.has("variables")) {
        chosen.setVariables(Commands.variables(element.path("variables")));
      }
      result.addActivateElement(chosen);
    }
    final var value = new JobRecord().setResult(result);
    if (choice.has("variables")) {
      value.setVariables(Commands.variables(choice.path("variables")));
    }
    Commands.write(gateway, ValueType.JOB, JobIntent.COMPLETE, job, value);
  }
}
