package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/entities"
	"github.com/camunda/zeebe/clients/go/v8/pkg/worker"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A line each:
//
//	process ID
//	+ TAG            an instance with this tag is about to be created, synced before the request is sent
//	= TAG KEY        its creation was acknowledged
//	- TAG            it was refused, so certainly not done
//	) JOB KEY        the completion of a job of the instance with this key was acknowledged
type ledger struct {
	lock sync.Mutex
	file *os.File
}

func (l *ledger) write(sync bool, format string, parts ...any) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	if _, err := fmt.Fprintf(l.file, format+"\n", parts...); err != nil {
		return err
	}
	if sync {
		return l.file.Sync()
	}
	return nil
}

func runLedger(ctx context.Context, addresses []string, path string, rate int) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	written := &ledger{file: file}
	clients, err := connect(addresses)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("foreign-%x", time.Now().UnixNano())
	if err := written.write(true, "process %s", id); err != nil {
		return err
	}
	if err := deploy(ctx, clients, id); err != nil {
		return err
	}
	var workers []worker.JobWorker
	for number, client := range clients {
		handler := completing(written, number%2 == 1)
		opened := client.NewJobWorker().JobType(id).Handler(handler).Timeout(lock).RequestTimeout(requestLimit).
			MaxJobsActive(32).PollInterval(pause).Name("foreign").StreamEnabled(number > 0).Open()
		workers = append(workers, opened)
	}
	var acknowledged, refused, unknown atomic.Int64
	var running sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for tag := 0; ctx.Err() == nil; tag++ {
		<-tick.C
		if err := written.write(true, "+ %d", tag); err != nil {
			return err
		}
		running.Add(1)
		go func() {
			defer running.Done()
			variables := map[string]any{"tag": tag, "jobType": id}
			created, err := create(context.Background(), clients[tag%len(clients)], id, variables)
			switch {
			case err == nil:
				acknowledged.Add(1)
				err = written.write(false, "= %d %d", tag, created.GetProcessInstanceKey())
			case status.Code(err) == codes.ResourceExhausted || status.Code(err) == codes.InvalidArgument ||
				status.Code(err) == codes.NotFound:
				refused.Add(1)
				err = written.write(false, "- %d", tag)
			default:
				unknown.Add(1)
				err = nil
			}
			if err != nil {
				fail(err.Error())
			}
		}()
	}
	running.Wait()
	// What is active still has workers until nothing came for a while.
	time.Sleep(3 * lock)
	for _, opened := range workers {
		opened.Close()
		opened.AwaitClose()
	}
	fmt.Printf("foreign client: %d creations acknowledged, %d refused, %d of unknown outcome\n",
		acknowledged.Load(), refused.Load(), unknown.Load())
	return file.Sync()
}

// completing answers each job, every second one of some workers only after it has failed once.
func completing(written *ledger, fails bool) worker.JobHandler {
	var count atomic.Int64
	return func(client worker.JobClient, job entities.Job) {
		ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
		defer cancel()
		if fails && count.Add(1)%4 == 0 && job.GetRetries() > 1 {
			// Whatever becomes of it, the job comes again.
			_, _ = client.NewFailJobCommand().JobKey(job.GetKey()).Retries(job.GetRetries()).Send(ctx)
			return
		}
		if _, err := client.NewCompleteJobCommand().JobKey(job.GetKey()).Send(ctx); err == nil {
			if err := written.write(false, ") %d %d", job.GetKey(), job.GetProcessInstanceKey()); err != nil {
				fail(err.Error())
			}
		}
	}
}

// promised is what a ledger says.
type promised struct {
	process   string
	intended  map[int64]bool
	created   map[int64]int64
	refused   map[int64]bool
	completed map[int64]int64
}

func readLedger(path string) (*promised, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	read := &promised{intended: map[int64]bool{}, created: map[int64]int64{}, refused: map[int64]bool{}, completed: map[int64]int64{}}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 2 && words[0] == "process" {
			read.process = words[1]
			continue
		}
		numbers := make([]int64, 2)
		for place, word := range words[1:] {
			if numbers[place], err = strconv.ParseInt(word, 10, 64); err != nil {
				return nil, fmt.Errorf("the ledger has the line %q: %w", lines.Text(), err)
			}
		}
		switch words[0] {
		case "+":
			read.intended[numbers[0]] = true
		case "=":
			read.created[numbers[0]] = numbers[1]
		case "-":
			read.refused[numbers[0]] = true
		case ")":
			if instance, twice := read.completed[numbers[0]]; twice {
				return nil, fmt.Errorf("the completion of job %d of instance %d was acknowledged twice", numbers[0], instance)
			}
			read.completed[numbers[0]] = numbers[1]
		}
	}
	return read, lines.Err()
}
