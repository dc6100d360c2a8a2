import com.fasterxml.jackson.databind.ObjectMapper;
import io.camunda.zeebe.protocol.impl.record.value.job.JobRecord;
import io.camunda.zeebe.protocol.impl.record.value.job.JobResult;
import io.camunda.zeebe.protocol.impl.record.value.job.JobResultCorrections;
import io.camunda.zeebe.protocol.impl.record.value.usertask.UserTaskRecord;
import io.camunda.zeebe.protocol.impl.record.value.variable.VariableDocumentRecord;
import io.camunda.zeebe.protocol.record.ValueType;
import io.camunda.zeebe.protocol.record.intent.JobIntent;
import io.camunda.zeebe.protocol.record.intent.UserTaskIntent;
import io.camunda.zeebe.protocol.record.intent.VariableDocumentIntent;
import io.camunda.zeebe.protocol.record.value.VariableDocumentUpdateSemantic;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Commands about user tasks, written to the log of the engine behind its gateway. */
final class UserTasks {
  private UserTasks() {}

  @SuppressWarnings("unchecked")
  static void write(final Object gateway, final String intent, final long key, final String json) throws Exception {
    final Map<String, Object> attributes = new ObjectMapper().readValue(json, Map.class);
    final var value = new UserTaskRecord().setUserTaskKey(key);
    final List<String> changed = new ArrayList<>();
    for (final var attribute : attributes.entrySet()) {
      final Object given = attribute.getValue();
      switch (attribute.getKey()) {
        case "assignee" -> value.setAssignee((String) given);
        case "action" -> value.setAction((String) given);
        case "candidateGroupsList" -> value.setCandidateGroupsList((List<String>) given);
        case "candidateUsersList" -> value.setCandidateUsersList((List<String>) given);
        case "dueDate" -> value.setDueDate((String) given);
        case "followUpDate" -> value.setFollowUpDate((String) given);
        case "priority" -> value.setPriority((Integer) given);
        case "variables" -> value.setVariables(Commands.variables(given));
        default -> {}
      }
      if (!List.of("action", "variables").contains(attribute.getKey())) {
        changed.add(attribute.getKey());
      }
    }
    if (intent.equals("UPDATE")) {
      value.setChangedAttributes(changed);
    }
    Commands.write(gateway, ValueType.USER_TASK, UserTaskIntent.valueOf(intent), key, value);
  }

  /** The worker of a task listener is done. */
  @SuppressWarnings("unchecked")
  static void completeListener(final Object gateway, final long key, final String json) throws Exception {
    final Map<String, Object> said = new ObjectMapper().readValue(json, Map.class);
    final var given = (Map<String, Object>) said.get("corrections");
    final var corrections = new JobResultCorrections();
    given.forEach(
        (name, attribute) -> {
          switch (name) {
            case "assignee" -> corrections.setAssignee((String) attribute);
            case "candidateGroupsList" -> corrections.setCandidateGroupsList((List<String>) attribute);
            case "candidateUsersList" -> corrections.setCandidateUsersList((List<String>) attribute);
            case "dueDate" -> corrections.setDueDate((String) attribute);
            case "followUpDate" -> corrections.setFollowUpDate((String) attribute);
            case "priority" -> corrections.setPriority((Integer) attribute);
            default -> {}
          }
        });
    final var result =
        new JobResult()
            .setDenied((Boolean) said.get("denied"))
            .setDeniedReason((String) said.get("deniedReason"))
            .setCorrections(corrections)
            .setCorrectedAttributes(new ArrayList<>(given.keySet()));
    Commands.write(gateway, ValueType.JOB, JobIntent.COMPLETE, key, new JobRecord().setResult(result));
  }

  /** Variables of a scope, for which nobody waits. */
  static void setVariables(final Object gateway, final String semantics, final long scope, final String json)
      throws Exception {
    final var value =
        new VariableDocumentRecord()
            .setScopeKey(scope)
            .setUpdateSemantics(VariableDocumentUpdateSemantic.valueOf(semantics))
            .setVariables(Commands.variables(new ObjectMapper().readValue(json, Map.class)));
    Commands.write(gateway, ValueType.VARIABLE_DOCUMENT, VariableDocumentIntent.UPDATE, -1L, value);
  }
}
