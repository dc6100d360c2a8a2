package clients

import (
	"testing"

	"google.golang.org/grpc/codes"
)

func TestDeployAnswersWhatWasDeployed(t *testing.T) {
	t.Parallel()
	id := uniqueID("deploy")

	deployment, err := deployText(t, id+".bpmn", modelText(t, "one-task", id))
	must(t, err)

	if deployment.GetKey() <= 0 {
		t.Errorf("the deployment has the key %d", deployment.GetKey())
	}
	equal(t, "deployments", len(deployment.GetDeployments()), 1)
	process := deployment.GetDeployments()[0].GetProcess()
	equal(t, "id", process.GetBpmnProcessId(), id)
	equal(t, "version", process.GetVersion(), int32(1))
	equal(t, "resource", process.GetResourceName(), id+".bpmn")
}

func TestDeployChangedModelIsTheNextVersion(t *testing.T) {
	t.Parallel()
	id := uniqueID("versions")

	first := deployAs(t, "one-task", id).process
	same := deployAs(t, "one-task", id).process
	second := deployAs(t, "two-tasks", id).process

	equal(t, "version of the same model", same.GetVersion(), int32(1))
	equal(t, "key of the same model", same.GetProcessDefinitionKey(), first.GetProcessDefinitionKey())
	equal(t, "version of the changed model", second.GetVersion(), int32(2))
}

func TestDeployBrokenModelIsRefusedByName(t *testing.T) {
	t.Parallel()
	id := uniqueID("broken")

	_, err := deployText(t, id+".bpmn", modelText(t, "broken", id))

	message := refused(t, codes.InvalidArgument, err)
	contains(t, message, id+".bpmn")
	contains(t, message, "nameless")
	_, err = client.NewCreateInstanceCommand().BPMNProcessId(id).LatestVersion().Send(within(t))
	refused(t, codes.NotFound, err)
}

func TestDeployTextThatIsNoXMLIsRefused(t *testing.T) {
	t.Parallel()
	_, err := deployText(t, "garbled.bpmn", []byte("<definitions><oops"))

	refused(t, codes.InvalidArgument, err)
}
