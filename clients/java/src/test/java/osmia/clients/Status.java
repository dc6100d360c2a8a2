package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.camunda.client.api.command.ClientStatusException;
import io.grpc.Status.Code;
import org.junit.jupiter.api.function.Executable;

/** What a refused command looks like to a caller. */
final class Status {
  private Status() {}

  /** Asserts that the call is refused with this code; answers the message. */
  static String refused(Code code, Executable call) {
    ClientStatusException refusal = assertThrows(ClientStatusException.class, call);
    assertEquals(code, refusal.getStatusCode(), refusal.getMessage());
    return refusal.getMessage();
  }
}
