package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.camunda.client.api.command.ClientStatusException;
import io.camunda.client.api.command.ProblemException;
import io.grpc.Status.Code;
import org.junit.jupiter.api.function.Executable;

/** What a refused command looks like to a caller. */
final class Status {
  private Status() {}

  /** Asserts that the call is refused with this code; answers the message. */
  static String refused(Code code, Executable call) {
    if (Server.prefersRest()) {
      ProblemException refusal = assertThrows(ProblemException.class, call);
      assertEquals(httpStatus(code), refusal.code(), refusal.getMessage());
      return refusal.details().getDetail();
    }
    ClientStatusException refusal = assertThrows(ClientStatusException.class, call);
    assertEquals(code, refusal.getStatusCode(), refusal.getMessage());
    return refusal.getMessage();
  }

  /** The same over HTTP. */
  private static int httpStatus(Code code) {
    return switch (code) {
      case INVALID_ARGUMENT -> 400;
      case NOT_FOUND -> 404;
      case ALREADY_EXISTS, FAILED_PRECONDITION -> 409;
      case INTERNAL -> 500;
      case UNIMPLEMENTED -> 501;
      case DEADLINE_EXCEEDED -> 504;
      default -> throw new IllegalArgumentException("no status of HTTP is known for " + code);
    };
  }
}
