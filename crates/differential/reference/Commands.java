import com.fasterxml.jackson.databind.ObjectMapper;
import io.camunda.zeebe.protocol.impl.encoding.MsgPackConverter;
import io.camunda.zeebe.protocol.impl.record.RecordMetadata;
import io.camunda.zeebe.protocol.impl.record.UnifiedRecordValue;
import io.camunda.zeebe.protocol.record.ValueType;
import io.camunda.zeebe.protocol.record.intent.Intent;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** Commands that the engine's gateway does not have, written to the log behind it. */
final class Commands {
  private Commands() {}

  static void write(
      final Object gateway, final ValueType type, final Intent intent, final long key, final UnifiedRecordValue value)
      throws Exception {
    final Method prepare = gateway.getClass().getDeclaredMethod("prepareRecordMetadata");
    prepare.setAccessible(true);
    final var metadata = (RecordMetadata) prepare.invoke(gateway);
    // Nobody waits for an answer.
    metadata.requestId(-1L).requestStreamId(-1);
    metadata.valueType(type).intent(intent);
    final Field field = gateway.getClass().getDeclaredField("writer");
    field.setAccessible(true);
    final Object writer = field.get(gateway);
    final Method write =
        writer.getClass().getDeclaredMethod("writeCommandWithKey", Long.class, UnifiedRecordValue.class, RecordMetadata.class);
    write.setAccessible(true);
    write.invoke(writer, key, value, metadata);
  }

  /** A JSON object as variables. */
  static DirectBuffer variables(final Object object) throws Exception {
    return new UnsafeBuffer(MsgPackConverter.convertToMsgPack(new ObjectMapper().writeValueAsString(object)));
  }
}
