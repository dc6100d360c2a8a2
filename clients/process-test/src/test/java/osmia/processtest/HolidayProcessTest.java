package osmia.processtest;

import static io.camunda.process.test.api.CamundaAssert.assertThatDecision;
import static io.camunda.process.test.api.CamundaAssert.assertThatProcessInstance;
import static io.camunda.process.test.api.CamundaAssert.assertThatUserTask;
import static io.camunda.process.test.api.assertions.ElementSelectors.byName;
import static io.camunda.process.test.api.assertions.UserTaskSelectors.byElementId;
import static io.camunda.process.test.api.assertions.UserTaskSelectors.byProcessInstanceKey;
import static io.camunda.process.test.api.assertions.UserTaskSelectors.byTaskName;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.camunda.client.CamundaClient;
import io.camunda.client.api.response.ProcessInstanceEvent;
import io.camunda.process.test.api.CamundaAssert;
import io.camunda.process.test.api.CamundaProcessTestContext;
import io.camunda.process.test.api.CamundaProcessTestExtension;
import io.camunda.process.test.api.assertions.DecisionSelectors;
import io.camunda.process.test.api.assertions.ProcessInstanceSelectors;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A process with people, a decision, a called process, a message and a timer, tested with the utilities of the library. */
class HolidayProcessTest {

