package clients

import (
	"context"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/entities"
)

// stream is open and known to push; nothing here polls.
type stream struct {
	jobs chan entities.Job
	// Instances whose job was waited for in vain; it may still have been on its way.
	givenUp map[int64]bool
	close   func()
}

func openStream(t *testing.T, m model) stream {
	t.Helper()
	needsFullGateway(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	jobs := make(chan entities.Job, 100)
	opened := stream{jobs: jobs, givenUp: map[int64]bool{}, close: func() { cancel(); <-ended }}
	t.Cleanup(opened.close)
	go func() {
		defer close(ended)
		// Ends with the error of the cancelled context.
		_ = client.NewStreamJobsCommand().JobType(m.jobType("work")).Consumer(jobs).
			Timeout(lock).WorkerName("streaming-suite").RequestTimeout(20 * time.Minute).Send(ctx)
	}()
	// Opening a stream is not acknowledged, so instances are created until one is pushed.
	for wait := 500 * time.Millisecond; wait < patience; wait *= 2 {
		instance := m.create(t, nil)
		if job, pushed := opened.within(wait); pushed {
			must(t, complete(t, job.GetKey(), Variables{}))
			return opened
		}
		opened.givenUp[instance] = true
		must(t, cancelInstance(t, instance))
	}
	t.Fatal("no job was pushed within 2 minutes after the stream was opened")
	return opened
}

func (s stream) next(t *testing.T) entities.Job {
	t.Helper()
	job, pushed := s.within(patience)
	if !pushed {
		t.Fatal("no job was pushed within 2 minutes")
	}
	return job
}

// within is the next job of an instance that was not given up.
func (s stream) within(duration time.Duration) (entities.Job, bool) {
	end := time.After(duration)
	for {
		select {
		case job := <-s.jobs:
			if !s.givenUp[job.GetProcessInstanceKey()] {
				return job, true
			}
		case <-end:
			return entities.Job{}, false
		}
	}
}

func TestStreamPushesJobsWithAllThatAWorkerNeeds(t *testing.T) {
	t.Parallel()
	m := deploy(t, "one-task")
	s := openStream(t, m)
	instance := m.create(t, Variables{"a": 1})

	job := s.next(t)

	equal(t, "instance", job.GetProcessInstanceKey(), instance)
	equal(t, "worker", job.GetWorker(), "streaming-suite")
	equal(t, "retries", job.GetRetries(), int32(3))
	equal(t, "variables", object(t, job.GetVariables()), Variables{"a": 1.0})
	assertNone(t, m.jobType("work"))
	must(t, complete(t, job.GetKey(), Variables{}))
}

func TestStreamPushesEveryJobOnce(t *testing.T) {
	t.Parallel()
	m := deploy(t, "one-task")
	s := openStream(t, m)
	created, seen := map[int64]bool{}, map[int64]bool{}
	for range 50 {
		created[m.create(t, nil)] = true
	}

	for range 50 {
		job := s.next(t)
		seen[job.GetProcessInstanceKey()] = true
		must(t, complete(t, job.GetKey(), Variables{}))
	}

	equal(t, "pushed instances", seen, created)
}

func TestStreamPushesAFailedJobAfterItsBackoff(t *testing.T) {
	t.Parallel()
	m := deploy(t, "one-task")
	s := openStream(t, m)
	m.create(t, nil)
	first := s.next(t)
	start := time.Now()

	must(t, fail(t, first.GetKey(), 2, "later", time.Second))

	again := s.next(t)
	equal(t, "key", again.GetKey(), first.GetKey())
	equal(t, "retries", again.GetRetries(), int32(2))
	if waited := time.Since(start); waited < 990*time.Millisecond {
		t.Errorf("pushed after %s, before the backoff ended", waited)
	}
}

func TestStreamThatEndedLeavesJobsForPolling(t *testing.T) {
	t.Parallel()
	m := deploy(t, "one-task")
	openStream(t, m).close()
	time.Sleep(200 * time.Millisecond)

	// What was pushed before the server knew that the stream is closed is lost until its lock ends.
	created := map[int64]bool{}
	var jobs []entities.Job
	for end := time.Now().Add(patience); len(jobs) == 0 && time.Now().Before(end); {
		created[m.create(t, nil)] = true
		var err error
		jobs, err = activate(t, m.jobType("work"), 1, lock, onePoll)
		must(t, err)
	}

	equal(t, "jobs", len(jobs), 1)
	equal(t, "created", created[jobs[0].GetProcessInstanceKey()], true)
}
