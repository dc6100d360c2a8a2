import io.camunda.zeebe.engine.processing.scheduled.DueDateCheckScheduler;
import io.camunda.zeebe.process.test.api.ZeebeTestEngine;
import io.camunda.zeebe.process.test.engine.CompleteGateway;
import io.camunda.zeebe.process.test.engine.EngineFactory;
import io.camunda.zeebe.protocol.record.Record;
import io.camunda.zeebe.protocol.record.RecordType;
import io.camunda.zeebe.protocol.record.ValueType;
import io.camunda.zeebe.protocol.record.intent.JobBatchIntent;
import io.camunda.zeebe.protocol.record.intent.JobIntent;
import io.camunda.zeebe.protocol.record.intent.MessageIntent;
import io.camunda.zeebe.protocol.record.intent.ProcessInstanceCreationIntent;
import io.camunda.zeebe.protocol.record.intent.TimerIntent;
import io.camunda.zeebe.protocol.record.value.JobBatchRecordValue;
import io.camunda.zeebe.protocol.record.value.JobRecordValue;
import io.camunda.zeebe.protocol.record.value.MessageRecordValue;
import io.camunda.zeebe.protocol.record.value.TimerRecordValue;
import io.camunda.zeebe.scheduler.clock.ControlledActorClock;
import io.camunda.zeebe.stream.impl.StreamProcessor;
import io.grpc.Server;
import io.grpc.netty.NettyServerBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The reference engine under the control of its parent process.
 *
 * <p>Reads one command a line from standard input and answers on standard output:
 *
 * <ul>
 *   <li>{@code engine MILLISECONDS}: a new, empty engine whose clock stands at that time; answers {@code engine PORT}.
 *   <li>{@code time MILLISECONDS}: moves the clock and waits until everything due has happened; answers {@code time NOW},
 *       followed by what was still due after the longest wait.
 *   <li>{@code records}: waits until the engine is idle, writes every new event and rejection as a line of JSON, then
 *       {@code end NUMBER}.
 *   <li>{@code creations}: how many commands to create an instance and wait for its result have been processed,
 *       and how many of them were refused.
 *   <li>{@code user-task INTENT KEY JSON}: a command about a user task; answers {@code user-task} and why it was refused.
 *   <li>{@code listener KEY JSON}: completes the job of a task listener with what its worker says; answers likewise.
 *   <li>{@code variables SEMANTICS KEY JSON}: sets variables without waiting for it; answers likewise.
 *   <li>{@code quit}, or the end of the input: ends the process.
 * </ul>
 *
 * <p>The clock stands still between the commands, so that due dates can be compared to the millisecond.
 */
public final class Launcher {
  private static final long SETTLE_LIMIT_NANOSECONDS = Duration.ofSeconds(3).toNanos();
  private static final long GRACE_MILLISECONDS = 40;
  /** The engine looks for expired messages once a minute. */
  private static final long MESSAGE_CHECK_MILLISECONDS = 60_000;

  /** Kinds of records that nobody compares; the list saves their way through the pipe. */
  private static final Set<ValueType> LEFT_OUT =
      EnumSet.of(
          ValueType.PROCESS_EVENT,
          ValueType.USAGE_METRIC,
          ValueType.IDENTITY_SETUP,
          ValueType.AUTHORIZATION,
          ValueType.ROLE,
          ValueType.USER,
          ValueType.TENANT,
          ValueType.GROUP,
          ValueType.MAPPING_RULE,
          ValueType.COMMAND_DISTRIBUTION,
          ValueType.DEPLOYMENT_DISTRIBUTION,
          ValueType.ASYNC_REQUEST);

  private final PrintStream out;
  private ZeebeTestEngine engine;
  private ControlledActorClock clock;
  private StreamProcessor processor;
  private int seen;
  private final Set<Long> creationPositions = new HashSet<>();
  private int creations;
  private int refusedCreations;
  private final Map<Long, Long> dueTimers = new HashMap<>();
  private final Map<Long, Long> dueJobs = new HashMap<>();
  private final Map<Long, Long> dueMessages = new HashMap<>();
  /** What stayed due for longer than the limit: the engine refuses it again and again. */
  private final Set<Long> stuck = new HashSet<>();
  private final List<String> unread = new ArrayList<>();

  private Launcher(final PrintStream out) {
    this.out = out;
  }

  public static void main(final String[] arguments) {
    // What the engine prints must not get between the answers.
    final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    System.setOut(System.err);
    int status = 0;
    try {
      new Launcher(out).run();
    } catch (final Throwable problem) {
      problem.printStackTrace();
      status = 1;
    }
    // The engine leaves threads behind that would keep the process alive.
    Runtime.getRuntime().halt(status);
  }

