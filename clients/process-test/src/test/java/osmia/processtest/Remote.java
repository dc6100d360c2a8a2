package osmia.processtest;

import io.camunda.client.CamundaClient;
import io.camunda.process.test.api.CamundaProcessTestExtension;
import io.camunda.process.test.api.CamundaProcessTestRuntimeMode;
import java.net.URI;

/** The server under test, as the library reaches it. */
final class Remote {
  private Remote() {}

  static CamundaProcessTestExtension extension() {
    return new CamundaProcessTestExtension()
        .withRuntimeMode(CamundaProcessTestRuntimeMode.REMOTE)
        .withRemoteCamundaClientBuilderFactory(
            () ->
                CamundaClient.newClientBuilder()
                    .grpcAddress(address("OSMIA_GRPC_ADDRESS"))
                    .restAddress(address("OSMIA_HTTP_ADDRESS")))
        .withRemoteCamundaMonitoringApiAddress(address("OSMIA_MANAGEMENT_ADDRESS"));
  }

  private static URI address(String name) {
    return URI.create("http://" + System.getenv(name));
  }
}