  /**
   * A decision says whether somebody must agree; who forgets to is reminded, and then the books are kept by another process.
   * Each test that has a worker names it after a person of its own: the request of one that was closed could still take the job.
   */
  private static final String MODEL =
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
          xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
          xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" targetNamespace="urn:osmia:process-test">
        <bpmn:message id="withdrawal" name="withdrawal">
          <bpmn:extensionElements><zeebe:subscription correlationKey="=person"/></bpmn:extensionElements>
        </bpmn:message>
        <bpmn:process id="holiday" isExecutable="true">
          <bpmn:startEvent id="asked" name="Asked"/>
          <bpmn:businessRuleTask id="rule" name="Who agrees?">
            <bpmn:extensionElements>
              <zeebe:calledDecision decisionId="agreement" resultVariable="agreement"/>
            </bpmn:extensionElements>
          </bpmn:businessRuleTask>
          <bpmn:userTask id="agree" name="Agree">
            <bpmn:extensionElements>
              <zeebe:userTask/>
              <zeebe:assignmentDefinition assignee="=boss" candidateGroups="=[&quot;staff&quot;, agreement]"/>
              <zeebe:taskSchedule dueDate="=&quot;2099-01-31T09:00:00Z&quot;" followUpDate="=&quot;2099-01-30T09:00:00Z&quot;"/>
              <zeebe:priorityDefinition priority="=days * 2"/>
            </bpmn:extensionElements>
          </bpmn:userTask>
          <bpmn:boundaryEvent id="forgotten" attachedToRef="agree" cancelActivity="false">
            <bpmn:timerEventDefinition>
              <bpmn:timeDuration xsi:type="bpmn:tFormalExpression">P2D</bpmn:timeDuration>
            </bpmn:timerEventDefinition>
          </bpmn:boundaryEvent>
          <bpmn:serviceTask id="remind" name="Remind">
            <bpmn:extensionElements><zeebe:taskDefinition type="=&quot;remind-&quot; + person"/></bpmn:extensionElements>
          </bpmn:serviceTask>
          <bpmn:boundaryEvent id="withdrawn" attachedToRef="agree">
            <bpmn:messageEventDefinition messageRef="withdrawal"/>
          </bpmn:boundaryEvent>
          <bpmn:callActivity id="book" name="Keep the books">
            <bpmn:extensionElements>
              <zeebe:calledElement processId="books" propagateAllChildVariables="true"/>
            </bpmn:extensionElements>
          </bpmn:callActivity>
          <bpmn:endEvent id="granted"/>
          <bpmn:endEvent id="reminded"/>
          <bpmn:endEvent id="nothing"/>
          <bpmn:sequenceFlow id="a" sourceRef="asked" targetRef="rule"/>
          <bpmn:sequenceFlow id="b" sourceRef="rule" targetRef="agree"/>
          <bpmn:sequenceFlow id="c" sourceRef="agree" targetRef="book"/>
          <bpmn:sequenceFlow id="d" sourceRef="book" targetRef="granted"/>
          <bpmn:sequenceFlow id="e" sourceRef="forgotten" targetRef="remind"/>
          <bpmn:sequenceFlow id="f" sourceRef="remind" targetRef="reminded"/>
          <bpmn:sequenceFlow id="g" sourceRef="withdrawn" targetRef="nothing"/>
        </bpmn:process>
      </bpmn:definitions>
      """;

  private static final String RULES =
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="rules" name="Rules" namespace="urn:osmia:process-test">
        <decision id="agreement" name="Who must agree">
          <decisionTable id="table" hitPolicy="FIRST">
            <input id="length"><inputExpression id="days"><text>days</text></inputExpression></input>
            <output id="who" name="agreement"/>
            <rule id="long"><inputEntry id="i1"><text>&gt; 10</text></inputEntry><outputEntry id="o1"><text>"board"</text></outputEntry></rule>
            <rule id="short"><inputEntry id="i2"><text>&gt; 0</text></inputEntry><outputEntry id="o2"><text>"boss"</text></outputEntry></rule>
          </decisionTable>
        </decision>
      </definitions>
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
    client
        .newDeployResourceCommand()
        .addResourceStringUtf8(MODEL.strip(), "holiday.bpmn")
        .addResourceStringUtf8(RULES.strip(), "rules.dmn")
        .send()
        .join();
  }

  private ProcessInstanceEvent ask(String person, int days) {
    return client
        .newCreateInstanceCommand()
        .bpmnProcessId("holiday")
        .latestVersion()
        .variables(Map.of("person", person, "boss", "eve", "days", days))
        .send()
        .join();
  }

  @Test
  void aTaskIsForWhomTheModelAndTheDecisionSay() {
    var holiday = ask("ann", 12);

    assertThatUserTask(byTaskName("Agree"))
        .isCreated()
        .hasName("Agree")
        .hasElementId("agree")
        .hasAssignee("eve")
        .hasCandidateGroups(List.of("staff", "board"))
        .hasCandidateGroup("board")
        .hasPriority(24)
        .hasDueDate("2099-01-31T09:00:00.000Z")
        .hasFollowUpDate("2099-01-30T09:00:00.000Z")
        .hasProcessInstanceKey(holiday.getProcessInstanceKey());
    assertThatDecision(DecisionSelectors.byName("Who must agree", holiday.getProcessInstanceKey()))
        .isEvaluated()
        .hasOutput("board")
        .hasMatchedRules(1)
        .hasNotMatchedRules(2);
    assertThatProcessInstance(holiday).isActive().hasActiveElementsExactly(byName("Agree")).hasVariable("agreement", "board");
  }

  @Test
  void whatIsAgreedToIsBookedByAnotherProcess() {
    context.mockChildProcess("books", Map.of("booked", 3));
    var holiday = ask("ann", 3);

    context.completeUserTask(byElementId("agree", holiday.getProcessInstanceKey()), Map.of("agreed", true));

    assertThatUserTask(byProcessInstanceKey(holiday.getProcessInstanceKey())).isCompleted().hasAssignee("eve");
    assertThatProcessInstance(holiday)
        .isCompleted()
        .hasCompletedElementsInOrder("asked", "rule", "agree", "book", "granted")
        .hasVariables(Map.of("person", "ann", "boss", "eve", "days", 3, "agreement", "boss", "agreed", true, "booked", 3));
    assertThatProcessInstance(ProcessInstanceSelectors.byParentProcessInstanceKey(holiday.getProcessInstanceKey())).isCompleted();
    assertThatProcessInstance(ProcessInstanceSelectors.byProcessId("books")).isCompleted();
  }

  @Test
  void whoForgetsIsRemindedByAMockedWorker() {
    var worker = context.mockJobWorker("remind-cid").thenComplete(Map.of("reminder", "sent"));
    var holiday = ask("cid", 3);
    assertThatUserTask(byTaskName("Agree")).isCreated();
    assertEquals(0, worker.getInvocations());

    context.increaseTime(Duration.ofDays(2));

    assertThatProcessInstance(holiday)
        .isActive()
        .hasCompletedElements("forgotten", "remind", "reminded")
        .hasActiveElements("agree")
        .hasVariable("reminder", "sent");
    assertEquals(1, worker.getInvocations());
    assertEquals("remind", worker.getActivatedJobs().get(0).getElementId());
  }

  @Test
  void aMockedWorkerThrowsAnErrorThatNobodyCatches() {
    context.mockJobWorker("remind-dan").thenThrowBpmnError("NO_ADDRESS", Map.of("why", "moved"));
    var holiday = ask("dan", 3);
    assertThatUserTask(byTaskName("Agree")).isCreated();

    context.increaseTime(Duration.ofDays(3));

    assertThatProcessInstance(holiday).hasActiveIncidents().hasActiveElements("remind", "agree");
    var incidents =
        client.newIncidentSearchRequest().filter(f -> f.processInstanceKey(holiday.getProcessInstanceKey())).send().join().items();
    assertEquals(List.of("remind"), incidents.stream().map(incident -> incident.getElementId()).toList());
    assertEquals("UNHANDLED_ERROR_EVENT", incidents.get(0).getErrorType().name());
  }

  @Test
  void whatIsWithdrawnIsNoTaskAnyMore() {
    var holiday = ask("ann", 3);
    var other = ask("bob", 3);
    assertThatProcessInstance(holiday).isWaitingForMessage("withdrawal", "ann").isNotWaitingForMessage("withdrawal", "bob");

    client.newPublishMessageCommand().messageName("withdrawal").correlationKey("ann").send().join();

    assertThatProcessInstance(holiday)
        .isCompleted()
        .hasTerminatedElements("agree")
        .hasCompletedElements("withdrawn", "nothing")
        .hasCorrelatedMessage("withdrawal", "ann")
        .hasNotActivatedElements("book");
    assertThatUserTask(byProcessInstanceKey(holiday.getProcessInstanceKey())).isCanceled();
    assertThatUserTask(byProcessInstanceKey(other.getProcessInstanceKey())).isCreated();
  }

  @Test
  void aMockedDecisionSaysWhatTheTestWants() {
    context.mockDmnDecision("agreement", "nobody");
    var holiday = ask("ann", 3);

    assertThatUserTask(byTaskName("Agree")).hasCandidateGroups(List.of("staff", "nobody"));
    assertThatProcessInstance(holiday).hasVariable("agreement", "nobody");
    assertThatDecision(DecisionSelectors.byId("agreement", holiday.getProcessInstanceKey())).isEvaluated().hasOutput("nobody");
  }

  @Test
  void aDecisionWithoutAMatchingRuleIsFoundByItsAnswer() {
    var answer = client.newEvaluateDecisionCommand().decisionId("agreement").variables(Map.of("days", 0)).send().join();

    assertThatDecision(answer).isEvaluated().hasNoMatchedRules();
  }

  @Test
  void anAssertionThatDoesNotHoldSaysSo() {
    var holiday = ask("ann", 3);
    assertThatUserTask(byTaskName("Agree")).isCreated();
    CamundaAssert.setAssertionTimeout(Duration.ofSeconds(5));
    try {
      var wrong = assertThrows(AssertionError.class, () -> assertThatUserTask(byTaskName("Agree")).isCompleted());
      assertEquals(true, wrong.getMessage().contains("created"), wrong.getMessage());
      assertThrows(AssertionError.class, () -> assertThatProcessInstance(holiday).hasActiveIncidents());
    } finally {
      patience();
    }
  }
}
