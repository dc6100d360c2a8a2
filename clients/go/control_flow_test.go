package clients

import "testing"

func TestExclusiveGateway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		task   string
		amount float64
		region string
	}{{"review", 1000, "EU"}, {"automatic", 99.5, "EU"}, {"manual-entry", 1000, "US"}} {
		m := deploy(t, "exclusive-gateway")
		result := m.createWithResult(t, Variables{"amount": c.amount, "region": c.region})
		must(t, complete(t, pollOne(t, m.jobType(c.task)).GetKey(), Variables{"by": c.task}))
		equal(t, "result", result(), Variables{"amount": c.amount, "region": c.region, "by": c.task})
	}
}

func TestParallelGateway(t *testing.T) {
	t.Parallel()
	m := deploy(t, "parallel-gateway")
	result := m.createWithResult(t, nil)
	a, b, c := pollOne(t, m.jobType("a")), pollOne(t, m.jobType("b")), pollOne(t, m.jobType("c"))

	must(t, complete(t, c.GetKey(), Variables{"c": 3}))
	must(t, complete(t, a.GetKey(), Variables{"a": 1}))
	assertNone(t, m.jobType("after"))
	must(t, complete(t, b.GetKey(), Variables{"b": 2}))
	must(t, complete(t, pollOne(t, m.jobType("after")).GetKey(), Variables{}))

	equal(t, "result", result(), Variables{"a": 1.0, "b": 2.0, "c": 3.0})
}

func TestSubProcess(t *testing.T) {
	t.Parallel()
	for task, items := range map[string][]any{"box": {"a", "b", "c"}, "envelope": {"a"}} {
		m := deploy(t, "sub-process")
		order := Variables{"items": items}
		result := m.createWithResult(t, Variables{"order": order})

		job := pollOne(t, m.jobType(task))
		equal(t, "variables", object(t, job.GetVariables()), Variables{"order": order, "parcel": order})
		must(t, complete(t, job.GetKey(), Variables{"parcel": Variables{"weight": 12}, "order": "closed"}))
		must(t, complete(t, pollOne(t, m.jobType("ship")).GetKey(), Variables{}))

		equal(t, "result", result(), Variables{"order": "closed", "parcelWeight": 12.0})
	}
}

func TestTasksOfAllKinds(t *testing.T) {
	t.Parallel()
	m := deploy(t, "task-kinds")
	result := m.createWithResult(t, nil)

	for _, task := range []string{"service", "send", "rule", "script"} {
		must(t, complete(t, pollOne(t, m.jobType(task)).GetKey(), Variables{task: true}))
	}

	equal(t, "result", result(), Variables{"service": true, "send": true, "rule": true, "script": true})
}
