package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.CamundaClient;
import io.camunda.client.api.CamundaFuture;
import io.camunda.client.api.response.ActivatedJob;
import io.camunda.client.api.search.enums.AuditLogEntityTypeEnum;
import io.camunda.client.api.search.enums.AuditLogOperationTypeEnum;
import io.camunda.client.api.search.enums.AuditLogResultEnum;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the client finds and counts since 8.9, over REST. */
class SearchSince89Test {
  private static final OffsetDateTime FROM = OffsetDateTime.parse("2020-01-01T00:00:00Z");
  private static final OffsetDateTime TO = OffsetDateTime.parse("2100-01-01T00:00:00Z");
  private final CamundaClient client = Server.client();

  @BeforeEach
  void overRest() {
    Server.needsRest();
  }

  @Test
  void jobsAreCountedByTypeWorkerErrorAndTime() {
    Model model = Model.deploy("one-task");
    model.create();
    String type = model.jobType("work");
    Jobs.fail(Jobs.pollOne(type), 1, "no paper");
    Jobs.complete(Jobs.pollOne(type));

    assertTrue(client.newGlobalJobStatisticsRequest(FROM, TO).send().join().getCompleted().getCount() > 0);
    var types = client.newJobTypeStatisticsRequest(FROM, TO).filter(filter -> filter.jobType(type)).send().join().items();
    assertEquals(List.of(type), types.stream().map(each -> each.getJobType()).toList());
    var workers = client.newJobWorkerStatisticsRequest(FROM, TO, type).send().join().items();
    assertEquals(List.of("suite"), workers.stream().map(each -> each.getWorker()).toList());
    assertTrue(!client.newJobTimeSeriesStatisticsRequest(FROM, TO, type).send().join().items().isEmpty());
    // Only what ended with an error counts as one.
    assertEquals(List.of(), client.newJobErrorStatisticsRequest(FROM, TO, type).send().join().items());
  }

  @Test
  void instancesAreCountedByDefinitionAndVersion() {
    Model model = Model.deploy("messages");
    model.create(Map.of("orderId", model.id()));

    var versions = client.newProcessDefinitionInstanceVersionStatisticsRequest(model.id()).send().join().items();
    assertEquals(List.of(1L), versions.stream().map(each -> each.getActiveInstancesWithoutIncidentCount()).toList());
    assertTrue(!client.newProcessDefinitionInstanceStatisticsRequest().send().join().items().isEmpty());
    var waiting =
        client
            .newProcessDefinitionMessageSubscriptionStatisticsRequest()
            .filter(filter -> filter.processDefinitionId(model.id()))
            .send()
            .join()
            .items();
    assertEquals(List.of(1L), waiting.stream().map(each -> each.getActiveSubscriptions()).toList());
  }

  @Test
  void incidentsAreCountedByErrorAndDefinition() {
    Model model = Model.deploy("one-task");
    model.create();
    ActivatedJob job = Jobs.pollOne(model.jobType("work"));
    Jobs.fail(job, 0, "no paper in " + model.id());

    var errors = client.newIncidentProcessInstanceStatisticsByErrorRequest().page(page -> page.limit(1_000)).send().join().items();
    var mine = errors.stream().filter(error -> error.getErrorMessage().endsWith(model.id())).findFirst().orElseThrow();
    assertEquals(1, mine.getActiveInstancesWithErrorCount());
    var definitions =
        client.newIncidentProcessInstanceStatisticsByDefinitionRequest(mine.getErrorHashCode()).send().join().items();
    assertEquals(List.of(model.id()), definitions.stream().map(each -> each.getProcessDefinitionId()).toList());
    var ofElement = client.newIncidentsByElementInstanceSearchRequest(job.getElementInstanceKey()).send().join().items();
    assertEquals(1, ofElement.size());
    client.newCancelInstanceCommand(job.getProcessInstanceKey()).send().join();
  }

  @Test
  void whatWasDoneToATaskIsWrittenDown() {
    Model model = Model.deploy("task-listeners");
    long instance = model.create();
    Jobs.complete(Jobs.pollOne(model.jobType("creating")));
    var filter = client.newUserTaskSearchRequest().filter(search -> search.processInstanceKey(instance));
    long task = filter.send().join().items().get(0).getUserTaskKey();
    CamundaFuture<?> asked = client.newAssignUserTaskCommand(task).assignee("ann").send();
    Jobs.complete(Jobs.pollOne(model.jobType("assigning")));
    asked.join();

    var written = client.newUserTaskAuditLogSearchRequest(task).send().join().items();
    var assigned =
        written.stream().filter(each -> each.getOperationType() == AuditLogOperationTypeEnum.ASSIGN).toList();
    assertEquals(List.of(Long.toString(task)), assigned.stream().map(each -> each.getUserTaskKey()).toList());
    String key = assigned.get(0).getAuditLogKey();
    assertEquals(key, client.newAuditLogGetRequest(key).send().join().getAuditLogKey());
    assertTrue(
        !client
            .newAuditLogSearchRequest()
            .filter(search -> search.processInstanceKey(Long.toString(instance)))
            .send()
            .join()
            .items()
            .isEmpty());
    assertEquals(List.of(), client.newUserTaskEffectiveVariableSearchRequest(task).send().join().items());
  }

  @Test
  void whatWasDoneWithAnInstanceAndItsModelIsWrittenDown() {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    client.newSetVariablesCommand(instance).variables(Map.of("paper", "A4")).send().join();
    client.newCancelInstanceCommand(instance).send().join();

    var written =
        client
            .newAuditLogSearchRequest()
            .filter(search -> search.processInstanceKey(Long.toString(instance)))
            .sort(sort -> sort.auditLogKey())
            .send()
            .join()
            .items();
    assertEquals(
        List.of(
            "CREATE VARIABLE paper " + AuditLogResultEnum.SUCCESS,
            "CANCEL PROCESS_INSTANCE null " + AuditLogResultEnum.SUCCESS),
        written.stream()
            .map(
                each ->
                    String.join(
                        " ",
                        each.getOperationType().name(),
                        each.getEntityType().name(),
                        each.getEntityDescription(),
                        each.getResult().name()))
            .toList());
    var deployed =
        client
            .newAuditLogSearchRequest()
            .filter(
                search ->
                    search.processDefinitionId(model.id()).entityType(AuditLogEntityTypeEnum.RESOURCE))
            .send()
            .join()
            .items();
    assertEquals(
        List.of(AuditLogOperationTypeEnum.CREATE), deployed.stream().map(each -> each.getOperationType()).toList());
  }
}
