package clients

import (
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

func TestTimersHoldBackAndRemind(t *testing.T) {
	t.Parallel()
	m := deploy(t, "timers")
	start := time.Now()
	instance := m.create(t, Variables{"pause": "PT1S", "reminders": "R1/PT0.5S", "limit": "PT1H"})

	work := pollOne(t, m.jobType("work"))
	// The server's clock counts whole milliseconds.
	if elapsed := time.Since(start); elapsed < 998*time.Millisecond {
		t.Fatalf("the pause ended after %s", elapsed)
	}
	must(t, complete(t, pollOne(t, m.jobType("remind")).GetKey(), Variables{}))

	must(t, complete(t, work.GetKey(), Variables{}))
	refused(t, codes.NotFound, cancelInstance(t, instance))
}

func TestTimerEndsATask(t *testing.T) {
	t.Parallel()
	m := deploy(t, "timers")
	instance := m.create(t, Variables{"pause": "PT0S", "reminders": "R1/PT1H", "limit": "PT1S"})
	// On a slow machine the limit may come before anybody has the job.
	work, err := activate(t, m.jobType("work"), 1, lock, aMoment)
	must(t, err)

	escalate := pollOne(t, m.jobType("escalate"))

	equal(t, "instance", escalate.GetProcessInstanceKey(), instance)
	for _, job := range work {
		refused(t, codes.NotFound, complete(t, job.GetKey(), Variables{}))
	}
	must(t, complete(t, escalate.GetKey(), Variables{}))
	refused(t, codes.NotFound, cancelInstance(t, instance))
}

func TestTimerStartsInstances(t *testing.T) {
	t.Parallel()
	m := deploy(t, "timer-start")

	jobs := poll(t, m.jobType("work"), 2)

	if jobs[0].GetProcessInstanceKey() == jobs[1].GetProcessInstanceKey() {
		t.Fatalf("both jobs are of one instance: %v", jobs)
	}
}

func TestErrorIsCaughtByItsEvent(t *testing.T) {
	t.Parallel()
	for code, handler := range map[string]string{"OUT_OF_STOCK": "reorder", "STUNG": "apologise"} {
		m := deploy(t, "error-boundary")
		result := m.createWithResult(t, Variables{"a": 1}, "a", "missing")
		work := pollOne(t, m.jobType("work"))

		command, err := client.NewThrowErrorCommand().JobKey(work.GetKey()).ErrorCode(code).
			VariablesFromMap(Variables{"item": "honey"})
		must(t, err)
		_, err = command.Send(within(t))
		must(t, err)

		handling := pollOne(t, m.jobType(handler))
		refused(t, codes.NotFound, complete(t, work.GetKey(), Variables{}))
		must(t, complete(t, handling.GetKey(), Variables{}))
		want := Variables{"a": 1.0}
		if code == "OUT_OF_STOCK" {
			want["missing"] = "honey"
		}
		equal(t, "result", result(), want)
	}
}

func TestCallActivityPassesVariables(t *testing.T) {
	t.Parallel()
	called, caller := deploy(t, "one-task"), deploy(t, "call-activity")
	result := caller.createWithResult(t, Variables{"called": called.id, "a": 1})

	work := pollOne(t, called.jobType("work"))
	equal(t, "variables", object(t, work.GetVariables()), Variables{"called": called.id, "a": 1.0})
	must(t, complete(t, work.GetKey(), Variables{"b": 2}))
	must(t, complete(t, pollOne(t, caller.jobType("after")).GetKey(), Variables{}))

	equal(t, "result", result(), Variables{"called": called.id, "a": 1.0, "b": 2.0})
}

func TestCallActivityIsCancelledWithItsCaller(t *testing.T) {
	t.Parallel()
	called, caller := deploy(t, "one-task"), deploy(t, "call-activity")
	instance := caller.create(t, Variables{"called": called.id})
	work := pollOne(t, called.jobType("work"))

	message := refused(t, codes.FailedPrecondition, cancelInstance(t, work.GetProcessInstanceKey()))
	contains(t, message, strconv.FormatInt(instance, 10))
	must(t, cancelInstance(t, instance))

	refused(t, codes.NotFound, complete(t, work.GetKey(), Variables{}))
}

func TestMultiInstanceTogetherAndOneByOne(t *testing.T) {
	t.Parallel()
	m := deploy(t, "multi-instance")
	result := m.createWithResult(t, Variables{"items": []string{"a", "b", "c"}, "enough": 2}, "checked", "packed")

	checks := poll(t, m.jobType("check"), 3)
	for n := len(checks) - 1; n >= 0; n-- {
		item := object(t, checks[n].GetVariables())["item"].(string)
		must(t, complete(t, checks[n].GetKey(), Variables{"verdict": item + "!"}))
	}
	for n := 1; n <= 2; n++ {
		pack := pollOne(t, m.jobType("pack"))
		equal(t, "loop counter", object(t, pack.GetVariables())["loopCounter"], float64(n))
		must(t, complete(t, pack.GetKey(), Variables{}))
	}

	equal(t, "result", result(), Variables{"checked": []any{"a!", "b!", "c!"}, "packed": []any{1.0, 2.0, nil}})
}
