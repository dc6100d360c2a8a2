package osmia.clients;

import io.camunda.client.CamundaClient;
import io.camunda.client.impl.util.VersionUtil;
import java.net.URI;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Assumptions;

/**
 * The server under test, reached only through the official client: over gRPC, or over REST when
 * OSMIA_REST_ADDRESS says where that is. Streams of jobs are gRPC's in both; what only REST has goes
 * over REST in both, to OSMIA_HTTP_ADDRESS.
 */
final class Server {
  private static final CamundaClient SHARED = connect();
  private static final AtomicInteger IDS = new AtomicInteger();
  private static final String RUN = Long.toString(System.currentTimeMillis(), 36);

  private Server() {}

  /** One client for all tests that do not care about connections. */
  static CamundaClient client() {
    return SHARED;
  }

  /** A client of its own; the caller closes it. */
  static CamundaClient connect() {
    return connect(prefersRest());
  }

  /** The same, that prefers REST or gRPC. */
  static CamundaClient connect(boolean prefersRest) {
    String address =
        Optional.ofNullable(System.getenv("OSMIA_GRPC_ADDRESS"))
            .orElseThrow(
                () ->
                    new IllegalStateException(
                        "OSMIA_GRPC_ADDRESS is not set: name the gRPC address of the server, for"
                            + " example 127.0.0.1:26500."));
    return CamundaClient.newClientBuilder()
        .applyEnvironmentVariableOverrides(false)
        .grpcAddress(URI.create("http://" + address))
        .restAddress(URI.create("http://" + httpAddress().orElse("0.0.0.0:8080")))
        .preferRestOverGrpc(prefersRest)
        .defaultRequestTimeout(Duration.ofSeconds(120))
        .build();
  }

  /** Whether commands go over REST. */
  static boolean prefersRest() {
    return System.getenv("OSMIA_REST_ADDRESS") != null;
  }

  /** Skips the rest of a test that does some of its work over REST. */
  static void needsRest() {
    Assumptions.assumeTrue(httpAddress().isPresent(), "OSMIA_HTTP_ADDRESS is not set");
  }

  /** Whether the client is older than 8.9. */
  static boolean isBefore89() {
    return VersionUtil.getVersion().matches("8\\.[0-8]\\..*");
  }

  /** Skips the rest of a test of what this client refuses itself before it goes over REST. */
  static void needsGrpc() {
    Assumptions.assumeFalse(prefersRest(), "the client refuses it itself");
  }

  private static Optional<String> httpAddress() {
    return Optional.ofNullable(System.getenv("OSMIA_REST_ADDRESS"))
        .or(() -> Optional.ofNullable(System.getenv("OSMIA_HTTP_ADDRESS")));
  }

  /** A process id that no other test and no earlier run has used. */
  static String uniqueId(String name) {
    return name + "-java-" + RUN + "-" + IDS.incrementAndGet();
  }

  /**
   * False for an engine behind a reduced gateway: without job streams and long polls, and without
   * the details that only the full gateway adds.
   */
  static boolean hasFullGateway() {
    return System.getenv("OSMIA_NO_STREAM") == null;
  }

  /** Skips the rest of the test on a reduced gateway. */
  static void needsFullGateway() {
    Assumptions.assumeTrue(hasFullGateway(), "OSMIA_NO_STREAM is set");
  }
}
