package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.Process;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ResourceDeletionTest {
  @BeforeEach
  void needsFullGateway() {
    Server.needsFullGateway();
  }

  @Test
  void aDeletedProcessIsGone() {
    Model model = Model.deploy("one-task");

    delete(model.deployed());

    Status.refused(Code.NOT_FOUND, model::create);
    String message = Status.refused(Code.NOT_FOUND, () -> delete(model.deployed()));
    String key = Long.toString(model.deployed().getProcessDefinitionKey());
    assertTrue(message.contains(key), message);
  }

  @Test
  void theVersionBeforeIsTheLatestAgain() {
    String id = Server.uniqueId("latest");
    Process first = Model.deployText(id, Model.text("one-task", id)).getProcesses().get(0);
    Process second = Model.deployText(id, Model.text("two-tasks", id)).getProcesses().get(0);
    Model model = new Model(id, first);

    delete(second);

    assertEquals(1, model.create(Map.of()).getVersion());
    Jobs.complete(Jobs.pollOne(model.jobType("work")));
    delete(first);
    Status.refused(Code.NOT_FOUND, model::create);
    // Its number is not used again.
    Process third = Model.deployText(id, Model.text("two-tasks", id)).getProcesses().get(0);
    assertEquals(3, third.getVersion());
  }

  @Test
  void aProcessWithARunningInstanceStays() {
    Model model = Model.deploy("one-task");
    int instances = 1;
    // The partition that decides, the first, knows the instances that run there.
    while (model.create() >> 51 != 1) {
      instances++;
    }

    String message = Status.refused(Code.FAILED_PRECONDITION, () -> delete(model.deployed()));

    assertTrue(message.contains("still running instances"), message);
    Jobs.poll(model.jobType("work"), instances).forEach(Jobs::complete);
    delete(model.deployed());
  }

  @Test
  void messagesAndTimeStartNothingAnyMore() {
    Model messages = Model.deploy("message-start");
    Model timers = Model.deploy("timer-start");

    delete(messages.deployed());
    delete(timers.deployed());

    Server.client()
        .newPublishMessageCommand()
        .messageName(messages.jobType("ordered"))
        .withoutCorrelationKey()
        .timeToLive(Duration.ZERO)
        .send()
        .join();
    Jobs.assertNone(timers.jobType("work"));
    Jobs.assertNone(timers.jobType("work"));
    Jobs.assertNone(messages.jobType("work"));
  }

  private static void delete(Process process) {
    Server.client().newDeleteResourceCommand(process.getProcessDefinitionKey()).send().join();
  }
}
