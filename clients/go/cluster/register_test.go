package main

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

func TestTheCheckerFindsWhatNoOrderExplains(t *testing.T) {
	write := func(value int, called, returned int64) porcupine.Operation {
		return porcupine.Operation{Input: operation{isWrite: true, value: value}, Call: called, Return: returned}
	}
	read := func(value int, called, returned int64) porcupine.Operation {
		return porcupine.Operation{Input: operation{}, Output: value, Call: called, Return: returned}
	}
	for name, one := range map[string]struct {
		operations []porcupine.Operation
		isRight    bool
	}{
		"nothing was written":                      {[]porcupine.Operation{read(0, 1, 2)}, true},
		"an acknowledged write is lost":            {[]porcupine.Operation{write(1, 1, 2), read(0, 3, 4)}, false},
		"a read at the time of a write":            {[]porcupine.Operation{write(1, 1, 4), read(0, 2, 3)}, true},
		"a write of unknown outcome, carried out":  {[]porcupine.Operation{write(1, 1, never), read(0, 2, 3), read(1, 4, 5)}, true},
		"a write of unknown outcome, not done":     {[]porcupine.Operation{write(1, 1, never), read(0, 2, 3)}, true},
		"a write of unknown outcome, and back":     {[]porcupine.Operation{write(1, 1, never), read(1, 2, 3), read(0, 4, 5)}, false},
		"an older value comes back after a newer":  {[]porcupine.Operation{write(1, 1, 2), write(2, 3, 4), read(2, 5, 6), read(1, 7, 8)}, false},
		"a value that was read before it was sent": {[]porcupine.Operation{read(1, 1, 2), write(1, 3, never)}, false},
	} {
		history := &history{operations: one.operations}
		if got := porcupine.CheckOperations(model, history.settled()); got != one.isRight {
			t.Errorf("%s: %v", name, got)
		}
	}
}
