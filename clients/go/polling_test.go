package clients

import (
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/entities"
	"github.com/camunda/zeebe/clients/go/v8/pkg/worker"
	"google.golang.org/grpc/codes"
)

func TestPollJobCarriesAllThatAWorkerNeeds(t *testing.T) {
	t.Parallel()
	m := deploy(t, "one-task")
	instance := m.create(t, Variables{"name": "Ada", "list": []int{1, 2}})
	before := time.Now()

	job := pollOne(t, m.jobType("work"))

	equal(t, "type", job.GetType(), m.jobType("work"))
	equal(t, "instance", job.GetProcessInstanceKey(), instance)
	equal(t, "process id", job.GetBpmnProcessId(), m.id)
	equal(t, "version", job.GetProcessDefinitionVersion(), int32(1))
	equal(t, "definition", job.GetProcessDefinitionKey(), m.process.GetProcessDefinitionKey())
	equal(t, "element", job.GetElementId(), "work")
	equal(t, "worker", job.GetWorker(), "suite")
	equal(t, "retries", job.GetRetries(), int32(3))
	headers, err := job.GetCustomHeadersAsMap()
	must(t, err)
	equal(t, "headers", headers, map[string]string{"color": "blue", "note": `a "quoted" text`})
	equal(t, "variables", object(t, job.GetVariables()), Variables{"name": "Ada", "list": []any{1.0, 2.0}})
	// The lock of a minute began between the two looks at the clock.
	deadline := time.UnixMilli(job.GetDeadline())
	longest, shortest := deadline.Sub(before), time.Until(deadline)
	if longest < time.Minute-10*time.Millisecond || shortest > time.Minute+10*time.Millisecond {
		t.Errorf("locked for %s to %s instead of a minute", shortest, longest)
	}
}

func TestPollFetchesOnlyTheAskedForVariables(t *testing.T) {
	t.Parallel()
	m := deploy(t, "one-task")
	m.create(t, Variables{"a": 1, "b": 2})

	jobs, err := activate(t, m.jobType("work"), 1, lock, onePoll, "b", "missing")
	must(t, err)

	equal(t, "jobs", len(jobs), 1)
	equal(t, "variables", object(t, jobs[0].GetVariables()), Variables{"b": 2.0})
}

func TestPollWakesForAJobThatComesLater(t *testing.T) {
	t.Parallel()
	needsFullGateway(t)
	m := deploy(t, "one-task")
	polled := make(chan []entities.Job, 1)
	go func() {
		jobs, _ := activate(t, m.jobType("work"), 1, lock, patience)
		polled <- jobs
	}()
	time.Sleep(500 * time.Millisecond)

	instance := m.create(t, nil)
	jobs := <-polled

	equal(t, "jobs", len(jobs), 1)
	equal(t, "instance", jobs[0].GetProcessInstanceKey(), instance)
}

func TestPollGivesAJobToOneWorkerOnlyUntilItsLockEnds(t *testing.T) {
	t.Parallel()
	m := deploy(t, "one-task")
	m.create(t, nil)
	start := time.Now()

	first, err := activate(t, m.jobType("work"), 1, 2*time.Second, onePoll)
	must(t, err)
	equal(t, "jobs", len(first), 1)

	again := pollOne(t, m.jobType("work"))
	equal(t, "key", again.GetKey(), first[0].GetKey())
	equal(t, "retries", again.GetRetries(), int32(3))
	if waited := time.Since(start); waited < 1990*time.Millisecond {
		t.Errorf("available after %s, before the lock ended", waited)
	}
}

func TestPollThatMakesNoSenseIsInvalid(t *testing.T) {
	t.Parallel()
	_, err := activate(t, "some-type", 1, 0, onePoll)

	refused(t, codes.InvalidArgument, err)
}

// The worker of the client: polls and, if asked to, streams.
func TestWorkerHandlesEveryJobOnce(t *testing.T) {
	for name, streaming := range map[string]bool{"poll": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if streaming {
				needsFullGateway(t)
			}
			m := deploy(t, "one-task")
			handled := make(chan int64, 100)
			opened := client.NewJobWorker().JobType(m.jobType("work")).Handler(func(jobs worker.JobClient, job entities.Job) {
				if _, err := jobs.NewCompleteJobCommand().JobKey(job.GetKey()).Send(within(t)); err != nil {
					t.Errorf("the job cannot be completed: %v", err)
				}
				handled <- job.GetProcessInstanceKey()
			}).RequestTimeout(2 * time.Second).StreamEnabled(streaming).Open()
			defer opened.AwaitClose()
			defer opened.Close()

			waiting := map[int64]bool{}
			for range 40 {
				waiting[m.create(t, nil)] = true
			}
			deadline := time.After(patience)
			for len(waiting) > 0 {
				select {
				case instance := <-handled:
					if !waiting[instance] {
						t.Fatalf("instance %d was handled twice", instance)
					}
					delete(waiting, instance)
				case <-deadline:
					t.Fatalf("%d instances were not handled", len(waiting))
				}
			}
		})
	}
}
