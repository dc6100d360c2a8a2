package io.camunda.zeebe.process.test.engine;

import io.camunda.zeebe.gateway.protocol.GatewayOuterClass.CreateProcessInstanceRequest;
import io.camunda.zeebe.gateway.protocol.GatewayOuterClass.CreateProcessInstanceResponse;
import io.camunda.zeebe.gateway.protocol.GatewayOuterClass.DeleteResourceRequest;
import io.camunda.zeebe.gateway.protocol.GatewayOuterClass.DeleteResourceResponse;
import io.camunda.zeebe.gateway.protocol.GatewayOuterClass.FailJobRequest;
import io.camunda.zeebe.gateway.protocol.GatewayOuterClass.FailJobResponse;
import io.camunda.zeebe.protocol.impl.encoding.MsgPackConverter;
import io.camunda.zeebe.protocol.impl.record.RecordMetadata;
import io.camunda.zeebe.protocol.impl.record.value.job.JobRecord;
import io.camunda.zeebe.protocol.impl.record.value.processinstance.ProcessInstanceCreationRecord;
import io.camunda.zeebe.protocol.impl.record.value.processinstance.ProcessInstanceCreationRuntimeInstruction;
import io.camunda.zeebe.protocol.record.RecordType;
import io.camunda.zeebe.protocol.record.ValueType;
import io.camunda.zeebe.protocol.record.intent.Intent;
import io.camunda.zeebe.protocol.record.intent.JobIntent;
import io.camunda.zeebe.protocol.record.intent.ProcessInstanceCreationIntent;
import io.camunda.zeebe.protocol.record.value.RuntimeInstructionType;
import io.camunda.zeebe.stream.impl.StreamProcessor;
import io.camunda.zeebe.util.buffer.BufferUtil;
import io.grpc.stub.StreamObserver;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;

/**
 * The gateway of the test engine, with what it leaves out and the released gateway does not: variables of failed jobs,
 * runtime instructions of created instances, and answers to deletions.
 *
 * <p>It stands in the package of the test engine because the parts that it needs are visible there only.
 */
public final class CompleteGateway extends GrpcToLogStreamGateway {
  private static final int PARTITION = 1;

  private final GrpcToLogStreamGateway original;
  private final CommandWriter writer;
  private final GatewayRequestStore requests;

  private CompleteGateway(
      final GrpcToLogStreamGateway original,
      final CommandWriter writer,
      final GatewayRequestStore requests,
      final InMemoryJobStreamer streamer,
      final int port) {
    super(writer, PARTITION, 1, port, requests, streamer);
    this.original = original;
    this.writer = writer;
    this.requests = requests;
  }

  /** The complete gateway in place of the one that the engine has. */
  public static CompleteGateway of(final Object gateway, final int port) throws ReflectiveOperationException {
    return new CompleteGateway(
        (GrpcToLogStreamGateway) gateway,
        (CommandWriter) field(GrpcToLogStreamGateway.class, "writer").get(gateway),
        (GatewayRequestStore) field(GrpcToLogStreamGateway.class, "gatewayRequestStore").get(gateway),
        (InMemoryJobStreamer) field(GrpcToLogStreamGateway.class, "jobStreamer").get(gateway),
        port);
  }

  /** Teaches the engine to answer deletions. */
  @SuppressWarnings("unchecked")
  public static void answerDeletions(final StreamProcessor processor) throws ReflectiveOperationException {
    final Object context = field(StreamProcessor.class, "streamProcessorContext").get(processor);
    final Object responses = field(context.getClass(), "commandResponseWriter").get(context);
    final Object mapper = field(GrpcResponseWriter.class, "responseMapper").get(responses);
    final Field mappers = field(GrpcResponseMapper.class, "mappers");
    final var known = new HashMap<Object, Callable<?>>((Map<Object, Callable<?>>) mappers.get(mapper));
    known.put(DeleteResourceRequest.class, DeleteResourceResponse::getDefaultInstance);
    mappers.set(mapper, known);
  }

  private static Field field(final Class<?> type, final String name) throws NoSuchFieldException {
    final Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  private RecordMetadata metadata(final long request, final ValueType type, final Intent intent) {
    return new RecordMetadata()
        .recordType(RecordType.COMMAND)
        .requestStreamId(PARTITION)
        .requestId(request)
        .valueType(type)
        .intent(intent);
  }

  @Override
  public void failJob(final FailJobRequest request, final StreamObserver<FailJobResponse> observer) {
    final long id = requests.registerNewRequest(request.getClass(), observer);
    final var job = new JobRecord();
    job.setRetries(request.getRetries());
    job.setErrorMessage(request.getErrorMessage());
    job.setRetryBackoff(request.getRetryBackOff());
    if (!request.getVariables().isEmpty()) {
      job.setVariables(BufferUtil.wrapArray(MsgPackConverter.convertToMsgPack(request.getVariables())));
    }
    writer.writeCommandWithKey(request.getJobKey(), job, metadata(id, ValueType.JOB, JobIntent.FAIL));
  }

  @Override
  public void createProcessInstance(
      final CreateProcessInstanceRequest request, final StreamObserver<CreateProcessInstanceResponse> observer) {
    if (request.getRuntimeInstructionsCount() == 0) {
      super.createProcessInstance(request, observer);
      return;
    }
    final long id = requests.registerNewRequest(request.getClass(), observer);
    final var creation = creation(request);
    for (final var instruction : request.getRuntimeInstructionsList()) {
      creation.addRuntimeInstruction(
          new ProcessInstanceCreationRuntimeInstruction()
              .setType(RuntimeInstructionType.TERMINATE_PROCESS_INSTANCE)
              .setAfterElementId(instruction.getTerminate().getAfterElementId()));
    }
    writer.writeCommandWithoutKey(
        creation, metadata(id, ValueType.PROCESS_INSTANCE_CREATION, ProcessInstanceCreationIntent.CREATE));
  }

  private ProcessInstanceCreationRecord creation(final CreateProcessInstanceRequest request) {
    try {
      final Method method =
          GrpcToLogStreamGateway.class.getDeclaredMethod(
              "createProcessInstanceCreationRecord", CreateProcessInstanceRequest.class);
      method.setAccessible(true);
      return (ProcessInstanceCreationRecord) method.invoke(original, request);
    } catch (final ReflectiveOperationException problem) {
      throw new IllegalStateException(problem);
    }
  }
}
