package clients

import (
	"regexp"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

func TestEveryPartitionHasAHealthyLeader(t *testing.T) {
	t.Parallel()
	topology, err := client.NewTopologyCommand().Send(within(t))
	must(t, err)

	equal(t, "brokers", len(topology.GetBrokers()), int(topology.GetClusterSize()))
	led := map[int32]bool{}
	release := regexp.MustCompile(`^\d+\.\d+\.\d+`)
	for _, broker := range topology.GetBrokers() {
		if !release.MatchString(broker.GetVersion()) {
			t.Errorf("%q does not look like a release", broker.GetVersion())
		}
		for _, partition := range broker.GetPartitions() {
			if partition.GetRole() == pb.Partition_LEADER && partition.GetHealth() == pb.Partition_HEALTHY {
				led[partition.GetPartitionId()] = true
			}
		}
	}
	equal(t, "led partitions", len(led), int(topology.GetPartitionsCount()))
	if !release.MatchString(topology.GetGatewayVersion()) {
		t.Errorf("%q does not look like a release", topology.GetGatewayVersion())
	}
}
