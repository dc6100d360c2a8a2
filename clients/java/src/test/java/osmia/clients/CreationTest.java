package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.ActivatedJob;
import io.camunda.client.api.response.Process;
import io.camunda.client.api.response.ProcessInstanceEvent;
import io.grpc.Status.Code;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class CreationTest {
  @Test
  void byIdTakesTheLatestVersion() {
    String id = Server.uniqueId("latest");
    Model.deployText(id, Model.text("one-task", id));
    Process second = Model.deployText(id, Model.text("two-tasks", id)).getProcesses().get(0);

    ProcessInstanceEvent created =
        Server.client().newCreateInstanceCommand().bpmnProcessId(id).latestVersion().send().join();

    assertEquals(id, created.getBpmnProcessId());
    assertEquals(2, created.getVersion());
    assertEquals(second.getProcessDefinitionKey(), created.getProcessDefinitionKey());
    assertTrue(created.getProcessInstanceKey() > 0);
    assertEquals("first", Jobs.pollOne(id + "-first").getElementId());
  }

  @Test
  void byVersionTakesThatVersion() {
    String id = Server.uniqueId("version");
    Model.deployText(id, Model.text("one-task", id));
    Model.deployText(id, Model.text("two-tasks", id));

    ProcessInstanceEvent created =
        Server.client().newCreateInstanceCommand().bpmnProcessId(id).version(1).send().join();

    assertEquals(1, created.getVersion());
    ActivatedJob job = Jobs.pollOne(id + "-work");
    assertEquals(created.getProcessInstanceKey(), job.getProcessInstanceKey());
    assertEquals(1, job.getProcessDefinitionVersion());
  }

  @Test
  void byKeyTakesThatDefinition() {
    String id = Server.uniqueId("key");
    Process first = Model.deployText(id, Model.text("one-task", id)).getProcesses().get(0);
    Model.deployText(id, Model.text("two-tasks", id));

    ProcessInstanceEvent created =
        Server.client()
            .newCreateInstanceCommand()
            .processDefinitionKey(first.getProcessDefinitionKey())
            .send()
            .join();

    assertEquals(id, created.getBpmnProcessId());
    assertEquals(1, created.getVersion());
  }

  @Test
  void everyInstanceHasItsOwnKeyAndItsOwnJob() {
    Model model = Model.deploy("one-task");
    Set<Long> created = new HashSet<>();
    for (int n = 0; n < 30; n++) {
      created.add(model.create(Map.of("n", n)).getProcessInstanceKey());
    }

    Set<Long> worked = new HashSet<>();
    Set<Object> numbers = new HashSet<>();
    for (ActivatedJob job : Jobs.poll(model.jobType("work"), 30)) {
      worked.add(job.getProcessInstanceKey());
      numbers.add(job.getVariable("n"));
    }

    assertEquals(30, created.size());
    assertEquals(created, worked);
    assertEquals(30, numbers.size());
  }

  @Test
  void unknownIdVersionAndKeyAreNotFound() {
    Model model = Model.deploy("one-task");
    var command = Server.client();

    String message =
        Status.refused(
            Code.NOT_FOUND,
            () ->
                command
                    .newCreateInstanceCommand()
                    .bpmnProcessId("no-such-process")
                    .latestVersion()
                    .send()
                    .join());
    assertTrue(message.contains("no-such-process"), message);
    Status.refused(
        Code.NOT_FOUND,
        () ->
            command
                .newCreateInstanceCommand()
                .bpmnProcessId(model.id())
                .version(99)
                .send()
                .join());
    Status.refused(
        Code.NOT_FOUND,
        () -> command.newCreateInstanceCommand().processDefinitionKey(99).send().join());
  }

  @Test
  void anInstanceStartsAtTheElementsThatAreNamed() {
    Model model = Model.deploy("sub-process");

    ProcessInstanceEvent created =
        Server.client()
            .newCreateInstanceCommand()
            .bpmnProcessId(model.id())
            .latestVersion()
            .variables(Map.of("order", Map.of("items", List.of())))
            .startBeforeElement("box")
            .startBeforeElement("ship")
            .send()
            .join();

    ActivatedJob box = Jobs.pollOne(model.jobType("box"));
    ActivatedJob ship = Jobs.pollOne(model.jobType("ship"));
    assertEquals(created.getProcessInstanceKey(), box.getProcessInstanceKey());
    assertEquals(created.getProcessInstanceKey(), ship.getProcessInstanceKey());
    // The sub-process around the first of them is there, but nothing has gone through its input mappings.
    assertFalse(box.getVariablesAsMap().containsKey("parcel"));
    Jobs.complete(box, Map.of("parcel", Map.of("weight", 1)));
    Jobs.complete(ship);
    assertEquals(1, Jobs.pollOne(model.jobType("ship")).getVariable("parcelWeight"));
  }

  @Test
  void anInstanceCannotStartAtWhatIsNoPlaceToStart() {
    Model model = Model.deploy("error-boundary");

    for (String element : List.of("nowhere", "packing-start", "p1", "out-of-stock")) {
      String message =
          Status.refused(
              Code.INVALID_ARGUMENT,
              () ->
                  Server.client()
                      .newCreateInstanceCommand()
                      .bpmnProcessId(model.id())
                      .latestVersion()
                      .startBeforeElement(element)
                      .send()
                      .join());
      assertTrue(message.contains(element), message);
    }
    Jobs.assertNone(model.jobType("work"));
  }

  @Test
  void anInstanceEndsAfterTheElementThatIsNamed() {
    Server.needsFullGateway();
    Model model = Model.deploy("two-tasks");
    long instance =
        Server.client()
            .newCreateInstanceCommand()
            .bpmnProcessId(model.id())
            .latestVersion()
            .terminateAfterElement("first")
            .send()
            .join()
            .getProcessInstanceKey();

    Jobs.complete(Jobs.pollOne(model.jobType("first")));

    Jobs.assertNone(model.jobType("second"));
    Status.refused(
        Code.NOT_FOUND, () -> Server.client().newCancelInstanceCommand(instance).send().join());
  }

  @Test
  void variablesThatAreNoObjectAreInvalid() {
    Server.needsGrpc();
    Server.needsFullGateway();
    Model model = Model.deploy("one-task");

    for (String variables : new String[] {"[1,2]", "17", "\"text\""}) {
      Status.refused(
          Code.INVALID_ARGUMENT,
          () ->
              Server.client()
                  .newCreateInstanceCommand()
                  .bpmnProcessId(model.id())
                  .latestVersion()
                  .variables(variables)
                  .send()
                  .join());
    }

    Jobs.assertNone(model.jobType("work"));
  }
}
