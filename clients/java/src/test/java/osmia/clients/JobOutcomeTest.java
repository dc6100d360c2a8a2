package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.command.ClientException;
import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Completing and failing jobs, and changing their retries and locks. */
class JobOutcomeTest {
  private static final long UNKNOWN_KEY = 2251799813685248L + 4_000_000_000L;

  @Test
  void completionVariablesReachTheNextTask() {
    Model model = Model.deploy("two-tasks");
    model.create(Map.of("kept", "yes", "changed", 1));

    Jobs.complete(
        Jobs.pollOne(model.jobType("first")), Map.of("changed", 2, "fresh", Map.of("x", true)));

    assertEquals(
        Map.of("kept", "yes", "changed", 2, "fresh", Map.of("x", true)),
        Jobs.pollOne(model.jobType("second")).getVariablesAsMap());
  }

  @Test
  void completingTwiceIsNotFound() {
    Model model = Model.deploy("one-task");
    model.create();
    ActivatedJob job = Jobs.pollOne(model.jobType("work"));
    Jobs.complete(job);

    String message = Status.refused(Code.NOT_FOUND, () -> Jobs.complete(job));

    assertTrue(message.contains(Long.toString(job.getKey())), message);
  }

  @Test
  void completingWithVariablesThatAreNoObjectIsInvalidAndChangesNothing() {
    Server.needsGrpc();
    Server.needsFullGateway();
    Model model = Model.deploy("one-task");
    model.create();
    ActivatedJob job = Jobs.pollOne(model.jobType("work"));

    Status.refused(
        Code.INVALID_ARGUMENT,
        () -> Server.client().newCompleteCommand(job).variables("[]").send().join());

    Jobs.complete(job);
  }

  @Test
  void anUnknownJobIsNotFoundForEveryCommand() {
    var client = Server.client();

    Status.refused(
        Code.NOT_FOUND, () -> client.newCompleteCommand(UNKNOWN_KEY).send().join());
    Status.refused(
        Code.NOT_FOUND, () -> client.newFailCommand(UNKNOWN_KEY).retries(1).send().join());
    Status.refused(
        Code.NOT_FOUND,
        () -> client.newThrowErrorCommand(UNKNOWN_KEY).errorCode("E").send().join());
    Status.refused(
        Code.NOT_FOUND,
        () -> client.newUpdateRetriesCommand(UNKNOWN_KEY).retries(1).send().join());
    Status.refused(
        Code.NOT_FOUND,
        () ->
            client
                .newUpdateTimeoutCommand(UNKNOWN_KEY)
                .timeout(Duration.ofSeconds(1))
                .send()
                .join());
  }

  @Test
  void aFailedJobIsAvailableAgainWithTheGivenRetries() {
    Model model = Model.deploy("one-task");
    model.create();
    ActivatedJob first = Jobs.pollOne(model.jobType("work"));

    Jobs.fail(first, 7, "try again");

    ActivatedJob again = Jobs.pollOne(model.jobType("work"));
    assertEquals(first.getKey(), again.getKey());
    assertEquals(7, again.getRetries());
    Jobs.complete(again);
  }

  @Test
  void failureVariablesAreSeenByTheNextAttemptOnly() {
    Server.needsFullGateway();
    Model model = Model.deploy("two-tasks");
    model.create(Map.of("a", 1));

    Server.client()
        .newFailCommand(Jobs.pollOne(model.jobType("first")))
        .retries(1)
        .variables(Map.of("attempt", "one"))
        .send()
        .join();

    ActivatedJob again = Jobs.pollOne(model.jobType("first"));
    assertEquals(Map.of("a", 1, "attempt", "one"), again.getVariablesAsMap());
    Jobs.complete(again);
    assertEquals(Map.of("a", 1), Jobs.pollOne(model.jobType("second")).getVariablesAsMap());
  }

  @Test
  void aFailedJobWaitsForItsBackoff() {
    Model model = Model.deploy("one-task");
    model.create();
    ActivatedJob first = Jobs.pollOne(model.jobType("work"));
    long start = System.nanoTime();

    Server.client()
        .newFailCommand(first)
        .retries(2)
        .retryBackoff(Duration.ofSeconds(2))
        .errorMessage("later")
        .send()
        .join();

    ActivatedJob again = Jobs.pollOne(model.jobType("work"));
    Duration waited = Duration.ofNanos(System.nanoTime() - start);
    assertEquals(first.getKey(), again.getKey());
    assertEquals(2, again.getRetries());
    assertTrue(waited.compareTo(Duration.ofMillis(1990)) > 0, "available after " + waited);
    Jobs.complete(again);
  }

  @Test
  void retriesOfAnActivatedJobCanBeUpdated() {
    Model model = Model.deploy("one-task");
    model.create();
    String type = model.jobType("work");
    ActivatedJob first = Jobs.pollOne(type);

    Server.client().newUpdateRetriesCommand(first).retries(9).send().join();
    Server.client().newUpdateTimeoutCommand(first).timeout(Duration.ofMillis(100)).send().join();

    assertEquals(9, Jobs.pollOne(type).getRetries());
  }

  @Test
  void retriesMustBePositive() {
    Model model = Model.deploy("one-task");
    model.create();
    ActivatedJob job = Jobs.pollOne(model.jobType("work"));

    Status.refused(
        Code.INVALID_ARGUMENT,
        () -> Server.client().newUpdateRetriesCommand(job).retries(0).send().join());
  }

  @Test
  void aShorterLockFreesTheJobEarlier() {
    Model model = Model.deploy("one-task");
    model.create();
    ActivatedJob first = Jobs.pollOne(model.jobType("work"));

    Server.client().newUpdateTimeoutCommand(first).timeout(Duration.ofMillis(100)).send().join();

    assertEquals(first.getKey(), Jobs.pollOne(model.jobType("work")).getKey());
  }

  @Test
  void aLongerLockKeepsTheJob() {
    Model model = Model.deploy("one-task");
    model.create();
    String type = model.jobType("work");
    for (int seconds = 1; ; seconds *= 2) {
      Duration lock = Duration.ofSeconds(seconds);
      ActivatedJob job = Jobs.activate(type, 1, lock, Duration.ofSeconds(120)).get(0);
      try {
        Server.client().newUpdateTimeoutCommand(job).timeout(Duration.ofMinutes(10)).send().join();
      } catch (ClientException refusal) {
        // A lock that has ended cannot be made longer: a slow machine begins with a longer one.
        assertTrue(seconds < 60, refusal.toString());
        continue;
      }

      var jobs = Jobs.activate(type, 1, Jobs.LOCK, lock.plusSeconds(2));
      assertEquals(0, jobs.size());
      Jobs.complete(job);
      return;
    }
  }
}
