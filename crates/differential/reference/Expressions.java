// Evaluates expressions with the reference's FEEL engine, line by line.
//
// In:  kind, input, expression and variables as one JSON array: ["expression", null, "1 + a", {"a": 2}] or
//      ["tests", 5, "> a", {"a": 2}].
// Out: the outcome in one line: a value with its type, "error" for a failed evaluation, "!" for a text that does not parse.
// With the argument "bench", it measures the marks of docs/benchmarks.md instead.

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;
import org.camunda.feel.FeelEngineClock;
import org.camunda.feel.api.EvaluationResult;
import org.camunda.feel.api.FeelEngineApi;
import org.camunda.feel.api.FeelEngineBuilder;
import org.camunda.feel.api.ParseResult;
import org.camunda.feel.syntaxtree.Val;
import org.camunda.feel.syntaxtree.ValBoolean;
import org.camunda.feel.syntaxtree.ValContext;
import org.camunda.feel.syntaxtree.ValFunction;
import org.camunda.feel.syntaxtree.ValList;
import org.camunda.feel.syntaxtree.ValNull$;
import org.camunda.feel.syntaxtree.ValNumber;
import org.camunda.feel.syntaxtree.ValRange;
import org.camunda.feel.syntaxtree.ValString;
import org.camunda.feel.valuemapper.JavaCustomValueMapper;
import scala.jdk.javaapi.CollectionConverters;

public final class Expressions {
  private static final ObjectMapper JSON =
      new ObjectMapper().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS);

  /** Leaves results as the engine's own values, so that their types can be told. */
  private static final class Unmapped extends JavaCustomValueMapper {
    @Override
    public Optional<Val> toValue(final Object value, final Function<Object, Val> inner) {
      return Optional.empty();
    }

    @Override
    public Optional<Object> unpackValue(final Val value, final Function<Val, Object> inner) {
      return Optional.of(value);
    }

    @Override
    public int priority() {
      return 10;
    }
  }

  public static void main(final String[] arguments) throws Exception {
    final FeelEngineClock clock = () -> Instant.ofEpochMilli(1_772_600_767_089L).atZone(ZoneOffset.UTC);
    if (arguments.length > 0 && arguments[0].equals("bench")) {
      bench(FeelEngineBuilder.forJava().build());
      return;
    }
    final FeelEngineApi engine =
        FeelEngineBuilder.forJava().withCustomValueMapper(new Unmapped()).withClock(clock).build();
    final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    final BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.write(outcome(engine, JSON.readTree(line)));
      out.newLine();
      if (!in.ready()) {
        out.flush();
      }
    }
    out.flush();
  }

  private static String outcome(final FeelEngineApi engine, final JsonNode request) {
    try {
      final boolean tests = request.get(0).asText().equals("tests");
      final String text = request.get(2).asText();
      @SuppressWarnings("unchecked")
      final Map<String, Object> variables = (Map<String, Object>) value(request.get(3));
      final ParseResult parsed = tests ? engine.parseUnaryTests(text) : engine.parseExpression(text);
      if (!parsed.isSuccess()) {
        return "!";
      }
      final EvaluationResult result =
          tests
              ? engine.evaluateWithInput(parsed.parsedExpression(), value(request.get(1)), variables)
              : engine.evaluate(parsed.parsedExpression(), variables);
      return result.isSuccess() ? tell(result.result()) : "error";
    } catch (final Throwable failure) {
      return "error";
    }
  }

  private static Object value(final JsonNode node) {
    if (node.isNull()) {
      return null;
    } else if (node.isBoolean()) {
      return node.asBoolean();
    } else if (node.isNumber()) {
      return new BigDecimal(node.asText());
    } else if (node.isArray()) {
      final List<Object> items = new ArrayList<>();
      node.forEach(item -> items.add(value(item)));
      return items;
    } else if (node.isObject()) {
      final Map<String, Object> entries = new LinkedHashMap<>();
      node.fields().forEachRemaining(entry -> entries.put(entry.getKey(), value(entry.getValue())));
      return entries;
    }
    return node.asText();
  }

  private static String tell(final Object value) throws Exception {
    if (value == null || value == ValNull$.MODULE$) {
      return "null";
    } else if (value instanceof final ValNumber number) {
      final BigDecimal plain = number.value().bigDecimal();
      return plain.signum() == 0 ? "0" : plain.stripTrailingZeros().toPlainString();
    } else if (value instanceof final ValString string) {
      return JSON.writeValueAsString(string.value());
    } else if (value instanceof final ValBoolean bool) {
      return String.valueOf(bool.value());
    } else if (value instanceof final ValList list) {
      final List<String> items = new ArrayList<>();
      for (final Val item : CollectionConverters.asJava(list.itemsAsSeq())) {
        items.add(tell(item));
      }
      return "[" + String.join(",", items) + "]";
    } else if (value instanceof final ValContext context) {
      final Map<String, String> entries = new TreeMap<>();
      for (final Map.Entry<String, Object> entry :
          CollectionConverters.asJava(context.context().variableProvider().getVariables()).entrySet()) {
        entries.put(JSON.writeValueAsString(entry.getKey()), tell(entry.getValue()));
      }
      final List<String> items = new ArrayList<>();
      entries.forEach((name, told) -> items.add(name + ":" + told));
      return "{" + String.join(",", items) + "}";
    } else if (value instanceof ValFunction) {
      return "function";
    } else if (value instanceof final ValRange range) {
      return "RANGE:" + (range.start().isClosed() ? "[" : "(") + tell(range.start().value()) + ".."
          + tell(range.end().value()) + (range.end().isClosed() ? "]" : ")");
    } else if (value instanceof final Val other) {
      return other.getClass().getSimpleName().replaceAll("^Val(Local)?", "") + ":" + other;
    }
    return "java:" + value;
  }

  private static void bench(final FeelEngineApi engine) {
    final List<Object> items = new ArrayList<>();
    for (int number = 0; number < 100; number++) {
      items.add(Map.of("name", "item " + number, "price", number % 20, "quantity", 1));
    }
    final Map<String, Object> variables = new HashMap<>();
    variables.put("customer", Map.of("name", "Ada", "tier", "gold", "address", Map.of("city", "Berlin")));
    variables.put("orderValue", 120);
    variables.put("items", items);
    final String condition = "orderValue > 100 and customer.tier = \"gold\"";
    measure("compile the condition", () -> engine.parseExpression(condition));
    for (final String text :
        List.of(condition, "items[price > 10].name", "for i in 1..1000 return i*i")) {
      final var parsed = engine.parseExpression(text).parsedExpression();
      measure("evaluate " + text, () -> engine.evaluate(parsed, variables));
    }
  }

  /** Three seconds to warm up, then the median of 30 rounds of 100 ms. */
  private static void measure(final String title, final Supplier<Object> work) {
    long nonce = 0;
    for (final long end = System.nanoTime() + 3_000_000_000L; System.nanoTime() < end; ) {
      nonce += work.get().hashCode() & 1;
    }
    final double[] rounds = new double[30];
    for (int round = 0; round < rounds.length; round++) {
      final long start = System.nanoTime();
      long count = 0;
      while (System.nanoTime() - start < 100_000_000L) {
        nonce += work.get() == null ? 1 : 0;
        count++;
      }
      rounds[round] = (double) (System.nanoTime() - start) / count;
    }
    Arrays.sort(rounds);
    System.out.printf("%-60s median %12.0f ns%s%n", title, rounds[rounds.length / 2], nonce < 0 ? "!" : "");
  }
}
