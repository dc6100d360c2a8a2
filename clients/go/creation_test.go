package clients

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

func twoVersions(t *testing.T) (first, second model) {
	t.Helper()
	id := uniqueID("two-versions")
	return deployAs(t, "one-task", id), deployAs(t, "two-tasks", id)
}

func TestCreateByIDTakesTheLatestVersion(t *testing.T) {
	t.Parallel()
	_, second := twoVersions(t)

	created, err := client.NewCreateInstanceCommand().BPMNProcessId(second.id).LatestVersion().Send(within(t))
	must(t, err)

	equal(t, "version", created.GetVersion(), int32(2))
	equal(t, "definition", created.GetProcessDefinitionKey(), second.process.GetProcessDefinitionKey())
	equal(t, "instance", pollOne(t, second.jobType("first")).GetProcessInstanceKey(), created.GetProcessInstanceKey())
}

func TestCreateByVersionTakesThatVersion(t *testing.T) {
	t.Parallel()
	first, _ := twoVersions(t)

	created, err := client.NewCreateInstanceCommand().BPMNProcessId(first.id).Version(1).Send(within(t))
	must(t, err)

	equal(t, "version", created.GetVersion(), int32(1))
	equal(t, "instance", pollOne(t, first.jobType("work")).GetProcessInstanceKey(), created.GetProcessInstanceKey())
}

func TestCreateByKeyTakesThatDefinition(t *testing.T) {
	t.Parallel()
	first, _ := twoVersions(t)

	created, err := client.NewCreateInstanceCommand().ProcessDefinitionKey(first.process.GetProcessDefinitionKey()).Send(within(t))
	must(t, err)

	equal(t, "id", created.GetBpmnProcessId(), first.id)
	equal(t, "version", created.GetVersion(), int32(1))
}

func TestCreateUnknownProcessIsNotFound(t *testing.T) {
	t.Parallel()
	known := deploy(t, "one-task")

	_, err := client.NewCreateInstanceCommand().BPMNProcessId("no-such-process").LatestVersion().Send(within(t))
	contains(t, refused(t, codes.NotFound, err), "no-such-process")
	_, err = client.NewCreateInstanceCommand().BPMNProcessId(known.id).Version(99).Send(within(t))
	refused(t, codes.NotFound, err)
	_, err = client.NewCreateInstanceCommand().ProcessDefinitionKey(99).Send(within(t))
	refused(t, codes.NotFound, err)
}

// A nil map is the text "null" on the wire and means no variables, as the absence of a text does.
func TestCreateWithANilMapHasNoVariables(t *testing.T) {
	t.Parallel()
	m := deploy(t, "two-tasks")
	command, err := client.NewCreateInstanceCommand().BPMNProcessId(m.id).LatestVersion().VariablesFromMap(nil)
	must(t, err)
	_, err = command.Send(within(t))
	must(t, err)

	first := pollOne(t, m.jobType("first"))
	equal(t, "variables", object(t, first.GetVariables()), Variables{})
	must(t, complete(t, first.GetKey(), nil))

	equal(t, "variables", object(t, pollOne(t, m.jobType("second")).GetVariables()), Variables{})
}

func TestResultHoldsWhatTheWorkersWrote(t *testing.T) {
	t.Parallel()
	m := deploy(t, "two-tasks")
	result := m.createWithResult(t, Variables{"a": 1, "b": 1})

	must(t, complete(t, pollOne(t, m.jobType("first")).GetKey(), Variables{"b": 2}))
	must(t, complete(t, pollOne(t, m.jobType("second")).GetKey(), Variables{"c": Variables{"deep": `ü "quoted"`}}))

	equal(t, "variables", result(), Variables{"a": 1.0, "b": 2.0, "c": Variables{"deep": `ü "quoted"`}})
}

func TestResultHoldsOnlyTheAskedForVariables(t *testing.T) {
	t.Parallel()
	m := deploy(t, "straight-through")

	result := m.createWithResult(t, Variables{"a": 1, "b": 2, "c": 3}, "a", "c", "missing")

	equal(t, "variables", result(), Variables{"a": 1.0, "c": 3.0})
}

// Not beside other tests: Zeebe 8.6 answers such a time-out by closing a connection that other requests share.
func TestResultCallerMayGiveUpAndTheInstanceGoesOn(t *testing.T) {
	m := deploy(t, "one-task")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()

	_, err := client.NewCreateInstanceCommand().BPMNProcessId(m.id).LatestVersion().WithResult().Send(ctx)

	refused(t, codes.DeadlineExceeded, err)
	must(t, complete(t, pollOne(t, m.jobType("work")).GetKey(), Variables{}))
}
