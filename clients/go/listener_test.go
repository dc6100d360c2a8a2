package clients

import (
	"strconv"
	"testing"

	"google.golang.org/grpc/codes"
)

// This client cannot say how a listener of a user task decides, so only what needs no answer is here.

func TestListenersSurroundTheWorkOfAnElement(t *testing.T) {
	t.Parallel()
	m := deploy(t, "listeners")
	result := m.createWithResult(t, Variables{"a": 1})

	before := pollOne(t, m.jobType("before"))
	equal(t, "element", before.GetElementId(), "work")
	equal(t, "retries", before.GetRetries(), int32(2))
	assertNone(t, m.jobType("work"))
	refused(t, codes.FailedPrecondition, throwError(t, before.GetKey(), "E"))
	must(t, complete(t, before.GetKey(), Variables{"own": 1}))

	work := pollOne(t, m.jobType("work"))
	equal(t, "variables", object(t, work.GetVariables()), Variables{"a": 1.0, "own": 1.0})
	must(t, complete(t, work.GetKey(), Variables{"done": true}))

	must(t, complete(t, pollOne(t, m.jobType("after")).GetKey(), Variables{"heard": true}))
	equal(t, "result", result(), Variables{"a": 1.0, "done": true, "heard": true})
}

func TestListenerThatFailsIsAnIncidentOfItsOwn(t *testing.T) {
	t.Parallel()
	m := deploy(t, "listeners")
	instance := m.create(t, nil)
	before := pollOne(t, m.jobType("before"))
	must(t, fail(t, before.GetKey(), 0, "deaf", 0))

	found := incident(t, instance)
	equal(t, "error type", found.Value.ErrorType, "EXECUTION_LISTENER_NO_RETRIES")
	equal(t, "error message", found.Value.ErrorMessage, "deaf")

	must(t, updateRetries(t, before.GetKey(), 1))
	must(t, resolve(t, found.Key))
	must(t, complete(t, pollOne(t, m.jobType("before")).GetKey(), Variables{}))
	pollOne(t, m.jobType("work"))
}

func TestUserTaskWaitsForItsListeners(t *testing.T) {
	t.Parallel()
	m := deploy(t, "task-listeners")
	instance := m.create(t, nil)
	creating := pollOne(t, m.jobType("creating"))
	equal(t, "instance", creating.GetProcessInstanceKey(), instance)
	must(t, complete(t, creating.GetKey(), Variables{}))

	must(t, cancelInstance(t, instance))

	canceling := pollOne(t, m.jobType("canceling"))
	must(t, complete(t, canceling.GetKey(), Variables{}))
	contains(t, refused(t, codes.NotFound, complete(t, canceling.GetKey(), Variables{})), strconv.FormatInt(canceling.GetKey(), 10))
	refused(t, codes.NotFound, cancelInstance(t, instance))
}
