package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.command.PublishMessageCommandStep1.PublishMessageCommandStep3;
import io.camunda.client.api.response.ActivatedJob;
import io.camunda.client.api.response.PublishMessageResponse;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class MessageTest {
  private static final Duration KEPT = Duration.ofMinutes(5);

  @Test
  void aMessageReachesTheInstanceThatWaitsForIt() {
    Model model = Model.deploy("messages");
    long waiting = create(model, "bee");
    long other = create(model, "wasp");

    PublishMessageResponse published = publish(model, "paid", "bee", Map.of("amount", 12), KEPT);

    ActivatedJob ship = Jobs.pollOne(model.jobType("ship"));
    assertEquals(waiting, ship.getProcessInstanceKey());
    assertNotEquals(other, ship.getProcessInstanceKey());
    assertEquals(Map.of("orderId", "bee", "amount", 12), ship.getVariablesAsMap());
    assertTrue(published.getMessageKey() > 0);
    assertEquals(Server.hasFullGateway() ? "<default>" : "", published.getTenantId());
  }

  @Test
  void keptMessagesWaitForTheirInstancesInTheOrderOfTheirPublication() {
    Model model = Model.deploy("messages");
    publish(model, "paid", "bee", Map.of("n", 1), KEPT);
    publish(model, "paid", "bee", Map.of("n", 2), KEPT);

    for (int n = 1; n <= 2; n++) {
      long instance = create(model, "bee");
      ActivatedJob ship = Jobs.pollOne(model.jobType("ship"));
      assertEquals(instance, ship.getProcessInstanceKey());
      assertEquals(n, ship.getVariable("n"));
    }
  }

  @Test
  void aMessageWithoutTimeToLiveIsNotKept() {
    Model model = Model.deploy("messages");
    publish(model, "paid", "bee", Map.of(), Duration.ZERO);
    create(model, "bee");

    Jobs.assertNone(model.jobType("ship"));
    publish(model, "paid", "bee", Map.of("late", true), Duration.ZERO);

    assertEquals(true, Jobs.pollOne(model.jobType("ship")).getVariable("late"));
  }

  @Test
  void anIdIsTakenOnceForANameAndKey() {
    Model model = Model.deploy("messages");
    withId(model, "paid", "bee", "id-1").send().join();

    String message =
        Status.refused(Code.ALREADY_EXISTS, () -> withId(model, "paid", "bee", "id-1").send().join());

    assertTrue(message.contains("id-1"), message);
    withId(model, "paid", "bee", "id-2").send().join();
    withId(model, "paid", "wasp", "id-1").send().join();
    withId(model, "note", "bee", "id-1").send().join();
  }

  @Test
  void anIdOfAMessageThatIsNotKeptMayComeAgain() {
    Model model = Model.deploy("messages");

    for (int round = 0; round < 2; round++) {
      withId(model, "paid", "bee", "id-1").timeToLive(Duration.ZERO).send().join();
    }
  }

  @Test
  void keysOfAllPartitionsFindTheirInstances() {
    Model model = Model.deploy("messages");
    List<String> orders = new ArrayList<>();
    for (int n = 0; n < 20; n++) {
      orders.add("order-" + n);
    }
    orders.forEach(order -> create(model, order));

    orders.forEach(order -> publish(model, "paid", order, Map.of("paid", order), KEPT));

    for (ActivatedJob ship : Jobs.poll(model.jobType("ship"), orders.size())) {
      assertEquals(ship.getVariable("orderId"), ship.getVariable("paid"));
      assertTrue(orders.remove(ship.getVariable("paid")), "correlated twice: " + ship);
    }
  }

  @Test
  void aNumberIsAKeyToo() {
    Model model = Model.deploy("messages");
    model.create(Map.of("orderId", 42));

    publish(model, "paid", "42", Map.of(), KEPT);

    assertEquals(42, Jobs.pollOne(model.jobType("ship")).getVariable("orderId"));
  }

  @Test
  void anEventThatDoesNotInterruptTakesEveryMessage() {
    Model model = Model.deploy("messages");
    publish(model, "paid", "bee", Map.of(), KEPT);
    create(model, "bee");
    ActivatedJob ship = Jobs.pollOne(model.jobType("ship"));

    publish(model, "note", "bee", Map.of("text", "hurry"), KEPT);
    publish(model, "note", "bee", Map.of("text", "please"), KEPT);

    for (ActivatedJob read : Jobs.poll(model.jobType("read"), 2)) {
      assertEquals(ship.getProcessInstanceKey(), read.getProcessInstanceKey());
      Jobs.complete(read);
    }
    Jobs.complete(ship);
    publish(model, "note", "bee", Map.of("text", "too late"), KEPT);
    Jobs.assertNone(model.jobType("read"));
  }

  @Test
  void aCancelledInstanceLeavesTheMessageToTheNext() {
    Model model = Model.deploy("messages");
    long cancelled = create(model, "bee");
    Server.client().newCancelInstanceCommand(cancelled).send().join();

    publish(model, "paid", "bee", Map.of(), KEPT);
    long next = create(model, "bee");

    assertEquals(next, Jobs.pollOne(model.jobType("ship")).getProcessInstanceKey());
  }

  @Test
  void aMissingKeyIsAnIncidentUntilItIsThere() throws Exception {
    Model model = Model.deploy("messages");
    long instance = model.create();
    var incident = Records.incident(instance);
    assertEquals("EXTRACT_VALUE_ERROR", incident.errorType());
    assertEquals("paid", incident.elementId());
    publish(model, "paid", "bee", Map.of(), KEPT);

    Server.client().newSetVariablesCommand(instance).variables(Map.of("orderId", "bee")).send().join();
    Server.client().newResolveIncidentCommand(incident.key()).send().join();

    assertEquals(instance, Jobs.pollOne(model.jobType("ship")).getProcessInstanceKey());
  }

  @Test
  void everyMessageWithoutAKeyStartsAnInstance() {
    Model model = Model.deploy("message-start");

    publish(model, "ordered", "", Map.of("n", 1), Duration.ZERO);
    publish(model, "ordered", "", Map.of("n", 2), Duration.ZERO);

    List<ActivatedJob> jobs = Jobs.poll(model.jobType("work"), 2);
    assertNotEquals(jobs.get(0).getProcessInstanceKey(), jobs.get(1).getProcessInstanceKey());
    assertEquals(3, jobs.stream().mapToInt(job -> (int) job.getVariable("n")).sum());
  }

  @Test
  void messagesWithTheSameKeyStartOneInstanceAfterTheOther() {
    Model model = Model.deploy("message-start");
    publish(model, "ordered", "bee", Map.of("n", 1), KEPT);
    publish(model, "ordered", "bee", Map.of("n", 2), KEPT);
    publish(model, "ordered", "wasp", Map.of("n", 3), KEPT);

    List<ActivatedJob> jobs = Jobs.poll(model.jobType("work"), 2);
    assertEquals(4, jobs.stream().mapToInt(job -> (int) job.getVariable("n")).sum());
    Jobs.assertNone(model.jobType("work"));
    jobs.forEach(Jobs::complete);

    assertEquals(2, Jobs.pollOne(model.jobType("work")).getVariable("n"));
  }

  @Test
  void variablesThatAreNoObjectAreInvalid() {
    Server.needsGrpc();
    Server.needsFullGateway();

    Status.refused(
        Code.INVALID_ARGUMENT,
        () ->
            Server.client()
                .newPublishMessageCommand()
                .messageName("paid")
                .correlationKey("bee")
                .variables("[1]")
                .send()
                .join());
  }

  private static long create(Model model, String orderId) {
    return model.create(Map.of("orderId", orderId)).getProcessInstanceKey();
  }

  private static PublishMessageResponse publish(
      Model model, String message, String key, Map<String, Object> variables, Duration timeToLive) {
    return Server.client()
        .newPublishMessageCommand()
        .messageName(model.jobType(message))
        .correlationKey(key)
        .variables(variables)
        .timeToLive(timeToLive)
        .send()
        .join();
  }

  private static PublishMessageCommandStep3 withId(
      Model model, String message, String key, String id) {
    return Server.client()
        .newPublishMessageCommand()
        .messageName(model.jobType(message))
        .correlationKey(key)
        .messageId(id)
        .timeToLive(KEPT);
  }
}
