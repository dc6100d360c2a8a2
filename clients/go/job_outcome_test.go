package clients

import (
	"strconv"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/entities"
	"google.golang.org/grpc/codes"
)

func oneJob(t *testing.T) (m model, job entities.Job) {
	t.Helper()
	m = deploy(t, "one-task")
	m.create(t, nil)
	return m, pollOne(t, m.jobType("work"))
}

func TestCompleteVariablesReachTheNextTask(t *testing.T) {
	t.Parallel()
	m := deploy(t, "two-tasks")
	m.create(t, Variables{"kept": "yes", "changed": 1})

	must(t, complete(t, pollOne(t, m.jobType("first")).GetKey(), Variables{"changed": 2, "fresh": true}))

	second := pollOne(t, m.jobType("second"))
	equal(t, "variables", object(t, second.GetVariables()), Variables{"kept": "yes", "changed": 2.0, "fresh": true})
	equal(t, "retries", second.GetRetries(), int32(5))
}

func TestCompleteTwiceIsNotFound(t *testing.T) {
	t.Parallel()
	_, job := oneJob(t)
	must(t, complete(t, job.GetKey(), Variables{}))

	message := refused(t, codes.NotFound, complete(t, job.GetKey(), Variables{}))

	contains(t, message, strconv.FormatInt(job.GetKey(), 10))
}

func TestUnknownJobIsNotFoundForEveryCommand(t *testing.T) {
	t.Parallel()
	refused(t, codes.NotFound, complete(t, unknownKey, Variables{}))
	refused(t, codes.NotFound, fail(t, unknownKey, 1, "", 0))
	refused(t, codes.NotFound, throwError(t, unknownKey, "E"))
	refused(t, codes.NotFound, updateRetries(t, unknownKey, 1))
	refused(t, codes.NotFound, updateTimeout(t, unknownKey, time.Second))
}

func TestFailMakesTheJobAvailableWithTheGivenRetries(t *testing.T) {
	t.Parallel()
	m, job := oneJob(t)

	must(t, fail(t, job.GetKey(), 7, "try again", 0))

	again := pollOne(t, m.jobType("work"))
	equal(t, "key", again.GetKey(), job.GetKey())
	equal(t, "retries", again.GetRetries(), int32(7))
}

func TestFailWaitsForItsBackoff(t *testing.T) {
	t.Parallel()
	m, job := oneJob(t)
	start := time.Now()

	must(t, fail(t, job.GetKey(), 2, "later", 2*time.Second))

	again := pollOne(t, m.jobType("work"))
	equal(t, "key", again.GetKey(), job.GetKey())
	if waited := time.Since(start); waited < 1990*time.Millisecond {
		t.Errorf("available after %s, before the backoff ended", waited)
	}
}

func TestUpdateTimeoutFreesTheJobEarlier(t *testing.T) {
	t.Parallel()
	m, job := oneJob(t)

	must(t, updateTimeout(t, job.GetKey(), 100*time.Millisecond))

	equal(t, "key", pollOne(t, m.jobType("work")).GetKey(), job.GetKey())
}

func TestUpdateRetriesOfAnActivatedJob(t *testing.T) {
	t.Parallel()
	m, job := oneJob(t)

	must(t, updateRetries(t, job.GetKey(), 9))
	refused(t, codes.InvalidArgument, updateRetries(t, job.GetKey(), 0))
	must(t, updateTimeout(t, job.GetKey(), 100*time.Millisecond))

	equal(t, "retries", pollOne(t, m.jobType("work")).GetRetries(), int32(9))
}

func TestCancelTakesTheJobsAway(t *testing.T) {
	t.Parallel()
	m := deploy(t, "parallel-gateway")
	instance := m.create(t, nil)
	inWork := pollOne(t, m.jobType("a"))

	must(t, cancelInstance(t, instance))

	assertNone(t, m.jobType("b"))
	refused(t, codes.NotFound, complete(t, inWork.GetKey(), Variables{}))
}

func TestCancelOfWhatHasEndedIsNotFound(t *testing.T) {
	t.Parallel()
	m, job := oneJob(t)
	must(t, complete(t, job.GetKey(), Variables{}))
	cancelled := m.create(t, nil)
	must(t, cancelInstance(t, cancelled))

	for _, key := range []int64{job.GetProcessInstanceKey(), cancelled, unknownKey} {
		contains(t, refused(t, codes.NotFound, cancelInstance(t, key)), strconv.FormatInt(key, 10))
	}
}
