package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.command.MigrationPlan;
import io.camunda.client.api.response.ActivatedJob;
import io.grpc.Status.Code;
import org.junit.jupiter.api.Test;

/** Going on with another process definition. */
class MigrationTest {
  private static final long UNKNOWN_KEY = 2251799813685248L + 4_000_000_000L;

  @Test
  void anInstanceGoesOnInTheOtherDefinition() {
    Model source = Model.deploy("one-task");
    Model target = Model.deploy("two-tasks");
    long instance = source.create();
    ActivatedJob work = Jobs.pollOne(source.jobType("work"));

    migrate(instance, target, "work", "first");

    // The job is the one that was there, with its own type, in its new place.
    Jobs.fail(work, 3, "look again");
    ActivatedJob again = Jobs.pollOne(source.jobType("work"));
    assertEquals(work.getKey(), again.getKey());
    assertEquals(target.id(), again.getBpmnProcessId());
    assertEquals(target.deployed().getProcessDefinitionKey(), again.getProcessDefinitionKey());
    assertEquals("first", again.getElementId());
    Jobs.complete(again);
    assertEquals(instance, Jobs.pollOne(target.jobType("second")).getProcessInstanceKey());
  }

  @Test
  void everyActiveElementNeedsAPlace() {
    Model source = Model.deploy("one-task");
    Model target = Model.deploy("two-tasks");
    long instance = source.create();
    ActivatedJob work = Jobs.pollOne(source.jobType("work"));

    String message =
        Status.refused(
            Code.FAILED_PRECONDITION, () -> migrate(instance, target, "start", "start"));
    assertTrue(message.contains("work"), message);
    Status.refused(Code.FAILED_PRECONDITION, () -> migrate(instance, target, "work", "end"));
    Status.refused(Code.INVALID_ARGUMENT, () -> migrate(instance, target, "work", "third"));
    Status.refused(Code.INVALID_ARGUMENT, () -> migrate(instance, target, "play", "first"));

    Jobs.complete(work);
    Status.refused(
        Code.NOT_FOUND, () -> Server.client().newCancelInstanceCommand(instance).send().join());
  }

  @Test
  void anUnknownInstanceOrDefinitionIsNotFound() {
    Model model = Model.deploy("one-task");
    long instance = model.create();

    String message =
        Status.refused(Code.NOT_FOUND, () -> migrate(UNKNOWN_KEY, model, "work", "work"));
    assertTrue(message.contains(Long.toString(UNKNOWN_KEY)), message);
    MigrationPlan nowhere =
        MigrationPlan.newBuilder()
            .withTargetProcessDefinitionKey(UNKNOWN_KEY)
            .addMappingInstruction("work", "work")
            .build();
    Status.refused(
        Code.NOT_FOUND,
        () ->
            Server.client()
                .newMigrateProcessInstanceCommand(instance)
                .migrationPlan(nowhere)
                .send()
                .join());
  }

  private static void migrate(long instance, Model target, String from, String to) {
    Server.client()
        .newMigrateProcessInstanceCommand(instance)
        .migrationPlan(target.deployed().getProcessDefinitionKey())
        .addMappingInstruction(from, to)
        .send()
        .join();
  }
}
