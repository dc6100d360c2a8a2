package clients

import (
	"testing"

	"google.golang.org/grpc/codes"
)

func TestCreateStartsAtTheElementsThatAreNamed(t *testing.T) {
	t.Parallel()
	m := deploy(t, "sub-process")
	create := func(element string) (int64, error) {
		command, err := client.NewCreateInstanceCommand().BPMNProcessId(m.id).LatestVersion().
			VariablesFromString(`{"order": {"items": []}}`)
		must(t, err)
		created, err := command.StartBeforeElement("ship").StartBeforeElement(element).Send(within(t))
		return created.GetProcessInstanceKey(), err
	}

	instance, err := create("box")
	must(t, err)

	for _, task := range []string{"box", "ship"} {
		equal(t, "instance", pollOne(t, m.jobType(task)).GetProcessInstanceKey(), instance)
	}
	_, err = create("nowhere")
	contains(t, refused(t, codes.InvalidArgument, err), "nowhere")
	assertNone(t, m.jobType("ship"))
}

func TestDeleteAProcess(t *testing.T) {
	t.Parallel()
	needsFullGateway(t)
	m := deploy(t, "one-task")
	remove := func() error {
		_, err := client.NewDeleteResourceCommand().ResourceKey(m.process.GetProcessDefinitionKey()).Send(within(t))
		return err
	}
	// The partition that decides, the first, knows the instances that run there.
	instances := 1
	for m.create(t, nil)>>51 != 1 {
		instances++
	}

	contains(t, refused(t, codes.FailedPrecondition, remove()), "still running instances")
	for _, job := range poll(t, m.jobType("work"), instances) {
		must(t, complete(t, job.GetKey(), Variables{}))
	}
	must(t, remove())

	_, err := client.NewCreateInstanceCommand().BPMNProcessId(m.id).LatestVersion().Send(within(t))
	refused(t, codes.NotFound, err)
	refused(t, codes.NotFound, remove())
}
