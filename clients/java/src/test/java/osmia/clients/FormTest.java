package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.DeploymentEvent;
import io.camunda.client.api.response.Form;
import io.grpc.Status.Code;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class FormTest {
  @BeforeEach
  void needsFullGateway() {
    Server.needsFullGateway();
  }

  @Test
  void aFormIsDeployedInVersions() {
    String id = Server.uniqueId("form");
    Form first = deploy(id + ".form", json(id, 1)).getForm().get(0);
    assertEquals(id, first.getFormId());
    assertEquals(id + ".form", first.getResourceName());
    assertEquals("<default>", first.getTenantId());
    assertEquals(1, first.getVersion());

    Form again = deploy(id + ".form", json(id, 1)).getForm().get(0);
    Form second = deploy(id + ".form", json(id, 2)).getForm().get(0);

    assertEquals(first.getFormKey(), again.getFormKey());
    assertEquals(2, second.getVersion());
  }

  @Test
  void aDeletedFormIsGoneAndItsVersionIsNotGivenAgain() {
    String id = Server.uniqueId("form");
    Form form = deploy(id + ".form", json(id, 1)).getForm().get(0);

    Server.client().newDeleteResourceCommand(form.getFormKey()).send().join();

    Status.refused(
        Code.NOT_FOUND,
        () -> Server.client().newDeleteResourceCommand(form.getFormKey()).send().join());
    assertEquals(2, deploy(id + ".form", json(id, 1)).getForm().get(0).getVersion());
  }

  @Test
  void aFormWithoutAnIdIsRefused() {
    String message = Status.refused(Code.INVALID_ARGUMENT, () -> deploy("a.form", "{}"));
    assertTrue(message.contains("Expected the form id to be present, but none given"), message);
    Status.refused(Code.INVALID_ARGUMENT, () -> deploy("a.form", "{\"id\": }"));
  }

  private static String json(String id, int content) {
    return "{\"id\": \"" + id + "\", \"components\": [], \"schemaVersion\": " + content + "}";
  }

  private static DeploymentEvent deploy(String name, String text) {
    return Server.client()
        .newDeployResourceCommand()
        .addResourceBytes(text.getBytes(StandardCharsets.UTF_8), name)
        .send()
        .join();
  }
}
