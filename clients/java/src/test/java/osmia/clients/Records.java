package osmia.clients;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/**
 * The server's exported records, one JSON object per line. Incident keys are not visible over gRPC,
 * so they are read here; a test that needs one is skipped when {@code OSMIA_RECORDS} is not set.
 */
final class Records {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long PATIENCE_NANOS = 120_000_000_000L;

  private Records() {}

  record Incident(long key, String errorType, String errorMessage, String elementId, long jobKey) {}

  /** The newest incident of the instance; waits until there are {@code count} of them. */
  static Incident incident(long processInstanceKey, int count) throws Exception {
    String file = System.getenv("OSMIA_RECORDS");
    Assumptions.assumeTrue(file != null, "OSMIA_RECORDS is not set: incident keys are unknown");
    long end = System.nanoTime() + PATIENCE_NANOS;
    while (System.nanoTime() < end) {
      var incidents = incidents(Path.of(file), processInstanceKey);
      if (incidents.size() >= count) {
        return incidents.get(count - 1);
      }
      Thread.sleep(50);
    }
    throw new AssertionError(
        "Incident number " + count + " of instance " + processInstanceKey + " was not exported.");
  }

  static Incident incident(long processInstanceKey) throws Exception {
    return incident(processInstanceKey, 1);
  }

  private static java.util.List<Incident> incidents(Path file, long processInstanceKey)
      throws IOException {
    String instance = Long.toString(processInstanceKey);
    try (Stream<String> lines = Files.lines(file)) {
      return lines
          .filter(line -> line.contains("\"INCIDENT\"") && line.contains(instance))
          .flatMap(Records::parse)
          .filter(record -> record.path("intent").asText().equals("CREATED"))
          .filter(record -> record.path("recordType").asText().equals("EVENT"))
          .filter(r -> r.path("value").path("processInstanceKey").asLong() == processInstanceKey)
          .map(Records::toIncident)
          .toList();
    }
  }

  private static Incident toIncident(JsonNode record) {
    JsonNode value = record.path("value");
    return new Incident(
        record.path("key").asLong(),
        value.path("errorType").asText(),
        value.path("errorMessage").asText(),
        value.path("elementId").asText(),
        value.path("jobKey").asLong());
  }

  /** The last line may still be in the middle of being written: it is read the next time. */
  private static Stream<JsonNode> parse(String line) {
    try {
      return Stream.of(JSON.readTree(line));
    } catch (IOException e) {
      return Stream.empty();
    }
  }
}
