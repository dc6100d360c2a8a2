package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.camunda.client.CamundaClient;
import io.camunda.client.api.response.ActivatedJob;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Polling for jobs and finishing them. */
final class Jobs {
  static final Duration LOCK = Duration.ofMinutes(1);
  private static final Duration PATIENCE = Duration.ofSeconds(120);
  private static final Duration POLL = Duration.ofSeconds(3);
  private static final Duration A_MOMENT = Duration.ofMillis(500);

  private Jobs() {}

  /** Waits for exactly this many jobs of the type; several polls may be needed. */
  static List<ActivatedJob> poll(String type, int count) {
    return poll(Server.client(), type, count);
  }

  private static List<ActivatedJob> poll(CamundaClient client, String type, int count) {
    List<ActivatedJob> jobs = new ArrayList<>();
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (jobs.size() < count && System.nanoTime() < end) {
      jobs.addAll(activate(client, type, count - jobs.size(), LOCK, POLL));
    }
    assertEquals(count, jobs.size(), "jobs of type " + type + " activated");
    return jobs;
  }

  static ActivatedJob pollOne(CamundaClient client, String type) {
    return poll(client, type, 1).get(0);
  }

  static ActivatedJob pollOne(String type) {
    return poll(type, 1).get(0);
  }

  /** One poll, which may come back empty. */
  static List<ActivatedJob> activate(String type, int max, Duration lock, Duration patience) {
    return activate(Server.client(), type, max, lock, patience);
  }

  private static List<ActivatedJob> activate(
      CamundaClient client, String type, int max, Duration lock, Duration patience) {
    return client
        .newActivateJobsCommand()
        .jobType(type)
        .maxJobsToActivate(max)
        .timeout(lock)
        .workerName("suite")
        .requestTimeout(patience)
        .send()
        .join()
        .getJobs();
  }

  /** Asserts that no job of the type is available now or in the next moment. */
  static void assertNone(String type) {
    assertEquals(List.of(), activate(type, 1, LOCK, A_MOMENT), "jobs of type " + type);
  }

  static void complete(ActivatedJob job, Map<String, Object> variables) {
    Server.client().newCompleteCommand(job).variables(variables).send().join();
  }

  static void complete(ActivatedJob job) {
    Server.client().newCompleteCommand(job).send().join();
  }

  static void fail(ActivatedJob job, int retries, String message) {
    Server.client().newFailCommand(job).retries(retries).errorMessage(message).send().join();
  }
}
