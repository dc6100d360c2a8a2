package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.command.ClientException;
import io.camunda.client.api.command.ProblemException;
import io.grpc.Status.Code;
import java.net.SocketTimeoutException;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.parallel.Isolated;

/** Alone, because Zeebe 8.6 answers such a time-out by closing a connection that others share. */
@Isolated
class ResultTimeoutTest {
  @Test
  void theCallerMayGiveUpAndTheInstanceGoesOn() {
    Model model = Model.deploy("one-task");

    Executable waitsInVain =
        () ->
            Server.client()
                .newCreateInstanceCommand()
                .bpmnProcessId(model.id())
                .latestVersion()
                .withResult()
                .requestTimeout(Duration.ofSeconds(1))
                .send()
                .join();
    if (Server.prefersRest() && Server.isBefore89()) {
      // It waits for no longer than the server does, so either may be the first to give up.
      ClientException end = assertThrows(ClientException.class, waitsInVain);
      boolean isRefused = end instanceof ProblemException problem && problem.code() == 504;
      assertTrue(isRefused || end.getCause() instanceof SocketTimeoutException, end.toString());
    } else {
      Status.refused(Code.DEADLINE_EXCEEDED, waitsInVain);
    }

    Jobs.complete(Jobs.pollOne(model.jobType("work")));
  }
}
