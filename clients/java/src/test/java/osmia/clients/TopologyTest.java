package osmia.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.camunda.client.api.response.BrokerInfo;
import io.camunda.client.api.response.PartitionBrokerHealth;
import io.camunda.client.api.response.PartitionInfo;
import io.camunda.client.api.response.Topology;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class TopologyTest {
  @Test
  void everyPartitionHasAHealthyLeader() {
    Topology topology = Server.client().newTopologyRequest().send().join();

    assertEquals(topology.getClusterSize(), topology.getBrokers().size());
    assertTrue(topology.getPartitionsCount() >= 1);
    assertTrue(topology.getReplicationFactor() >= 1);
    var ledAndHealthy =
        topology.getBrokers().stream()
            .map(BrokerInfo::getPartitions)
            .flatMap(partitions -> partitions.stream())
            .filter(PartitionInfo::isLeader)
            .filter(partition -> partition.getHealth() == PartitionBrokerHealth.HEALTHY)
            .map(PartitionInfo::getPartitionId)
            .sorted()
            .toList();
    var expected = IntStream.rangeClosed(1, topology.getPartitionsCount()).boxed().toList();
    assertEquals(expected, ledAndHealthy);
  }

  @Test
  void versionsLookLikeReleases() {
    Topology topology = Server.client().newTopologyRequest().send().join();

    assertTrue(topology.getGatewayVersion().matches("\\d+\\.\\d+\\.\\d+.*"));
    for (BrokerInfo broker : topology.getBrokers()) {
      assertTrue(broker.getVersion().matches("\\d+\\.\\d+\\.\\d+.*"), broker.getVersion());
      assertTrue(broker.getPort() > 0);
    }
  }
}
