package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import java.util.Map;
import org.junit.jupiter.api.Test;

class IncidentTest {
  private static final long UNKNOWN_KEY = 2251799813685248L + 4_000_000_000L;

  @Test
  void aJobWithoutRetriesWaitsForItsIncident() throws Exception {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    ActivatedJob job = Jobs.pollOne(model.jobType("work"));
    Jobs.fail(job, 0, "the printer is on fire");
    Jobs.assertNone(model.jobType("work"));

    var incident = Records.incident(instance);
    assertEquals("JOB_NO_RETRIES", incident.errorType());
    assertEquals("the printer is on fire", incident.errorMessage());
    assertEquals("work", incident.elementId());
    assertEquals(job.getKey(), incident.jobKey());

    Server.client().newUpdateRetriesCommand(job).retries(2).send().join();
    Jobs.assertNone(model.jobType("work"));
    resolve(incident.key());
    ActivatedJob again = Jobs.pollOne(model.jobType("work"));
    assertEquals(job.getKey(), again.getKey());
    assertEquals(2, again.getRetries());
    Jobs.complete(again);
  }

  @Test
  void resolvingWithoutNewRetriesIsRefused() throws Exception {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    Jobs.fail(Jobs.pollOne(model.jobType("work")), 0, "no");
    var incident = Records.incident(instance);

    Status.refused(Code.FAILED_PRECONDITION, () -> resolve(incident.key()));

    Jobs.assertNone(model.jobType("work"));
  }

  @Test
  void resolvingTwiceIsNotFound() throws Exception {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    ActivatedJob job = Jobs.pollOne(model.jobType("work"));
    Jobs.fail(job, 0, "no");
    var incident = Records.incident(instance);
    Server.client().newUpdateRetriesCommand(job).retries(1).send().join();
    resolve(incident.key());

    Status.refused(Code.NOT_FOUND, () -> resolve(incident.key()));
  }

  @Test
  void anUnknownIncidentIsNotFound() {
    String message = Status.refused(Code.NOT_FOUND, () -> resolve(UNKNOWN_KEY));

    assertTrue(message.contains(Long.toString(UNKNOWN_KEY)), message);
  }

  @Test
  void aFailedJobWithIncidentCanFailAgain() throws Exception {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    ActivatedJob job = Jobs.pollOne(model.jobType("work"));
    for (int round = 1; round <= 2; round++) {
      Jobs.fail(job, 0, "round " + round);
      var incident = Records.incident(instance, round);
      assertEquals("round " + round, incident.errorMessage());
      Server.client().newUpdateRetriesCommand(job).retries(1).send().join();
      resolve(incident.key());
      job = Jobs.pollOne(model.jobType("work"));
    }
    Jobs.complete(job);
  }

  @Test
  void anErrorThatNobodyCatchesIsAnIncident() throws Exception {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    ActivatedJob job = Jobs.pollOne(model.jobType("work"));
    Server.client()
        .newThrowErrorCommand(job)
        .errorCode("OUT_OF_STOCK")
        .errorMessage("no bees left")
        .send()
        .join();
    Jobs.assertNone(model.jobType("work"));
    Status.refused(Code.FAILED_PRECONDITION, () -> Jobs.complete(job));

    var incident = Records.incident(instance);
    assertEquals("UNHANDLED_ERROR_EVENT", incident.errorType());
    assertTrue(incident.errorMessage().contains("OUT_OF_STOCK"), incident.errorMessage());
    assertEquals("work", incident.elementId());

    resolve(incident.key());
    ActivatedJob again = Jobs.pollOne(model.jobType("work"));
    assertEquals(job.getKey(), again.getKey());
    Jobs.complete(again);
  }

  @Test
  void aGatewayWithoutATrueConditionWaitsForOtherVariables() throws Exception {
    Model model = Model.deploy("no-default-flow");
    long instance = model.create(Map.of("approved", "perhaps")).getProcessInstanceKey();
    Jobs.assertNone(model.jobType("approved"));

    var incident = Records.incident(instance);
    assertEquals("choose", incident.elementId());
    Server.client().newSetVariablesCommand(instance).variables(Map.of("approved", true)).send().join();
    resolve(incident.key());

    assertEquals(instance, Jobs.pollOne(model.jobType("approved")).getProcessInstanceKey());
  }

  @Test
  void cancellingTheInstanceEndsItsIncident() throws Exception {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    Jobs.fail(Jobs.pollOne(model.jobType("work")), 0, "no");
    var incident = Records.incident(instance);

    Server.client().newCancelInstanceCommand(instance).send().join();

    Status.refused(Code.NOT_FOUND, () -> resolve(incident.key()));
  }

  @Test
  void otherInstancesGoOn() {
    Model model = Model.deploy("one-task");
    model.create();
    Jobs.fail(Jobs.pollOne(model.jobType("work")), 0, "no");

    long other = model.create();

    assertEquals(other, Jobs.pollOne(model.jobType("work")).getProcessInstanceKey());
  }

  private static void resolve(long incidentKey) {
    Server.client().newResolveIncidentCommand(incidentKey).send().join();
  }
}
