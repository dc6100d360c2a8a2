package clients

import (
	"testing"

	"google.golang.org/grpc/codes"
)

func TestVariablesOfEveryKindComeBackAsTheyWent(t *testing.T) {
	t.Parallel()
	m := deploy(t, "straight-through")
	variables := Variables{
		"text":               "quote \" backslash \\ newline \n bee \U0001F41D",
		"integer":            42.0,
		"negative":           -1.0,
		"decimal":            0.25,
		"yes":                true,
		"nothing":            nil,
		"list":               []any{1.0, "two", nil, []any{}},
		"object":             Variables{"a": Variables{"b": []any{Variables{}}}},
		"a name with spaces": "x",
	}

	equal(t, "variables", m.createWithResult(t, variables)(), variables)
}

func TestSetVariablesOnTheInstance(t *testing.T) {
	t.Parallel()
	m := deploy(t, "two-tasks")
	instance := m.create(t, Variables{"a": 1, "b": 1})
	first := pollOne(t, m.jobType("first"))

	must(t, setVariables(t, instance, `{"b": 2, "c": 3}`, false))
	must(t, complete(t, first.GetKey(), Variables{}))

	second := pollOne(t, m.jobType("second"))
	equal(t, "variables", object(t, second.GetVariables()), Variables{"a": 1.0, "b": 2.0, "c": 3.0})
}

func TestSetVariablesLocally(t *testing.T) {
	t.Parallel()
	m := deploy(t, "two-tasks")
	m.create(t, Variables{"a": 1})
	first := pollOne(t, m.jobType("first"))

	must(t, setVariables(t, first.GetElementInstanceKey(), `{"a": 2, "b": 2}`, true))
	must(t, fail(t, first.GetKey(), 1, "look again", 0))
	again := pollOne(t, m.jobType("first"))
	equal(t, "local variables", object(t, again.GetVariables()), Variables{"a": 2.0, "b": 2.0})
	must(t, complete(t, again.GetKey(), Variables{}))

	equal(t, "variables", object(t, pollOne(t, m.jobType("second")).Variables), Variables{"a": 1.0})
}

func TestSetVariablesOnAnUnknownScopeIsNotFound(t *testing.T) {
	t.Parallel()
	refused(t, codes.NotFound, setVariables(t, unknownKey, `{"a": 1}`, false))
}

func TestMappings(t *testing.T) {
	t.Parallel()
	m := deploy(t, "mappings")
	order := Variables{"customer": "Ada", "quantity": 3.0, "unitPrice": 7.0}
	result := m.createWithResult(t, Variables{"order": order})

	job := pollOne(t, m.jobType("price"))
	equal(t, "variables of the job", object(t, job.GetVariables()),
		Variables{"order": order, "customer": "Ada", "total": 21.0, "text": "order of Ada"})
	must(t, complete(t, job.GetKey(), Variables{"discounted": 20, "internal": "stays here"}))

	equal(t, "result", result(), Variables{"order": order, "result": Variables{"price": 20.0}})
}
