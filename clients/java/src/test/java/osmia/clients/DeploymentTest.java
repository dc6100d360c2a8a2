package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.DeploymentEvent;
import io.camunda.client.api.response.Process;
import io.grpc.Status.Code;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;

class DeploymentTest {
  @Test
  void theAnswerDescribesWhatWasDeployed() {
    String id = Server.uniqueId("deploy");

    DeploymentEvent deployment = Model.deployText(id, Model.text("one-task", id));

    assertTrue(deployment.getKey() > 0);
    assertEquals(1, deployment.getProcesses().size());
    Process process = deployment.getProcesses().get(0);
    assertEquals(id, process.getBpmnProcessId());
    assertEquals(1, process.getVersion());
    assertEquals(id + ".bpmn", process.getResourceName());
    assertTrue(process.getProcessDefinitionKey() > 0);
  }

  @Test
  void aChangedModelIsTheNextVersionAndTheSameModelIsNot() {
    String id = Server.uniqueId("versions");

    Process first = only(Model.deployText(id, Model.text("one-task", id)));
    Process same = only(Model.deployText(id, Model.text("one-task", id)));
    Process second = only(Model.deployText(id, Model.text("two-tasks", id)));

    assertEquals(1, same.getVersion());
    assertEquals(first.getProcessDefinitionKey(), same.getProcessDefinitionKey());
    assertEquals(2, second.getVersion());
    assertNotEquals(first.getProcessDefinitionKey(), second.getProcessDefinitionKey());
  }

  @Test
  void severalResourcesGoInOneDeployment() {
    String one = Server.uniqueId("several");
    String two = Server.uniqueId("several");

    DeploymentEvent deployment =
        Server.client()
            .newDeployResourceCommand()
            .addResourceBytes(bytes(Model.text("one-task", one)), "one.bpmn")
            .addResourceBytes(bytes(Model.text("two-tasks", two)), "two.bpmn")
            .send()
            .join();

    var ids = deployment.getProcesses().stream().map(Process::getBpmnProcessId).sorted().toList();
    assertEquals(List.of(one, two).stream().sorted().toList(), ids);
  }

  @Test
  void aTaskWithoutAJobTypeIsRefusedByName() {
    String id = Server.uniqueId("broken");

    String message =
        Status.refused(
            Code.INVALID_ARGUMENT, () -> Model.deployText(id, Model.text("broken", id)));

    assertTrue(message.contains(id + ".bpmn"), message);
    assertTrue(message.contains("nameless"), message);
    assertTrue(message.contains("zeebe:taskDefinition"), message);
    unknown(id);
  }

  @Test
  void textThatIsNoXmlIsRefused() {
    String id = Server.uniqueId("garbled");

    String message =
        Status.refused(Code.INVALID_ARGUMENT, () -> Model.deployText(id, "<definitions><oops"));

    assertTrue(message.contains(id + ".bpmn"), message);
  }

  @Test
  void oneBrokenResourceKeepsTheGoodOneOutToo() {
    String good = Server.uniqueId("atomic");
    String broken = Server.uniqueId("atomic");

    Status.refused(
        Code.INVALID_ARGUMENT,
        () ->
            Server.client()
                .newDeployResourceCommand()
                .addResourceBytes(bytes(Model.text("one-task", good)), "good.bpmn")
                .addResourceBytes(bytes(Model.text("broken", broken)), "broken.bpmn")
                .send()
                .join());

    unknown(good);
  }

  @Test
  void anUnknownKindOfResourceIsRefused() {
    Status.refused(
        Code.INVALID_ARGUMENT,
        () ->
            Server.client()
                .newDeployResourceCommand()
                .addResourceBytes(bytes("hello"), "letter.docx.unknown")
                .send()
                .join());
  }

  private static void unknown(String processId) {
    Status.refused(
        Code.NOT_FOUND,
        () ->
            Server.client()
                .newCreateInstanceCommand()
                .bpmnProcessId(processId)
                .latestVersion()
                .send()
                .join());
  }

  private static Process only(DeploymentEvent deployment) {
    assertEquals(1, deployment.getProcesses().size());
    return deployment.getProcesses().get(0);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
