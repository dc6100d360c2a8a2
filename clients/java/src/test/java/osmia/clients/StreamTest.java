package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.CamundaClient;
import io.camunda.client.api.response.ActivatedJob;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Jobs pushed over a stream, without any poll. */
class StreamTest {
  @BeforeEach
  void needsStreams() {
    Server.needsFullGateway();
  }

  /** An open stream that is known to push. */
  private static final class Pushed implements AutoCloseable {
    final BlockingQueue<ActivatedJob> jobs = new LinkedBlockingQueue<>();
    /** Instances whose job was waited for in vain; it may still have been on its way. */
    private final Set<Long> givenUp = ConcurrentHashMap.newKeySet();
    private final Future<?> stream;

    Pushed(CamundaClient client, Model model, Duration lock, String... variables) throws Exception {
      stream =
          client
              .newStreamJobsCommand()
              .jobType(model.jobType("work"))
              .consumer(this::take)
              .timeout(lock)
              .workerName("streaming-suite")
              .fetchVariables(variables)
              .send()
              .toCompletableFuture();
      awaitRegistration(model);
    }

    /** Opening a stream is not acknowledged, so instances are created until one is pushed. */
    private void awaitRegistration(Model model) throws Exception {
      ActivatedJob probe = null;
      for (long patience = 500; patience <= 64_000 && probe == null; patience *= 2) {
        long instance = model.create();
        probe = jobs.poll(patience, TimeUnit.MILLISECONDS);
        if (probe == null) {
          giveUp(instance);
          Server.client().newCancelInstanceCommand(instance).send().join();
        }
      }
      assertNotNull(probe, "no job was pushed within 2 minutes after the stream was opened");
      Jobs.complete(probe);
    }

    private synchronized void giveUp(long instance) {
      givenUp.add(instance);
      jobs.removeIf(late -> late.getProcessInstanceKey() == instance);
    }

    private synchronized void take(ActivatedJob job) {
      if (!givenUp.contains(job.getProcessInstanceKey())) {
        jobs.add(job);
      }
    }

    ActivatedJob next() throws Exception {
      ActivatedJob job = jobs.poll(120, TimeUnit.SECONDS);
      assertNotNull(job, "no job was pushed within 2 minutes");
      return job;
    }

    ActivatedJob next(long instance) throws Exception {
      ActivatedJob job = next();
      while (job.getProcessInstanceKey() != instance) {
        job = next();
      }
      return job;
    }

    @Override
    public void close() {
      stream.cancel(true);
    }
  }

  @Test
  void jobsArePushedWithAllThatAWorkerNeeds() throws Exception {
    Model model = Model.deploy("one-task");
    try (var pushed = new Pushed(Server.client(), model, Jobs.LOCK)) {
      var created = model.create(Map.of("a", 1));

      ActivatedJob job = pushed.next();

      assertEquals(created.getProcessInstanceKey(), job.getProcessInstanceKey());
      assertEquals("streaming-suite", job.getWorker());
      assertEquals("work", job.getElementId());
      assertEquals(3, job.getRetries());
      assertEquals("blue", job.getCustomHeaders().get("color"));
      assertEquals(Map.of("a", 1), job.getVariablesAsMap());
      assertTrue(job.getDeadline() > System.currentTimeMillis());
      Jobs.assertNone(model.jobType("work"));
      Jobs.complete(job);
    }
  }

  @Test
  void everyJobIsPushedOnce() throws Exception {
    Model model = Model.deploy("one-task");
    try (var pushed = new Pushed(Server.client(), model, Jobs.LOCK)) {
      Set<Long> created = ConcurrentHashMap.newKeySet();
      for (int n = 0; n < 50; n++) {
        created.add(model.create());
      }

      Set<Long> seen = ConcurrentHashMap.newKeySet();
      for (int n = 0; n < 50; n++) {
        ActivatedJob job = pushed.next();
        assertTrue(seen.add(job.getProcessInstanceKey()), "pushed twice");
        Jobs.complete(job);
      }
      assertEquals(created, seen);
    }
  }

  @Test
  void onlyTheAskedForVariablesArePushed() throws Exception {
    Model model = Model.deploy("one-task");
    try (var pushed = new Pushed(Server.client(), model, Jobs.LOCK, "b")) {
      model.create(Map.of("a", 1, "b", 2));

      assertEquals(Map.of("b", 2), pushed.next().getVariablesAsMap());
    }
  }

