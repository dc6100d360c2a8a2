package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.grpc.Status.Code;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A server without multi-tenancy: all belongs to one tenant, and answers name it. */
class TenantTest {
  private static final String DEFAULT = "<default>";

  @BeforeEach
  void tenantsAreTheGatewaysWork() {
    Server.needsFullGateway();
  }

  @Test
  void answersNameTheDefaultTenant() {
    Model model = Model.deploy("one-task");
    assertEquals(DEFAULT, model.deployed().getTenantId());
    assertEquals(DEFAULT, model.create(Map.of()).getTenantId());
    assertEquals(DEFAULT, Jobs.pollOne(model.jobType("work")).getTenantId());
  }

  @Test
  void otherTenantsAreInvalid() {
    Model model = Model.deploy("one-task");

    Status.refused(
        Code.INVALID_ARGUMENT,
        () ->
            Server.client()
                .newCreateInstanceCommand()
                .bpmnProcessId(model.id())
                .latestVersion()
                .tenantId("others")
                .send()
                .join());
  }
}
