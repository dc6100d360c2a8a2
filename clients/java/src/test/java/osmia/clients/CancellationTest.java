package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CancellationTest {
  @Test
  void aCancelledInstanceOffersNoJobs() {
    Model model = Model.deploy("one-task");
    cancel(model.create());

    Jobs.assertNone(model.jobType("work"));
  }

  @Test
  void aJobInWorkIsGone() {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    ActivatedJob job = Jobs.pollOne(model.jobType("work"));

    cancel(instance);

    Status.refused(Code.NOT_FOUND, () -> Jobs.complete(job));
    Status.refused(Code.NOT_FOUND, () -> Jobs.fail(job, 1, "too late"));
  }

  @Test
  void allBranchesAndNestedScopesAreCancelled() {
    Model parallel = Model.deploy("parallel-gateway");
    long first = parallel.create();
    Model nested = Model.deploy("sub-process");
    long second =
        nested.create(Map.of("order", Map.of("items", List.of(1)))).getProcessInstanceKey();
    ActivatedJob inBranch = Jobs.pollOne(parallel.jobType("a"));
    ActivatedJob inScope = Jobs.pollOne(nested.jobType("envelope"));

    cancel(first);
    cancel(second);

    Jobs.assertNone(parallel.jobType("b"));
    Status.refused(Code.NOT_FOUND, () -> Jobs.complete(inBranch));
    Status.refused(Code.NOT_FOUND, () -> Jobs.complete(inScope));
  }

  @Test
  void cancellingTwiceIsNotFound() {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    cancel(instance);

    String message = Status.refused(Code.NOT_FOUND, () -> cancel(instance));

    assertTrue(message.contains(Long.toString(instance)), message);
  }

  @Test
  void aCompletedInstanceIsNotFound() {
    Model model = Model.deploy("one-task");
    long instance = model.create();
    Jobs.complete(Jobs.pollOne(model.jobType("work")));

    Status.refused(Code.NOT_FOUND, () -> cancel(instance));
  }

  @Test
  void anUnknownInstanceIsNotFound() {
    Status.refused(Code.NOT_FOUND, () -> cancel(2251799813685248L + 4_000_000_000L));
  }

  private static void cancel(long processInstanceKey) {
    Server.client().newCancelInstanceCommand(processInstanceKey).send().join();
  }
}