  @Test
  void aFailedJobIsPushedAgain() throws Exception {
    Model model = Model.deploy("one-task");
    try (var pushed = new Pushed(Server.client(), model, Jobs.LOCK)) {
      model.create();
      ActivatedJob first = pushed.next();

      Jobs.fail(first, 2, "not yet");

      ActivatedJob again = pushed.next();
      assertEquals(first.getKey(), again.getKey());
      assertEquals(2, again.getRetries());
      Jobs.complete(again);
    }
  }

  @Test
  void aFailedJobIsPushedAfterItsBackoff() throws Exception {
    Model model = Model.deploy("one-task");
    try (var pushed = new Pushed(Server.client(), model, Jobs.LOCK)) {
      model.create();
      ActivatedJob first = pushed.next();
      long start = System.nanoTime();

      Server.client()
          .newFailCommand(first)
          .retries(2)
          .retryBackoff(Duration.ofSeconds(1))
          .send()
          .join();

      ActivatedJob again = pushed.next();
      assertEquals(first.getKey(), again.getKey());
      assertTrue(System.nanoTime() - start >= 990_000_000L, "pushed before the backoff ended");
      Jobs.complete(again);
    }
  }

  @Test
  void aJobWhoseLockEndsIsPushedAgain() throws Exception {
    Model model = Model.deploy("one-task");
    try (var pushed = new Pushed(Server.client(), model, Duration.ofSeconds(1))) {
      long instance = model.create();
      // The lock of the first instance's job may have ended too.
      ActivatedJob first = pushed.next(instance);

      ActivatedJob again = pushed.next(instance);

      assertEquals(first.getKey(), again.getKey());
      Jobs.complete(again);
    }
  }

  @Test
  void twoStreamsShareTheJobs() throws Exception {
    Model model = Model.deploy("one-task");
    try (var other = Server.connect();
        var left = new Pushed(Server.client(), model, Jobs.LOCK)) {
      var right = new LinkedBlockingQueue<ActivatedJob>();
      var stream =
          other
              .newStreamJobsCommand()
              .jobType(model.jobType("work"))
              .consumer(right::add)
              .timeout(Jobs.LOCK)
              .workerName("streaming-suite")
              .send()
              .toCompletableFuture();
      long end = System.nanoTime() + 120_000_000_000L;
      int expected = 0;
      while ((left.jobs.isEmpty() || right.isEmpty()) && System.nanoTime() < end) {
        model.create();
        expected++;
        Thread.sleep(20);
      }
      assertTrue(!left.jobs.isEmpty(), "the first stream starves");
      assertTrue(!right.isEmpty(), "the second stream starves");
      while (left.jobs.size() + right.size() < expected && System.nanoTime() < end) {
        Thread.sleep(20);
      }
      Thread.sleep(500);
      assertEquals(expected, left.jobs.size() + right.size());
      stream.cancel(true);
    }
  }

  @Test
  void whatNobodyStreamsAnyMoreIsThereForPolling() throws Exception {
    Model model = Model.deploy("one-task");
    try (var client = Server.connect();
        var pushed = new Pushed(client, model, Jobs.LOCK)) {
      pushed.close();
    }
    Thread.sleep(200);

    // What was pushed before the server knew that the stream is closed is lost until its lock ends.
    Set<Long> created = new HashSet<>();
    List<ActivatedJob> jobs = List.of();
    long end = System.nanoTime() + 120_000_000_000L;
    while (jobs.isEmpty() && System.nanoTime() < end) {
      created.add(model.create());
      jobs = Jobs.activate(model.jobType("work"), 1, Jobs.LOCK, Duration.ofSeconds(3));
    }

    assertEquals(1, jobs.size());
    assertTrue(created.contains(jobs.get(0).getProcessInstanceKey()));
  }

  @Test
  void aStreamingWorkerAlsoTakesTheBacklog() throws Exception {
    Model model = Model.deploy("one-task");
    Set<Long> created = ConcurrentHashMap.newKeySet();
    for (int n = 0; n < 20; n++) {
      created.add(model.create());
    }
    Set<Long> handled = ConcurrentHashMap.newKeySet();
    try (var client = Server.connect();
        var worker =
            client
                .newWorker()
                .jobType(model.jobType("work"))
                .handler(
                    (c, job) -> {
                      c.newCompleteCommand(job).send().join();
                      handled.add(job.getProcessInstanceKey());
                    })
                .streamEnabled(true)
                .open()) {
      for (int n = 0; n < 20; n++) {
        created.add(model.create());
      }
      long end = System.nanoTime() + 120_000_000_000L;
      while (!handled.equals(created) && System.nanoTime() < end) {
        Thread.sleep(50);
      }
      assertEquals(created, handled);
      assertTrue(worker.isOpen());
    }
  }
}
