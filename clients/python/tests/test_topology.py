import re

from pyzeebe.grpc_internals.types import HealthCheckResponse, TopologyResponse
from server import needs_full_gateway

Partition = TopologyResponse.BrokerInfo.Partition


async def test_every_partition_has_a_healthy_leader(server):
    topology = await server.client.topology()

    assert len(topology.brokers) == topology.cluster_size
    assert topology.replication_factor >= 1
    led_and_healthy = sorted(
        partition.partition_id
        for broker in topology.brokers
        for partition in broker.partitions
        if partition.role == Partition.PartitionBrokerRole.LEADER
        and partition.health == Partition.PartitionBrokerHealth.HEALTHY
    )
    assert led_and_healthy == list(range(1, topology.partitions_count + 1))


async def test_versions_look_like_releases(server):
    topology = await server.client.topology()

    assert re.match(r"\d+\.\d+\.\d+", topology.gateway_version)
    assert all(re.match(r"\d+\.\d+\.\d+", broker.version) for broker in topology.brokers)


@needs_full_gateway
async def test_the_health_service_serves(server):
    health = await server.client.healthcheck()

    assert health.status == HealthCheckResponse.ServingStatus.SERVING
