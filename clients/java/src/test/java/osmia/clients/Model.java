package osmia.clients;

import io.camunda.client.api.response.DeploymentEvent;
import io.camunda.client.api.response.Process;
import io.camunda.client.api.response.ProcessInstanceEvent;
import io.camunda.client.api.response.ProcessInstanceResult;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletionStage;

/** A shared model deployed under a process id of its own. */
record Model(String id, Process deployed) {
  private static final Path SHARED = Path.of("..", "shared");

  /** Deploys the shared model of this name under a unique process id. */
  static Model deploy(String name) {
    String id = Server.uniqueId(name);
    return new Model(id, deployText(id, text(name, id)).getProcesses().get(0));
  }

  /** The model's XML with {@code PROCESS_ID} replaced, so that job types are unique too. */
  static String text(String name, String id) {
    try {
      return Files.readString(SHARED.resolve(name + ".bpmn")).replace("PROCESS_ID", id);
    } catch (IOException e) {
      throw new IllegalStateException("The shared model " + name + " cannot be read.", e);
    }
  }

  static DeploymentEvent deployText(String id, String xml) {
    return Server.client()
        .newDeployResourceCommand()
        .addResourceBytes(xml.getBytes(StandardCharsets.UTF_8), id + ".bpmn")
        .send()
        .join();
  }

  /** The job type of the task with this element id. */
  String jobType(String elementId) {
    return id + "-" + elementId;
  }

  ProcessInstanceEvent create(Map<String, Object> variables) {
    return Server.client()
        .newCreateInstanceCommand()
        .bpmnProcessId(id)
        .latestVersion()
        .variables(variables)
        .send()
        .join();
  }

  long create() {
    return create(Map.of()).getProcessInstanceKey();
  }

  /** Creates an instance and answers when it has completed; the test does the work meanwhile. */
  CompletionStage<ProcessInstanceResult> createWithResult(Map<String, Object> variables) {
    return Server.client()
        .newCreateInstanceCommand()
        .bpmnProcessId(id)
        .latestVersion()
        .variables(variables)
        .withResult()
        .send();
  }
}
