package clients

import (
	"strconv"
	"testing"

	"google.golang.org/grpc/codes"
)

func TestIncidentOfAJobWithoutRetries(t *testing.T) {
	t.Parallel()
	m, job := oneJob(t)
	must(t, fail(t, job.GetKey(), 0, "the printer is on fire", 0))
	assertNone(t, m.jobType("work"))

	found := incident(t, job.GetProcessInstanceKey())
	equal(t, "error type", found.Value.ErrorType, "JOB_NO_RETRIES")
	equal(t, "error message", found.Value.ErrorMessage, "the printer is on fire")
	equal(t, "job", found.Value.JobKey, job.GetKey())

	refused(t, codes.FailedPrecondition, resolve(t, found.Key))
	must(t, updateRetries(t, job.GetKey(), 2))
	must(t, resolve(t, found.Key))
	again := pollOne(t, m.jobType("work"))
	equal(t, "key", again.GetKey(), job.GetKey())
	equal(t, "retries", again.GetRetries(), int32(2))
	must(t, complete(t, again.GetKey(), Variables{}))
	refused(t, codes.NotFound, resolve(t, found.Key))
}

func TestIncidentOfAnErrorThatNobodyCatches(t *testing.T) {
	t.Parallel()
	m, job := oneJob(t)
	must(t, throwError(t, job.GetKey(), "OUT_OF_STOCK"))
	assertNone(t, m.jobType("work"))
	refused(t, codes.FailedPrecondition, complete(t, job.GetKey(), Variables{}))

	found := incident(t, job.GetProcessInstanceKey())
	equal(t, "error type", found.Value.ErrorType, "UNHANDLED_ERROR_EVENT")
	contains(t, found.Value.ErrorMessage, "OUT_OF_STOCK")

	must(t, resolve(t, found.Key))
	again := pollOne(t, m.jobType("work"))
	equal(t, "key", again.GetKey(), job.GetKey())
	must(t, complete(t, again.GetKey(), Variables{}))
}

func TestIncidentOfAGatewayWithoutATrueCondition(t *testing.T) {
	t.Parallel()
	m := deploy(t, "no-default-flow")
	instance := m.create(t, Variables{"approved": "perhaps"})
	assertNone(t, m.jobType("declined"))

	found := incident(t, instance)
	equal(t, "element", found.Value.ElementID, "choose")
	must(t, setVariables(t, instance, `{"approved": false}`, false))
	must(t, resolve(t, found.Key))

	equal(t, "instance", pollOne(t, m.jobType("declined")).GetProcessInstanceKey(), instance)
}

func TestIncidentUnknownIsNotFound(t *testing.T) {
	t.Parallel()
	contains(t, refused(t, codes.NotFound, resolve(t, unknownKey)), strconv.FormatInt(unknownKey, 10))
}
