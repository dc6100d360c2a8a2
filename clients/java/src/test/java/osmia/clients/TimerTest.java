package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Timers are never early; how late they may be depends on the machine. */
class TimerTest {
  @Test
  void aPauseHoldsTheInstanceBack() {
    Model model = Model.deploy("timers");
    long start = System.nanoTime();
    model.create(Map.of("pause", "PT1S", "reminders", "R1/PT1H", "limit", "PT1H"));

    Jobs.pollOne(model.jobType("work"));

    assertElapsedSince(start, 1);
  }

  @Test
  void remindersComeAsOftenAsTheyShould() {
    Model model = Model.deploy("timers");
    long start = System.nanoTime();
    var result =
        model
            .createWithResult(Map.of("pause", "PT0S", "reminders", "R2/PT1S", "limit", "PT1H"))
            .toCompletableFuture();
    ActivatedJob work = Jobs.pollOne(model.jobType("work"));

    Jobs.complete(Jobs.pollOne(model.jobType("remind")));
    Jobs.complete(Jobs.pollOne(model.jobType("remind")));

    assertElapsedSince(start, 2);
    Jobs.complete(work);
    assertEquals(work.getProcessInstanceKey(), result.join().getProcessInstanceKey());
  }

  @Test
  void aLimitEndsTheTask() {
    Model model = Model.deploy("timers");
    long instance =
        model
            .create(Map.of("pause", "PT0S", "reminders", "R/PT1H", "limit", "PT1S"))
            .getProcessInstanceKey();
    // On a slow machine the limit may come before anybody has the job.
    var work = Jobs.activate(model.jobType("work"), 1, Jobs.LOCK, Duration.ofSeconds(3));

    ActivatedJob escalate = Jobs.pollOne(model.jobType("escalate"));

    assertEquals(instance, escalate.getProcessInstanceKey());
    for (ActivatedJob job : work) {
      Status.refused(Code.NOT_FOUND, () -> Jobs.complete(job));
    }
    Jobs.complete(escalate);
    Status.refused(Code.NOT_FOUND, () -> cancel(instance));
  }

  @Test
  void timersOfACancelledInstanceAreGone() {
    Model model = Model.deploy("timers");
    long instance =
        model
            .create(Map.of("pause", "PT0S", "reminders", "R/PT0.2S", "limit", "PT0.2S"))
            .getProcessInstanceKey();
    cancel(instance);

    Jobs.assertNone(model.jobType("escalate"));
  }

  @Test
  void timeStartsInstances() {
    Model model = Model.deploy("timer-start");

    List<ActivatedJob> jobs = Jobs.poll(model.jobType("work"), 2);

    assertNotEquals(jobs.get(0).getProcessInstanceKey(), jobs.get(1).getProcessInstanceKey());
    Jobs.assertNone(model.jobType("work"));
  }

  @Test
  void aDurationThatIsNoneIsAnIncident() throws Exception {
    Model model = Model.deploy("timers");
    long instance = model.create(Map.of("pause", "a while")).getProcessInstanceKey();

    var incident = Records.incident(instance);
    assertEquals("EXTRACT_VALUE_ERROR", incident.errorType());
    assertEquals("pause", incident.elementId());
    assertTrue(incident.errorMessage().contains("a while"), incident.errorMessage());

    Map<String, Object> variables = Map.of("pause", "PT0S", "reminders", "R1/PT1H", "limit", "PT1H");
    Server.client().newSetVariablesCommand(instance).variables(variables).send().join();
    Server.client().newResolveIncidentCommand(incident.key()).send().join();

    assertEquals(instance, Jobs.pollOne(model.jobType("work")).getProcessInstanceKey());
  }

  private static void assertElapsedSince(long startNanos, int seconds) {
    // The server's clock counts whole milliseconds.
    long elapsed = (System.nanoTime() - startNanos) / 1_000_000;
    assertTrue(elapsed >= seconds * 1000 - 2, "too early: after " + elapsed + " ms");
  }

  private static void cancel(long processInstanceKey) {
    Server.client().newCancelInstanceCommand(processInstanceKey).send().join();
  }
}
