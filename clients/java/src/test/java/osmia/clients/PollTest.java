package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class PollTest {
  @Test
  void aJobCarriesAllThatAWorkerNeeds() {
    Model model = Model.deploy("one-task");
    var created = model.create(Map.of("name", "Ada", "list", List.of(1, 2)));
    long before = System.currentTimeMillis();

    ActivatedJob job = Jobs.pollOne(model.jobType("work"));

    assertTrue(job.getKey() > 0);
    assertTrue(job.getElementInstanceKey() > created.getProcessInstanceKey());
    assertEquals(model.jobType("work"), job.getType());
    assertEquals(created.getProcessInstanceKey(), job.getProcessInstanceKey());
    assertEquals(model.id(), job.getBpmnProcessId());
    assertEquals(1, job.getProcessDefinitionVersion());
    assertEquals(created.getProcessDefinitionKey(), job.getProcessDefinitionKey());
    assertEquals("work", job.getElementId());
    assertEquals("suite", job.getWorker());
    assertEquals(3, job.getRetries());
    assertEquals(Map.of("color", "blue", "note", "a \"quoted\" text"), job.getCustomHeaders());
    assertEquals(Map.of("name", "Ada", "list", List.of(1, 2)), job.getVariablesAsMap());
    // The lock of a minute began between the two looks at the clock.
    long longest = job.getDeadline() - before;
    long shortest = job.getDeadline() - System.currentTimeMillis();
    assertTrue(longest >= 59_990 && shortest <= 60_010, "locked for " + shortest + " to " + longest + " ms");
  }

  @Test
  void retriesComeFromTheModel() {
    Model model = Model.deploy("two-tasks");
    model.create();

    Jobs.complete(Jobs.pollOne(model.jobType("first")));

    assertEquals(5, Jobs.pollOne(model.jobType("second")).getRetries());
  }

  @Test
  void onlyTheAskedForVariablesAreFetched() {
    Model model = Model.deploy("one-task");
    model.create(Map.of("a", 1, "b", 2));

    List<ActivatedJob> jobs =
        Server.client()
            .newActivateJobsCommand()
            .jobType(model.jobType("work"))
            .maxJobsToActivate(1)
            .fetchVariables("b", "missing")
            .send()
            .join()
            .getJobs();

    assertEquals(1, jobs.size());
    assertEquals(Map.of("b", 2), jobs.get(0).getVariablesAsMap());
  }

  @Test
  void aLongPollWakesForAJobThatComesLater() throws Exception {
    Server.needsFullGateway();
    Model model = Model.deploy("one-task");
    CompletableFuture<List<ActivatedJob>> poll =
        CompletableFuture.supplyAsync(() -> Jobs.poll(model.jobType("work"), 1));
    Thread.sleep(500);

    long instance = model.create();
    ActivatedJob job = poll.get().get(0);

    assertEquals(instance, job.getProcessInstanceKey());
  }

  @Test
  void aPollWithoutJobsEndsEmptyAtItsTimeout() {
    Server.needsFullGateway();
    long start = System.nanoTime();

    var jobs = Jobs.activate(Server.uniqueId("nobody"), 1, Jobs.LOCK, Duration.ofSeconds(1));

    Duration waited = Duration.ofNanos(System.nanoTime() - start);
    assertEquals(List.of(), jobs);
    assertTrue(waited.compareTo(Duration.ofMillis(900)) > 0, "waited only " + waited);
  }

  @Test
  void aJobGoesToOneWorkerOnlyUntilItsLockEnds() throws Exception {
    Model model = Model.deploy("one-task");
    model.create();
    String type = model.jobType("work");
    long start = System.nanoTime();

    var first = Jobs.activate(type, 1, Duration.ofSeconds(2), Duration.ofSeconds(120));
    assertEquals(1, first.size());
    ActivatedJob again = Jobs.pollOne(type);

    Duration waited = Duration.ofNanos(System.nanoTime() - start);
    assertEquals(first.get(0).getKey(), again.getKey());
    assertEquals(3, again.getRetries());
    assertTrue(waited.compareTo(Duration.ofMillis(1990)) > 0, "available after " + waited);
    Jobs.complete(again);
  }

  @Test
  void pollsNeverTakeMoreThanTheyAskedFor() {
    Model model = Model.deploy("one-task");
    for (int n = 0; n < 9; n++) {
      model.create();
    }

    Set<Long> keys = new HashSet<>();
    int polls = 0;
    while (keys.size() < 9 && polls++ < 30) {
      var jobs = Jobs.activate(model.jobType("work"), 2, Jobs.LOCK, Duration.ofSeconds(5));
      assertTrue(jobs.size() <= 2, jobs.size() + " jobs in one answer");
      jobs.forEach(job -> assertTrue(keys.add(job.getKey()), "job given out twice"));
    }
    assertEquals(9, keys.size());
  }

  @Test
  void aWorkerHandlesWhatItPolls() throws Exception {
    Model model = Model.deploy("one-task");
    try (var client = Server.connect();
        var worker =
            client
                .newWorker()
                .jobType(model.jobType("work"))
                .handler((c, job) -> c.newCompleteCommand(job).variable("done", true).send().join())
                .streamEnabled(false)
                .open()) {
      var result = model.createWithResult(Map.of()).toCompletableFuture().join();
      assertEquals(Map.of("done", true), result.getVariablesAsMap());
      assertTrue(worker.isOpen());
    }
  }

  @Test
  void aPollThatMakesNoSenseIsInvalid() {
    Status.refused(
        Code.INVALID_ARGUMENT,
        () -> Jobs.activate("some-type", 1, Duration.ZERO, Duration.ofSeconds(1)));
  }
}
