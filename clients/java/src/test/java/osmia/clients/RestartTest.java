package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.CamundaClient;
import io.camunda.client.api.command.ClientException;
import io.camunda.client.api.command.ClientHttpException;
import io.camunda.client.api.command.ClientStatusException;
import io.camunda.client.api.response.ActivatedJob;
import io.camunda.client.api.worker.JobClient;
import io.camunda.client.api.worker.JobHandler;
import io.camunda.client.api.worker.JobWorker;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * A worker and the server restarted in the middle of the work. {@code OSMIA_RESTART_COMMAND} kills
 * the server, starts it again on the same data and returns when it is ready.
 */
@Isolated
@EnabledIfEnvironmentVariable(named = "OSMIA_RESTART_COMMAND", matches = ".+")
class RestartTest {
  private static final int INSTANCES = 200;
  private static final Duration LOCK = Duration.ofSeconds(5);
  private static final long PATIENCE_NANOS = 900_000_000_000L;
  private static final Set<Code> CONNECTION_LOST =
      Set.of(Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELLED, Code.ABORTED);

  /** What the workers know: which completions were acknowledged, and how many came too late. */
  private static final class Ledger implements JobHandler {
    final Set<Long> completed = ConcurrentHashMap.newKeySet();
    final AtomicInteger acknowledgedTwice = new AtomicInteger();
    final Set<Long> refusedAsDone = ConcurrentHashMap.newKeySet();
    final AtomicInteger unanswered = new AtomicInteger();
    /** Jobs whose completion went out without an answer: they may be done or not. */
    final Set<Long> uncertain = ConcurrentHashMap.newKeySet();

    @Override
    public void handle(JobClient client, ActivatedJob job) {
      long instance = job.getProcessInstanceKey();
      try {
        client.newCompleteCommand(job).requestTimeout(Duration.ofSeconds(5)).send().join();
        if (!completed.add(instance)) {
          acknowledgedTwice.incrementAndGet();
        }
      } catch (RuntimeException refusal) {
        if (isNotFound(refusal)) {
          refusedAsDone.add(instance);
        } else {
          uncertain.add(instance);
          unanswered.incrementAndGet();
        }
      }
    }

    /** Instances known to be done: acknowledged, or unanswered and then found to be gone. */
    Set<Long> done() {
      Set<Long> done = new HashSet<>(completed);
      refusedAsDone.stream().filter(uncertain::contains).forEach(done::add);
      return done;
    }
  }

  @Test
  void everyAcknowledgedInstanceCompletesOnce() throws Exception {
    Model model = Model.deploy("one-task");
    String type = model.jobType("work");
    Ledger ledger = new Ledger();
    Set<Long> created = new HashSet<>();

    CamundaClient client = Server.connect();
    JobWorker worker = open(client, type, ledger);
    Process restart = null;
    for (int n = 0; n < INSTANCES; n++) {
      if (n == INSTANCES / 3) {
        restart = startRestart();
      }
      if (n == 2 * INSTANCES / 3) {
        awaitRestart(restart);
        worker.close();
        client.close();
        client = Server.connect();
        worker = open(client, type, ledger);
      }
      created.add(createUntilAcknowledged(model, n));
      Thread.sleep(10);
    }
    assertEquals(INSTANCES, created.size());

    long end = System.nanoTime() + PATIENCE_NANOS;
    while (!ledger.done().containsAll(created) && System.nanoTime() < end) {
      findOutAboutUncertainInstances(ledger);
      Thread.sleep(100);
    }
    worker.close();
    client.close();

    System.out.printf(
        "restart: %d created, %d completed and acknowledged, %d unanswered completions, %d found"
            + " already done%n",
        created.size(), ledger.completed.size(), ledger.unanswered.get(), ledger.refusedAsDone.size());
    Set<Long> missing = new HashSet<>(created);
    missing.removeAll(ledger.done());
    assertEquals(Set.of(), missing, "acknowledged instances that never completed");
    assertEquals(0, ledger.acknowledgedTwice.get(), "completions acknowledged twice");
    for (long instance : created) {
      Status.refused(
          Code.NOT_FOUND,
          () -> Server.client().newCancelInstanceCommand(instance).send().join());
    }
  }

  private static JobWorker open(CamundaClient client, String type, Ledger ledger) {
    return client
        .newWorker()
        .jobType(type)
        .handler(ledger)
        .timeout(LOCK)
        .pollInterval(Duration.ofMillis(100))
        .requestTimeout(Duration.ofSeconds(2))
        .streamEnabled(Server.hasFullGateway())
        .open();
  }

  /** What was sent and not acknowledged may or may not exist: only the acknowledged one counts. */
  private static long createUntilAcknowledged(Model model, int n) throws Exception {
    long end = System.nanoTime() + PATIENCE_NANOS;
    while (true) {
      try {
        return Server.client()
            .newCreateInstanceCommand()
            .bpmnProcessId(model.id())
            .latestVersion()
            .variables(Map.of("n", n))
            .requestTimeout(Duration.ofSeconds(5))
            .send()
            .join()
            .getProcessInstanceKey();
      } catch (ClientException refusal) {
        assertTrue(isConnectionLost(refusal) && System.nanoTime() < end, refusal.toString());
        Thread.sleep(20);
      }
    }
  }

  private static boolean isNotFound(RuntimeException refusal) {
    return refusal instanceof ClientStatusException status
            && status.getStatusCode() == Code.NOT_FOUND
        || refusal instanceof ClientHttpException http && http.code() == 404;
  }

  /** Over REST the client says so with whatever the connection said. */
  private static boolean isConnectionLost(ClientException refusal) {
    if (refusal instanceof ClientStatusException status) {
      return CONNECTION_LOST.contains(status.getStatusCode()) || isChannelClosed(status);
    }
    if (refusal instanceof ClientHttpException http) {
      return http.code() == 503 || http.code() == 504;
    }
    return refusal.getCause() != null;
  }

  /** The library's word for a connection that ends in the moment in which a call begins. */
  private static boolean isChannelClosed(ClientStatusException status) {
    return status.getStatusCode() == Code.UNKNOWN && status.getMessage().contains("channel closed");
  }

  /** The restart runs beside the load; instances are created until the server is gone and after. */
  private static Process startRestart() throws Exception {
    return new ProcessBuilder("sh", "-c", System.getenv("OSMIA_RESTART_COMMAND"))
        .inheritIO()
        .start();
  }

  private static void awaitRestart(Process restart) throws Exception {
    assertTrue(
        restart.waitFor(PATIENCE_NANOS, TimeUnit.NANOSECONDS),
        "the restart command did not return");
    assertEquals(0, restart.exitValue(), "exit code of the restart command");
  }

  /** An unanswered completion that was executed leaves no job behind, only a gone instance. */
  private static void findOutAboutUncertainInstances(Ledger ledger) {
    for (long instance : ledger.uncertain) {
      if (ledger.done().contains(instance)) {
        continue;
      }
      try {
        Server.client()
            .newSetVariablesCommand(instance)
            .variables(Map.of("probe", true))
            .send()
            .join();
      } catch (ClientException refusal) {
        if (isNotFound(refusal)) {
          ledger.refusedAsDone.add(instance);
        }
      }
    }
  }
}
