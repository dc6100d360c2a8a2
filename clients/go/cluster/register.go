package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/camunda/zeebe/clients/go/v8/pkg/zbc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	registers = 12
	// How many clients use each register at a time.
	users = 2
	// How long each of them rests after an operation: the cluster has other clients too.
	rest = 10 * time.Millisecond
	// How long a read may hold the job of its register when its answer is lost.
	readLock = time.Second
	// How long the checker may take.
	checkLimit = 2 * time.Minute
)

// An operation on a register: the variable x of an instance.
type operation struct {
	register int
	isWrite  bool
	value    int
}

var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, registers)
		for _, one := range history {
			register := one.Input.(operation).register
			parts[register] = append(parts[register], one)
		}
		return parts
	},
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		one := input.(operation)
		if one.isWrite {
			return true, one.value
		}
		return output == state, state
	},
}

type history struct {
	lock       sync.Mutex
	operations []porcupine.Operation
	reads      int
	writes     int
	unknown    int
}

func (h *history) add(client int, input operation, output any, called, returned int64) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.operations = append(h.operations, porcupine.Operation{ClientId: client, Input: input, Output: output, Call: called, Return: returned})
	switch {
	case returned == never:
		h.unknown++
	case input.isWrite:
		h.writes++
	default:
		h.reads++
	}
}

// A write of unknown outcome may take effect at any time, also never.
const never = int64(1) << 62

// settled is the history with an end for each operation. A write of unknown outcome that was read has taken effect before that
// read returned, and one that nobody read can be left out: each value is written once.
func (h *history) settled() []porcupine.Operation {
	read := map[int]int64{}
	for _, one := range h.operations {
		if value, isRead := one.Output.(int); isRead {
			if returned, known := read[value]; !known || one.Return < returned {
				read[value] = one.Return
			}
		}
	}
	var settled []porcupine.Operation
	for _, one := range h.operations {
		if one.Return == never {
			returned, wasRead := read[one.Input.(operation).value]
			if !wasRead {
				continue
			}
			// Who read it before it was sent is found by the checker.
			one.Return = max(returned, one.Call)
		}
		settled = append(settled, one)
	}
	return settled
}

// runRegisters sets a variable of each of some instances through changing gateways, and reads it with the job of the instance,
// which goes through the log as commands do.
func runRegisters(ctx context.Context, addresses []string, duration time.Duration) error {
	clients, err := connect(addresses)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("register-%x", time.Now().UnixNano())
	if err := deploy(ctx, clients, id); err != nil {
		return err
	}
	instances := make([]int64, registers)
	for register := range instances {
		variables := map[string]any{"x": 0, "jobType": fmt.Sprintf("%s-%d", id, register)}
		for attempt := 0; ; attempt++ {
			created, err := create(ctx, clients[attempt%len(clients)], id, variables)
			if err == nil {
				instances[register] = created.GetProcessInstanceKey()
				break
			}
			// An instance too many would have a job of the same type.
			variables["jobType"] = fmt.Sprintf("%s-%d-%d", id, register, attempt)
			if attempt == 100 {
				return fmt.Errorf("no instance can be created: %w", err)
			}
			time.Sleep(pause)
		}
		jobTypes[register] = variables["jobType"].(string)
	}
	limited, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	began := time.Now()
	done := &history{}
	everyone(registers*users, func(user int) {
		for step := 1; limited.Err() == nil; step++ {
			register := user % registers
			client := clients[rand.IntN(len(clients))]
			if rand.IntN(2) == 0 {
				write(done, client, user, register, instances[register], step*registers*users+user, began)
			} else {
				read(done, client, user, register, began)
			}
			time.Sleep(rest)
		}
	})
	fmt.Printf("registers: %d reads and %d writes, and %d writes of unknown outcome\n", done.reads, done.writes, done.unknown)
	if done.reads < registers || done.writes < registers {
		return fmt.Errorf("that is too little to say anything")
	}
	switch result := porcupine.CheckOperationsTimeout(model, done.settled(), checkLimit); result {
	case porcupine.Ok:
		fmt.Println("registers: the history is linearizable")
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("the checker does not know within %v whether the history is linearizable", checkLimit)
	default:
		return fmt.Errorf("the history is not linearizable: a variable was read that no order of the writes explains")
	}
}

var jobTypes [registers]string

func write(done *history, client zbc.Client, user, register int, instance int64, value int, began time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
	defer cancel()
	called := time.Since(began).Nanoseconds()
	command, err := client.NewSetVariablesCommand().ElementInstanceKey(instance).VariablesFromMap(map[string]any{"x": value})
	if err != nil {
		fail(err.Error())
	}
	_, err = command.Send(ctx)
	returned := time.Since(began).Nanoseconds()
	if err != nil {
		if status.Code(err) == codes.ResourceExhausted {
			return
		}
		returned = never
		time.Sleep(pause)
	}
	done.add(user, operation{register: register, isWrite: true, value: value}, nil, called, returned)
}

func read(done *history, client zbc.Client, user, register int, began time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
	defer cancel()
	called := time.Since(began).Nanoseconds()
	jobs, err := client.NewActivateJobsCommand().JobType(jobTypes[register]).MaxJobsToActivate(1).Timeout(readLock).Send(ctx)
	returned := time.Since(began).Nanoseconds()
	if err != nil || len(jobs) == 0 {
		time.Sleep(pause)
		return
	}
	variables, err := jobs[0].GetVariablesAsMap()
	if err != nil {
		fail(err.Error())
	}
	value, _ := variables["x"].(float64)
	done.add(user, operation{register: register}, int(value), called, returned)
	// When that is lost, the lock ends.
	_, _ = client.NewFailJobCommand().JobKey(jobs[0].GetKey()).Retries(3).Send(ctx)
}
