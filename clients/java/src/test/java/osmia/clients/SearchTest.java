package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.CamundaClient;
import io.camunda.client.api.command.ProblemException;
import io.camunda.client.api.response.ActivatedJob;
import io.camunda.client.api.search.enums.ElementInstanceState;
import io.camunda.client.api.search.enums.IncidentState;
import io.camunda.client.api.search.enums.JobState;
import io.camunda.client.api.search.enums.MessageSubscriptionState;
import io.camunda.client.api.search.enums.ProcessInstanceState;
import io.camunda.client.api.search.response.Incident;
import io.camunda.client.api.search.response.MessageSubscription;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the client finds and reads. It does all of it over REST, so nothing here runs over gRPC. */
class SearchTest {
  private final CamundaClient client = Server.client();

  @BeforeEach
  void overRest() {
    Server.needsRest();
  }

  @Test
  void instancesAreFoundInPages() {
    Model model = Model.deploy("two-tasks");
    List<Long> created = List.of(model.create(), model.create(), model.create());
    var request =
        client
            .newProcessInstanceSearchRequest()
            .filter(filter -> filter.processDefinitionId(model.id()).state(ProcessInstanceState.ACTIVE))
            .sort(sort -> sort.startDate().asc());

    var first = request.page(page -> page.limit(2)).send().join();
    var second = request.page(page -> page.limit(2).after(first.page().endCursor())).send().join();

    assertEquals(3, first.page().totalItems());
    assertEquals(created.subList(0, 2), first.items().stream().map(item -> item.getProcessInstanceKey()).toList());
    assertEquals(created.subList(2, 3), second.items().stream().map(item -> item.getProcessInstanceKey()).toList());
    var back = request.page(page -> page.limit(2).before(second.page().startCursor())).send().join();
    assertEquals(first.items().get(0).getProcessInstanceKey(), back.items().get(0).getProcessInstanceKey());
    var read = client.newProcessInstanceGetRequest(created.get(0)).send().join();
    assertEquals(model.id(), read.getProcessDefinitionId());
    assertNull(read.getParentProcessInstanceKey());
    assertNull(read.getEndDate());
  }

  @Test
  void anInstanceIsToldWithItsElementsFlowsAndVariables() {
    Model model = Model.deploy("two-tasks");
    long instance = model.create(Map.of("a", 1)).getProcessInstanceKey();
    Jobs.complete(Jobs.pollOne(model.jobType("first")), Map.of("long", "x".repeat(9_000)));

    var elements =
        client
            .newElementInstanceSearchRequest()
            .filter(filter -> filter.processInstanceKey(instance).state(ElementInstanceState.COMPLETED))
            .sort(sort -> sort.elementInstanceKey().asc())
            .send()
            .join()
            .items();
    assertEquals(List.of("start", "first"), elements.stream().map(element -> element.getElementId()).toList());
    long key = elements.get(1).getElementInstanceKey();
    assertEquals("first", client.newElementInstanceGetRequest(key).send().join().getElementId());
    var flows = client.newProcessInstanceSequenceFlowsRequest(instance).send().join();
    assertEquals(List.of("f1", "f2"), flows.stream().map(flow -> flow.getElementId()).sorted().toList());
    var counts = client.newProcessInstanceElementStatisticsRequest(instance).send().join();
    assertEquals(List.of("first", "second", "start"), counts.stream().map(count -> count.getElementId()).sorted().toList());
    var variables = client.newVariableSearchRequest().filter(filter -> filter.processInstanceKey(instance)).send().join().items();
    assertEquals(List.of("a", "long"), variables.stream().map(variable -> variable.getName()).sorted().toList());
    var shortened = variables.stream().filter(variable -> variable.getName().equals("long")).findFirst().orElseThrow();
    assertTrue(shortened.isTruncated());
    assertEquals(9_002, client.newVariableGetRequest(shortened.getVariableKey()).send().join().getValue().length());
  }

  @Test
  void jobsAndIncidentsAreFoundUntilTheyEnd() {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    ActivatedJob job = Jobs.pollOne(model.jobType("work"));
    Jobs.fail(job, 0, "no paper");

    var found =
        client
            .newJobSearchRequest()
            .filter(filter -> filter.processInstanceKey(instance).state(JobState.FAILED))
            .send()
            .join()
            .items();
    assertEquals(List.of(job.getKey()), found.stream().map(each -> each.getJobKey()).toList());
    assertEquals("no paper", found.get(0).getErrorMessage());
    Incident incident = incidents(instance).get(0);
    assertEquals(job.getKey(), incident.getJobKey());
    assertEquals(IncidentState.ACTIVE, incident.getState());
    assertEquals("no paper", client.newIncidentGetRequest(incident.getIncidentKey()).send().join().getErrorMessage());
    assertEquals(1, client.newIncidentsByProcessInstanceSearchRequest(instance).send().join().items().size());

    client.newUpdateRetriesCommand(job).retries(1).send().join();
    client.newResolveIncidentCommand(incident.getIncidentKey()).send().join();
    assertEquals(IncidentState.RESOLVED, incidents(instance).get(0).getState());
  }

  private List<Incident> incidents(long instance) {
    return client.newIncidentSearchRequest().filter(filter -> filter.processInstanceKey(instance)).send().join().items();
  }