  private void run() throws Exception {
    final var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      final String[] words = line.split(" ");
      switch (words[0]) {
        case "engine" -> start(Long.parseLong(words[1]));
        case "time" -> advance(Long.parseLong(words[1]));
        case "records" -> records();
        case "user-task" -> {
          final String[] parts = line.split(" ", 4);
          final long key = Long.parseLong(parts[2]);
          write(words[0], ValueType.USER_TASK, gateway -> UserTasks.write(gateway, parts[1], key, parts[3]));
        }
        case "choose" -> {
          final String[] parts = line.split(" ", 3);
          final long key = Long.parseLong(parts[1]);
          final var type = ValueType.AD_HOC_SUB_PROCESS_INSTRUCTION;
          write(words[0], type, gateway -> AdHocSubProcesses.choose(gateway, key, parts[2]));
        }
        case "decide" -> {
          final String[] parts = line.split(" ", 3);
          final long job = Long.parseLong(parts[1]);
          write(words[0], ValueType.JOB, gateway -> AdHocSubProcesses.decide(gateway, job, parts[2]));
        }
        case "listener" -> {
          final String[] parts = line.split(" ", 3);
          final long job = Long.parseLong(parts[1]);
          write(words[0], ValueType.JOB, gateway -> UserTasks.completeListener(gateway, job, parts[2]));
        }
        case "variables" -> {
          final String[] parts = line.split(" ", 4);
          final long scope = Long.parseLong(parts[2]);
          final var type = ValueType.VARIABLE_DOCUMENT;
          write(words[0], type, gateway -> UserTasks.setVariables(gateway, parts[1], scope, parts[3]));
        }
        case "creations" -> {
          awaitIdle();
          read();
          out.println("creations " + creations + " " + refusedCreations);
        }
        case "quit" -> {
          return;
        }
        default -> throw new IllegalArgumentException("unknown command: " + line);
      }
      out.flush();
    }
  }

  private interface Command {
    void write(Object gateway) throws Exception;
  }

  /** The engine's gateway does not have all commands: these are written to the log as it would. */
  private void write(final String name, final ValueType type, final Command command) throws Exception {
    awaitIdle();
    read();
    final int before = seen;
    command.write(field(engine, "gateway").get(engine));
    awaitIdle();
    read();
    final var records = (List<Record<?>>) engine.getRecordStreamSource().getRecords();
    String refusal = "";
    for (final Record<?> record : records.subList(before, records.size())) {
      if (record.getValueType() == type && record.getRecordType() == RecordType.COMMAND_REJECTION && refusal.isEmpty()) {
        refusal = record.getRejectionType().name();
      }
    }
    out.println((name + " " + refusal).trim());
  }

  private void start(final long now) throws Exception {
    if (engine != null) {
      engine.stop();
    }
    engine = EngineFactory.create(1);
    clock = (ControlledActorClock) field(engine, "clock").get(engine);
    clock.setCurrentTime(Instant.ofEpochMilli(now));
    processor = (StreamProcessor) field(engine, "streamProcessor").get(engine);
    // The engine's own server listens on every interface; this one on loopback, at a port that is free.
    final Server server =
        NettyServerBuilder.forAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
            .addService(CompleteGateway.of(field(engine, "gateway").get(engine), 1))
            .build();
    field(engine, "grpcServer").set(engine, server);
    engine.start();
    awaitIdle();
    CompleteGateway.answerDeletions(processor);
    noticeDueDatesAtOnce();
    seen = 0;
    creationPositions.clear();
    creations = 0;
    refusedCreations = 0;
    dueTimers.clear();
    dueJobs.clear();
    dueMessages.clear();
    stuck.clear();
    unread.clear();
    out.println("engine " + server.getPort());
  }

  /**
   * The engine looks for due dates at most every 100 ms by its clock. As this clock stands still, a timer that is due at
   * once would never be seen.
   */
  private void noticeDueDatesAtOnce() throws Exception {
    final var listeners = (List<?>) field(processor, "lifecycleAwareListeners").get(processor);
    final long limit = System.nanoTime() + SETTLE_LIMIT_NANOSECONDS;
    int found = 0;
    while (found == 0 && System.nanoTime() < limit) {
      for (final Object listener : List.copyOf(listeners)) {
        for (final Field field : listener.getClass().getDeclaredFields()) {
          if (field.getType() == DueDateCheckScheduler.class) {
            field.setAccessible(true);
            final Object scheduler = field.get(listener);
            field(scheduler, "timerResolution").set(scheduler, 0L);
            found++;
          }
        }
      }
      Thread.sleep(1);
    }
    if (found == 0) {
      throw new IllegalStateException("the engine has no checkers of due dates");
    }
  }

  private static Field field(final Object object, final String name) throws NoSuchFieldException {
    final Field field = object.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  private void awaitIdle() throws InterruptedException {
    while (!processor.hasProcessingReachedTheEnd().join()) {
      Thread.sleep(1);
    }
  }

  private void records() throws InterruptedException {
    final long limit = System.nanoTime() + SETTLE_LIMIT_NANOSECONDS;
    final long now = clock.getCurrentTime().toEpochMilli();
    do {
      awaitIdle();
      read();
      // What is due at once is noticed by another thread of the engine.
    } while (!due(now, 0).isEmpty() && System.nanoTime() < limit);
    stuck.addAll(due(now, 0));
    unread.forEach(out::println);
    out.println("end " + unread.size());
    unread.clear();
  }

  private void read() {
    final var records = (List<Record<?>>) engine.getRecordStreamSource().getRecords();
    for (; seen < records.size(); seen++) {
      final Record<?> record = records.get(seen);
      rememberCreation(record);
      if (record.getRecordType() == RecordType.COMMAND) {
        continue;
      }
      if (record.getRecordType() == RecordType.EVENT) {
        remember(record);
      }
      if (!LEFT_OUT.contains(record.getValueType())) {
        unread.add(record.toJson());
      }
    }
  }

  private void rememberCreation(final Record<?> record) {
    if (record.getIntent() == ProcessInstanceCreationIntent.CREATE_WITH_AWAITING_RESULT) {
      if (record.getRecordType() == RecordType.COMMAND) {
        creationPositions.add(record.getPosition());
      } else {
        creations++;
        refusedCreations++;
      }
    } else if (record.getIntent() == ProcessInstanceCreationIntent.CREATED
        && creationPositions.contains(record.getSourceRecordPosition())) {
      creations++;
    }
  }

  private void remember(final Record<?> record) {
    final long key = record.getKey();
    switch (record.getValueType()) {
      case TIMER -> {
        final long due = ((TimerRecordValue) record.getValue()).getDueDate();
        put(dueTimers, key, due, record.getIntent() == TimerIntent.CREATED || record.getIntent() == TimerIntent.MIGRATED);
      }
      case MESSAGE -> {
        final var message = (MessageRecordValue) record.getValue();
        final boolean buffered = record.getIntent() == MessageIntent.PUBLISHED && message.getTimeToLive() > 0;
        put(dueMessages, key, record.getTimestamp() + message.getTimeToLive(), buffered);
      }
      case JOB_BATCH -> {
        if (record.getIntent() == JobBatchIntent.ACTIVATED) {
          final var batch = (JobBatchRecordValue) record.getValue();
          for (int index = 0; index < batch.getJobKeys().size(); index++) {
            dueJobs.put(batch.getJobKeys().get(index), batch.getJobs().get(index).getDeadline());
          }
        }
      }
      case JOB -> rememberJob(record, (JobRecordValue) record.getValue());
      default -> {}
    }
  }

  private void rememberJob(final Record<?> record, final JobRecordValue job) {
    final var intent = record.getIntent();
    if (intent == JobIntent.FAILED) {
      put(dueJobs, record.getKey(), job.getRecurringTime(), job.getRetries() > 0 && job.getRetryBackoff() > 0);
    } else if (intent == JobIntent.TIMEOUT_UPDATED) {
      dueJobs.put(record.getKey(), job.getDeadline());
    } else if (intent != JobIntent.RETRIES_UPDATED && intent != JobIntent.CREATED && intent != JobIntent.MIGRATED) {
      dueJobs.remove(record.getKey());
    }
  }

  private static void put(final Map<Long, Long> due, final long key, final long time, final boolean pending) {
    if (pending) {
      due.put(key, time);
    } else {
      due.remove(key);
    }
  }

  private void advance(final long milliseconds) throws InterruptedException {
    awaitIdle();
    read();
    clock.addTime(Duration.ofMillis(milliseconds));
    final long limit = System.nanoTime() + SETTLE_LIMIT_NANOSECONDS;
    final long now = clock.getCurrentTime().toEpochMilli();
    boolean settled = false;
    while (!settled && System.nanoTime() < limit) {
      final int before = seen;
      Thread.sleep(GRACE_MILLISECONDS);
      awaitIdle();
      read();
      settled = seen == before && due(now, milliseconds).isEmpty();
    }
    final List<Long> left = due(now, milliseconds);
    stuck.addAll(left);
    out.println("time " + now + (left.isEmpty() ? "" : " still due: " + left));
  }

  private List<Long> due(final long now, final long milliseconds) {
    final List<Long> due = new ArrayList<>();
    final var queues = new ArrayList<>(List.of(dueTimers, dueJobs));
    if (milliseconds >= MESSAGE_CHECK_MILLISECONDS) {
      queues.add(dueMessages);
    }
    for (final var queue : queues) {
      queue.forEach((key, time) -> {
        if (time <= now && !stuck.contains(key)) {
          due.add(key);
        }
      });
    }
    return due;
  }
}
