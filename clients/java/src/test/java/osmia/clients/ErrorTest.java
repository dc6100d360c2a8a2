package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** BPMN errors that workers throw and boundary events catch. */
class ErrorTest {
  @Test
  void anErrorIsCaughtByTheEventWithItsCode() {
    Model model = Model.deploy("error-boundary");
    var result = model.createWithResult(Map.of("a", 1)).toCompletableFuture();
    ActivatedJob work = Jobs.pollOne(model.jobType("work"));

    throwError(work, "OUT_OF_STOCK", Map.of("item", "honey", "price", 3));

    ActivatedJob reorder = Jobs.pollOne(model.jobType("reorder"));
    // What is thrown belongs to the event, and only what is mapped leaves it.
    assertEquals(Map.of("a", 1, "missing", "honey"), reorder.getVariablesAsMap());
    Status.refused(Code.NOT_FOUND, () -> Jobs.complete(work));
    Jobs.complete(reorder);
    assertEquals(Map.of("a", 1, "missing", "honey"), result.join().getVariablesAsMap());
  }

  @Test
  void anotherErrorIsCaughtAroundTheSubProcess() {
    Model model = Model.deploy("error-boundary");
    var result = model.createWithResult(Map.of()).toCompletableFuture();
    ActivatedJob work = Jobs.pollOne(model.jobType("work"));

    throwError(work, "STUNG", Map.of());

    ActivatedJob apologise = Jobs.pollOne(model.jobType("apologise"));
    assertEquals(work.getProcessInstanceKey(), apologise.getProcessInstanceKey());
    Jobs.complete(apologise);
    assertEquals(work.getProcessInstanceKey(), result.join().getProcessInstanceKey());
    Jobs.assertNone(model.jobType("reorder"));
  }

  @Test
  void aTaskThatCompletesTakesItsEventsWithIt() {
    Model model = Model.deploy("error-boundary");
    var result = model.createWithResult(Map.of()).toCompletableFuture();
    ActivatedJob work = Jobs.pollOne(model.jobType("work"));

    Jobs.complete(work, Map.of("done", true));

    assertEquals(Map.of("done", true), result.join().getVariablesAsMap());
    Status.refused(Code.NOT_FOUND, () -> throwError(work, "OUT_OF_STOCK", Map.of()));
  }

  static void throwError(ActivatedJob job, String code, Map<String, Object> variables) {
    Server.client().newThrowErrorCommand(job).errorCode(code).variables(variables).send().join();
  }
}