  @Test
  void definitionsAreFoundWithTheirModels() {
    Model model = Model.deploy("call-activity");
    long key = model.deployed().getProcessDefinitionKey();

    var found =
        client.newProcessDefinitionSearchRequest().filter(filter -> filter.processDefinitionId(model.id())).send().join().items();

    assertEquals(List.of(key), found.stream().map(each -> each.getProcessDefinitionKey()).toList());
    assertEquals(1, client.newProcessDefinitionGetRequest(key).send().join().getVersion());
    assertEquals(Model.text("call-activity", model.id()), client.newProcessDefinitionGetXmlRequest(key).send().join());
    assertEquals(List.of(), client.newProcessDefinitionElementStatisticsRequest(key).send().join());
  }

  @Test
  void aCalledInstanceKnowsWhoCalledIt() {
    Model called = Model.deploy("one-task");
    Model caller = Model.deploy("call-activity");
    long instance = caller.create(Map.of("called", called.id())).getProcessInstanceKey();

    var found =
        client
            .newProcessInstanceSearchRequest()
            .filter(filter -> filter.parentProcessInstanceKey(instance))
            .send()
            .join()
            .items();

    assertEquals(List.of(called.id()), found.stream().map(each -> each.getProcessDefinitionId()).toList());
    var calls = client.newProcessInstanceGetCallHierarchyRequest(found.get(0).getProcessInstanceKey()).send().join();
    assertEquals(
        List.of(Long.toString(instance), Long.toString(found.get(0).getProcessInstanceKey())),
        calls.stream().map(call -> String.valueOf(call.getProcessInstanceKey())).toList());
  }

  @Test
  void whoWaitsForAMessageIsFoundAndThenWhoGotIt() throws InterruptedException {
    Model model = Model.deploy("messages");
    long instance = model.create(Map.of("orderId", model.id())).getProcessInstanceKey();

    var waiting = subscription(instance);
    assertEquals(MessageSubscriptionState.CREATED, waiting.getMessageSubscriptionState());
    assertEquals(model.id(), waiting.getCorrelationKey());

    client
        .newPublishMessageCommand()
        .messageName(model.id() + "-paid")
        .correlationKey(model.id())
        .timeToLive(Duration.ofMinutes(2))
        .send()
        .join();
    Jobs.pollOne(model.jobType("ship"));
    var correlated =
        client
            .newCorrelatedMessageSubscriptionSearchRequest()
            .filter(filter -> filter.processInstanceKey(instance))
            .send()
            .join()
            .items();
    assertEquals(List.of(model.id() + "-paid"), correlated.stream().map(each -> each.getMessageName()).toList());
    assertEquals(waiting.getMessageSubscriptionKey(), correlated.get(0).getSubscriptionKey());
  }

  /** That an instance waits is told to another partition a moment after it was created. */
  private MessageSubscription subscription(long instance) throws InterruptedException {
    long end = System.nanoTime() + Duration.ofSeconds(120).toNanos();
    while (System.nanoTime() < end) {
      var request = client.newMessageSubscriptionSearchRequest().filter(filter -> filter.processInstanceKey(instance));
      var found = request.send().join().items();
      if (!found.isEmpty()) {
        return found.get(0);
      }
      Thread.sleep(20);
    }
    throw new AssertionError("Instance " + instance + " waits for no message.");
  }

  @Test
  void anEvaluationThatNoProcessAskedForIsFound() throws Exception {
    String id = Server.uniqueId("decision");
    var deployed = DecisionTest.deploy(id);
    long key = deployed.getDecisions().get(0).getDecisionKey();
    DecisionTest.evaluate(id, 20);

    var found =
        client
            .newDecisionInstanceSearchRequest()
            .filter(filter -> filter.decisionDefinitionId(id + "-discount"))
            .send()
            .join()
            .items();
    assertEquals(List.of("10"), found.stream().map(each -> each.getResult()).toList());
    assertEquals(-1L, found.get(0).getProcessInstanceKey());
    var whole = client.newDecisionInstanceGetRequest(found.get(0).getDecisionInstanceId()).send().join();
    assertEquals("gold", whole.getMatchedRules().get(0).getRuleId());
    assertEquals("Discount", client.newDecisionDefinitionGetRequest(key).send().join().getDmnDecisionName());
    assertTrue(client.newDecisionDefinitionGetXmlRequest(key).send().join().contains(id));
    var definitions =
        client.newDecisionDefinitionSearchRequest().filter(filter -> filter.decisionDefinitionKey(key)).send().join().items();
    assertEquals(1, definitions.size());
    long graph = definitions.get(0).getDecisionRequirementsKey();
    assertEquals("Discounts", client.newDecisionRequirementsGetRequest(graph).send().join().getDmnDecisionRequirementsName());
    assertTrue(client.newDecisionRequirementsGetXmlRequest(graph).send().join().contains(id));
    var graphs =
        client.newDecisionRequirementsSearchRequest().filter(filter -> filter.decisionRequirementsKey(graph)).send().join();
    assertEquals(1, graphs.items().size());
  }

  @Test
  void whatIsUsedIsCounted() {
    Model.deploy("straight-through").create();

    var metrics =
        client
            .newUsageMetricsRequest(OffsetDateTime.parse("2020-01-01T00:00:00Z"), OffsetDateTime.parse("2100-01-01T00:00:00Z"))
            .send()
            .join();

    assertTrue(metrics.getProcessInstances() > 0);
  }

  @Test
  void aSearchThatDoesNotFitIsRefused() {
    var refusal =
        Assertions.assertThrows(
            ProblemException.class,
            () -> client.newProcessInstanceSearchRequest().page(page -> page.limit(2).after("nowhere")).send().join());

    assertEquals(400, refusal.code());
    assertTrue(refusal.details().getDetail().contains("nowhere"), refusal.details().getDetail());
  }
}
