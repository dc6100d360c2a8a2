package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Moving running instances by the ids of their elements, which clients can since 8.9. */
class ModificationByElementSince89Test {
  @Test
  void elementsEndByTheirIdAndMove() {
    Server.needsFullGateway();
    Model model = Model.deploy("two-tasks");
    long ended = model.create();
    long moved = model.create();
    Jobs.poll(model.jobType("first"), 2);

    Server.client().newModifyProcessInstanceCommand(ended).terminateElements("first").send().join();
    Server.client()
        .newModifyProcessInstanceCommand(moved)
        .moveElements("first", "second")
        .withVariables(Map.of("b", 2))
        .send()
        .join();

    Status.refused(
        Code.NOT_FOUND, () -> Server.client().newCancelInstanceCommand(ended).send().join());
    ActivatedJob second = Jobs.pollOne(model.jobType("second"));
    assertEquals(moved, second.getProcessInstanceKey());
    assertEquals(Map.of("b", 2), second.getVariablesAsMap());
    Jobs.complete(second);
    Status.refused(
        Code.NOT_FOUND, () -> Server.client().newCancelInstanceCommand(moved).send().join());
  }
}
