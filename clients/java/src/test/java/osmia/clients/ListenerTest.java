package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.ActivatedJob;
import io.camunda.client.api.search.enums.JobKind;
import io.camunda.client.api.search.enums.ListenerEventType;
import io.grpc.Status.Code;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Jobs before and after the work of an element. */
class ListenerTest {
  @Test
  void listenersSurroundTheWork() {
    Model model = Model.deploy("listeners");
    var result = model.createWithResult(Map.of("a", 1));

    ActivatedJob before = Jobs.pollOne(model.jobType("before"));
    isOf(before, JobKind.EXECUTION_LISTENER, ListenerEventType.START);
    assertEquals("work", before.getElementId());
    assertEquals(2, before.getRetries());
    Jobs.assertNone(model.jobType("work"));
    Jobs.complete(before, Map.of("own", 1));

    ActivatedJob work = Jobs.pollOne(model.jobType("work"));
    isOf(work, JobKind.BPMN_ELEMENT, ListenerEventType.UNSPECIFIED);
    assertEquals(Map.of("a", 1, "own", 1), work.getVariablesAsMap());
    Jobs.complete(work, Map.of("done", true));

    ActivatedJob after = Jobs.pollOne(model.jobType("after"));
    isOf(after, JobKind.EXECUTION_LISTENER, ListenerEventType.END);
    Jobs.complete(after, Map.of("heard", true));
    // What the listener before the work said is the element's own.
    assertEquals(
        Map.of("a", 1, "done", true, "heard", true),
        result.toCompletableFuture().join().getVariablesAsMap());
  }

  @Test
  void aListenerThatFailsIsAnIncidentOfItsOwn() throws Exception {
    Model model = Model.deploy("listeners");
    long instance = model.create();
    ActivatedJob before = Jobs.pollOne(model.jobType("before"));
    Jobs.fail(before, 0, "deaf");

    var incident = Records.incident(instance);
    assertEquals("EXECUTION_LISTENER_NO_RETRIES", incident.errorType());
    assertEquals("deaf", incident.errorMessage());

    Server.client().newUpdateRetriesCommand(before).retries(1).send().join();
    Server.client().newResolveIncidentCommand(incident.key()).send().join();
    Jobs.complete(Jobs.pollOne(model.jobType("before")));
    Jobs.pollOne(model.jobType("work"));
  }

  @Test
  void aListenerThrowsNoErrors() {
    Model model = Model.deploy("listeners");
    model.create();
    ActivatedJob before = Jobs.pollOne(model.jobType("before"));

    String message =
        Status.refused(
            Code.FAILED_PRECONDITION,
            () -> Server.client().newThrowErrorCommand(before).errorCode("E").send().join());

    assertTrue(message.contains("EXECUTION_LISTENER"), message);
    Jobs.complete(before);
    Jobs.pollOne(model.jobType("work"));
  }

  static void isOf(ActivatedJob job, JobKind kind, ListenerEventType eventType) {
    assertEquals(kind, job.getKind());
    assertEquals(eventType, job.getListenerEventType());
  }
}
