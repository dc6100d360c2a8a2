package osmia.clients;

import io.grpc.Status.Code;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Alone, because Zeebe 8.6 answers such a time-out by closing a connection that others share. */
@Isolated
class ResultTimeoutTest {
  @Test
  void theCallerMayGiveUpAndTheInstanceGoesOn() {
    Model model = Model.deploy("one-task");

    Status.refused(
        Code.DEADLINE_EXCEEDED,
        () ->
            Server.client()
                .newCreateInstanceCommand()
                .bpmnProcessId(model.id())
                .latestVersion()
                .withResult()
                .requestTimeout(Duration.ofSeconds(1))
                .send()
                .join());

    Jobs.complete(Jobs.pollOne(model.jobType("work")));
  }
}
