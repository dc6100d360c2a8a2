package osmia.processtest;

import static io.camunda.process.test.api.CamundaAssert.assertThatProcessInstance;
import static io.camunda.process.test.api.assertions.ElementSelectors.byId;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.CamundaClient;
import io.camunda.client.api.response.ProcessInstanceEvent;
import io.camunda.process.test.api.CamundaAssert;
import io.camunda.process.test.api.CamundaProcessTestContext;
import io.camunda.process.test.api.CamundaProcessTestExtension;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Tests of a process as its authors write them. The library purges the server after each of them. */
class OrderProcessTest {

  /** A task, then a message with a time limit: who does not pay within a day is cancelled. */
  private static final String MODEL =
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
          xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
          xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" targetNamespace="urn:osmia:process-test">
        <bpmn:message id="payment" name="payment">
          <bpmn:extensionElements><zeebe:subscription correlationKey="=orderId"/></bpmn:extensionElements>
        </bpmn:message>
        <bpmn:error id="unknown" errorCode="UNKNOWN"/>
        <bpmn:process id="order" name="Order" isExecutable="true">
          <bpmn:startEvent id="start"/>
          <bpmn:serviceTask id="price">
            <bpmn:extensionElements>
              <zeebe:taskDefinition type="price" retries="1"/>
              <zeebe:ioMapping><zeebe:input source="=amount" target="count"/></zeebe:ioMapping>
            </bpmn:extensionElements>
          </bpmn:serviceTask>
          <bpmn:boundaryEvent id="no-price" attachedToRef="price">
            <bpmn:errorEventDefinition errorRef="unknown"/>
          </bpmn:boundaryEvent>
          <bpmn:receiveTask id="paid" messageRef="payment"/>
          <bpmn:boundaryEvent id="too-late" attachedToRef="paid">
            <bpmn:timerEventDefinition>
              <bpmn:timeDuration xsi:type="bpmn:tFormalExpression">P1D</bpmn:timeDuration>
            </bpmn:timerEventDefinition>
          </bpmn:boundaryEvent>
          <bpmn:endEvent id="done"/>
          <bpmn:endEvent id="cancelled"/>
          <bpmn:endEvent id="unpriced"/>
          <bpmn:sequenceFlow id="a" sourceRef="start" targetRef="price"/>
          <bpmn:sequenceFlow id="b" sourceRef="price" targetRef="paid"/>
          <bpmn:sequenceFlow id="c" sourceRef="paid" targetRef="done"/>
          <bpmn:sequenceFlow id="d" sourceRef="too-late" targetRef="cancelled"/>
          <bpmn:sequenceFlow id="e" sourceRef="no-price" targetRef="unpriced"/>
        </bpmn:process>
      </bpmn:definitions>
      """;

  @RegisterExtension static final CamundaProcessTestExtension EXTENSION = Remote.extension();

  private CamundaClient client;
  private CamundaProcessTestContext context;

  @BeforeAll
  static void patience() {
    CamundaAssert.setAssertionTimeout(Duration.ofSeconds(60));
  }

  @BeforeEach
  void deploy() {
    var deployed =
        client
            .newDeployResourceCommand()
            .addResourceBytes(MODEL.strip().getBytes(StandardCharsets.UTF_8), "order.bpmn")
            .send()
            .join();
    assertEquals(1, deployed.getProcesses().get(0).getVersion(), "nothing is left of the test before");
  }

  private ProcessInstanceEvent order(String id) {
    return client
        .newCreateInstanceCommand()
        .bpmnProcessId("order")
        .latestVersion()
        .variables(Map.of("orderId", id, "amount", 3))
        .send()
        .join();
  }

  @Test
  void whatIsPaidIsDone() {
    var order = order("o-1");
    assertThatProcessInstance(order).isActive().hasActiveElements("price").hasVariable("amount", 3);
    context.completeJob("price", Map.of("total", 30));
    assertThatProcessInstance(order).isWaitingForMessage("payment", "o-1").hasVariable("total", 30);
    client.newPublishMessageCommand().messageName("payment").correlationKey("o-1").variables(Map.of("by", "card")).send().join();
    assertThatProcessInstance(order)
        .isCompleted()
        .hasCompletedElementsInOrder("start", "price", "paid", "done")
        .hasNotActivatedElements("too-late", "cancelled")
        .hasLocalVariable("price", "count", 3)
        .hasVariables(Map.of("orderId", "o-1", "amount", 3, "total", 30, "by", "card"))
        .hasNoActiveIncidents();
  }

  @Test
  void whatIsNotPaidIsCancelledAfterADay() {
    var order = order("o-1");
    context.completeJob("price");
    assertThatProcessInstance(order).hasActiveElements("paid");
    Instant before = context.getCurrentTime();
    context.increaseTime(Duration.ofHours(23));
    assertThatProcessInstance(order).isActive().hasActiveElements(byId("paid"));
    context.increaseTime(Duration.ofHours(2));
    assertThatProcessInstance(order).isCompleted().hasTerminatedElements("paid").hasCompletedElements("too-late", "cancelled");
    assertTrue(Duration.between(before, context.getCurrentTime()).toHours() >= 25);
  }

  @Test
  void anErrorOfTheWorkerTakesItsWay() {
    var order = order("o-1");
    context.throwBpmnErrorFromJob("price", "UNKNOWN", Map.of("why", "no list"));
    assertThatProcessInstance(order).isCompleted().hasCompletedElements("no-price", "unpriced").hasTerminatedElements("price");
  }

  @Test
  void aFailureIsAnIncidentThatCanBeResolved() {
    var order = order("o-1");
    // One worker does both: the request of one that was closed could still take the job.
    var fails = new AtomicBoolean(true);
    try (var worker =
        client
            .newWorker()
            .jobType("price")
            .handler(
                (jobs, job) -> {
                  if (fails.getAndSet(false)) {
                    jobs.newFailCommand(job).retries(0).errorMessage("no list").send().join();
                  } else {
                    jobs.newCompleteCommand(job).variables(Map.of("total", 1)).send().join();
                  }
                })
            .open()) {
      assertThatProcessInstance(order).hasActiveIncidents().hasActiveElements("price");
      var incident =
          client.newIncidentSearchRequest().filter(f -> f.processInstanceKey(order.getProcessInstanceKey())).send().join().items().get(0);
      assertEquals("no list", incident.getErrorMessage());
      client.newUpdateRetriesCommand(incident.getJobKey()).retries(1).send().join();
      client.newResolveIncidentCommand(incident.getIncidentKey()).send().join();
      assertThatProcessInstance(order).hasNoActiveIncidents().hasCompletedElements("price").hasVariable("total", 1);
    }
  }

  /** Each time there is one instance, and a message of the time before is not there any more. */
  @RepeatedTest(4)
  void eachTestBeginsWithNothing() {
    assertEquals(0, client.newProcessInstanceSearchRequest().send().join().page().totalItems());
    var order = order("same");
    context.completeJob("price");
    assertThatProcessInstance(order).isWaitingForMessage("payment", "same").hasActiveElementsExactly("paid");
    assertEquals(1, client.newProcessInstanceSearchRequest().send().join().page().totalItems());
    for (String key : new String[] {"another", "and another"}) {
      client.newPublishMessageCommand().messageName("payment").correlationKey(key).timeToLive(Duration.ofDays(1)).messageId("m").send().join();
    }
    order("another");
    context.increaseTime(Duration.ofMinutes(1));
  }
}
