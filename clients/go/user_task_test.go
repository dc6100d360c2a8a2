package clients

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/entities"
	"google.golang.org/grpc/codes"
)

// userTaskType is the type of the jobs of all user tasks that job workers do.
const userTaskType = "io.camunda.zeebe:userTask"

// pollUserTask waits for the job of a user task of one instance. The type is shared with other tests, so others' jobs come too.
func pollUserTask(t *testing.T, instance int64) entities.Job {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		jobs, err := activate(t, userTaskType, 1, aMoment, onePoll)
		must(t, err)
		for _, job := range jobs {
			if job.GetProcessInstanceKey() == instance {
				return job
			}
		}
	}
	t.Fatalf("no user task of instance %d", instance)
	return entities.Job{}
}

func TestUserTaskIsAJobWithWhoIsToDoIt(t *testing.T) {
	t.Parallel()
	m := deploy(t, "user-task-job")
	instance := m.create(t, Variables{"person": "ann"})

	task := pollUserTask(t, instance)

	equal(t, "element", task.GetElementId(), "decide")
	headers := map[string]string{}
	must(t, json.Unmarshal([]byte(task.GetCustomHeaders()), &headers))
	equal(t, "headers", headers, map[string]string{
		"kind":                             m.id,
		"io.camunda.zeebe:assignee":        "ann",
		"io.camunda.zeebe:candidateGroups": `["sales"]`,
	})
	must(t, complete(t, task.GetKey(), Variables{"answer": "yes"}))
	refused(t, codes.NotFound, complete(t, task.GetKey(), Variables{}))
	refused(t, codes.NotFound, cancelInstance(t, instance))
}

func TestUserTaskOfACancelledInstanceIsGone(t *testing.T) {
	t.Parallel()
	m := deploy(t, "user-task-job")
	instance := m.create(t, Variables{"person": "ann"})
	task := pollUserTask(t, instance)

	must(t, cancelInstance(t, instance))

	refused(t, codes.NotFound, complete(t, task.GetKey(), Variables{}))
}

func TestUserTaskOfTheEngineIsNoJob(t *testing.T) {
	t.Parallel()
	m := deploy(t, "user-task")
	// Its form is not there, so it waits with an incident, and no worker is asked.
	instance := m.create(t, Variables{"person": "ann"})
	jobs, err := activate(t, userTaskType, 100, aMoment, aMoment)
	must(t, err)
	for _, job := range jobs {
		if job.GetProcessInstanceKey() == instance {
			t.Fatalf("there is a job for it: %v", job)
		}
	}
	must(t, cancelInstance(t, instance))
}
