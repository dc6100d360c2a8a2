package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.command.ModifyProcessInstanceCommandStep1;
import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Moving running instances by hand. */
class ModificationTest {
  private static final long UNKNOWN_KEY = 2251799813685248L + 4_000_000_000L;

  @Test
  void oneElementEndsAndAnotherBegins() {
    Model model = Model.deploy("two-tasks");
    var result = model.createWithResult(Map.of("a", 1)).toCompletableFuture();
    ActivatedJob first = Jobs.pollOne(model.jobType("first"));

    modify(first.getProcessInstanceKey())
        .terminateElement(first.getElementInstanceKey())
        .and()
        .activateElement("second")
        .withVariables(Map.of("b", 2))
        .withVariables(Map.of("local", 3), "second")
        .send()
        .join();

    Status.refused(Code.NOT_FOUND, () -> Jobs.complete(first));
    ActivatedJob second = Jobs.pollOne(model.jobType("second"));
    assertEquals(Map.of("a", 1, "b", 2, "local", 3), second.getVariablesAsMap());
    Jobs.complete(second);
    assertEquals(Map.of("a", 1, "b", 2), result.join().getVariablesAsMap());
  }

  @Test
  void scopesAroundAnElementBeginWithIt() {
    Model model = Model.deploy("sub-process");
    Map<String, Object> order = Map.of("items", List.of());
    var result = model.createWithResult(Map.of("order", order)).toCompletableFuture();
    ActivatedJob envelope = Jobs.pollOne(model.jobType("envelope"));
    Jobs.complete(envelope, Map.of("parcel", Map.of("weight", 1)));
    ActivatedJob ship = Jobs.pollOne(model.jobType("ship"));

    modify(ship.getProcessInstanceKey())
        .activateElement("box")
        .withVariables(Map.of("parcel", Map.of("weight", 2)), "packing")
        .and()
        .terminateElement(ship.getElementInstanceKey())
        .send()
        .join();

    ActivatedJob box = Jobs.pollOne(model.jobType("box"));
    Jobs.complete(box, Map.of("parcel", Map.of("weight", 3)));
    Jobs.complete(Jobs.pollOne(model.jobType("ship")));
    assertEquals(3, result.join().getVariable("parcelWeight"));
  }

  @Test
  void anInstanceInWhichNothingIsLeftEnds() {
    Model model = Model.deploy("two-tasks");
    long instance = model.create();
    ActivatedJob first = Jobs.pollOne(model.jobType("first"));

    modify(instance).terminateElement(first.getElementInstanceKey()).send().join();

    String message =
        Status.refused(
            Code.NOT_FOUND, () -> Server.client().newCancelInstanceCommand(instance).send().join());
    assertTrue(message.contains(Long.toString(instance)), message);
  }

  @Test
  void nothingHappensWhenOneInstructionIsWrong() {
    Model model = Model.deploy("two-tasks");
    long instance = model.create();
    ActivatedJob first = Jobs.pollOne(model.jobType("first"));

    String message =
        Status.refused(
            Code.INVALID_ARGUMENT,
            () ->
                modify(instance)
                    .terminateElement(first.getElementInstanceKey())
                    .and()
                    .activateElement("third")
                    .send()
                    .join());
    assertTrue(message.contains("third"), message);
    for (String element : List.of("start", "f1")) {
      Status.refused(
          Code.INVALID_ARGUMENT, () -> modify(instance).activateElement(element).send().join());
    }
    Status.refused(
        Code.INVALID_ARGUMENT,
        () -> modify(instance).terminateElement(UNKNOWN_KEY).send().join());

    Jobs.complete(first);
    Jobs.pollOne(model.jobType("second"));
  }

  @Test
  void anUnknownInstanceIsNotFound() {
    String message =
        Status.refused(
            Code.NOT_FOUND, () -> modify(UNKNOWN_KEY).activateElement("second").send().join());

    assertTrue(message.contains(Long.toString(UNKNOWN_KEY)), message);
  }

  private static ModifyProcessInstanceCommandStep1 modify(long processInstanceKey) {
    return Server.client().newModifyProcessInstanceCommand(processInstanceKey);
  }
}
