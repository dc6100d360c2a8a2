package clients

import (
	"testing"

	"google.golang.org/grpc/codes"
)

func broadcast(t *testing.T, name string, variables Variables) (int64, error) {
	t.Helper()
	command, err := client.NewBroadcastSignalCommand().SignalName(name).VariablesFromMap(variables)
	must(t, err)
	response, err := command.Send(within(t))
	return response.GetKey(), err
}

func TestSignalStartsAnInstanceAndReachesWhoWaits(t *testing.T) {
	t.Parallel()
	m := deploy(t, "signals")

	key, err := broadcast(t, m.jobType("open"), Variables{"a": 1})
	must(t, err)
	if key <= 0 {
		t.Fatalf("the signal has the key %d", key)
	}
	_, err = broadcast(t, m.jobType("close"), Variables{"b": 2})
	must(t, err)

	tidy := pollOne(t, m.jobType("tidy"))
	equal(t, "variables", object(t, tidy.GetVariables()), Variables{"a": 1.0, "b": 2.0})
	must(t, complete(t, tidy.GetKey(), Variables{}))
	refused(t, codes.NotFound, cancelInstance(t, tidy.GetProcessInstanceKey()))
}

func TestSignalReachesAllThatWait(t *testing.T) {
	t.Parallel()
	m := deploy(t, "signals")
	for range 4 {
		_, err := broadcast(t, m.jobType("open"), Variables{})
		must(t, err)
	}

	_, err := broadcast(t, m.jobType("close"), Variables{"closed": true})
	must(t, err)

	instances := map[int64]bool{}
	for _, job := range poll(t, m.jobType("tidy"), 4) {
		equal(t, "variables", object(t, job.GetVariables()), Variables{"closed": true})
		instances[job.GetProcessInstanceKey()] = true
		must(t, complete(t, job.GetKey(), Variables{}))
	}
	equal(t, "instances", len(instances), 4)
}

func TestSignalWithoutANameIsRefused(t *testing.T) {
	t.Parallel()
	_, err := broadcast(t, "", Variables{})
	refused(t, codes.InvalidArgument, err)
}

func TestSignalIsNotKept(t *testing.T) {
	t.Parallel()
	m := deploy(t, "signals")
	closeOnAllPartitions(t, m)
	_, err := broadcast(t, m.jobType("open"), Variables{})
	must(t, err)

	assertNone(t, m.jobType("tidy"))

	_, err = broadcast(t, m.jobType("close"), Variables{})
	must(t, err)
	pollOne(t, m.jobType("tidy"))
}

// A signal comes to the other partitions a little after it was acknowledged. It is everywhere when those who waited for it on each of
// them have got it.
func closeOnAllPartitions(t *testing.T, m model) {
	t.Helper()
	topology, err := client.NewTopologyCommand().Send(within(t))
	must(t, err)
	for reached := map[int64]bool{}; len(reached) < int(topology.GetPartitionsCount()); {
		clear(reached)
		const instances = 6
		for range instances {
			_, err := broadcast(t, m.jobType("open"), Variables{})
			must(t, err)
		}
		_, err := broadcast(t, m.jobType("close"), Variables{})
		must(t, err)
		for _, job := range poll(t, m.jobType("tidy"), instances) {
			reached[job.GetKey()>>51] = true
			must(t, complete(t, job.GetKey(), Variables{}))
		}
	}
}
