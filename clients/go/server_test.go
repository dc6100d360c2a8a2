// Package clients holds the end-to-end suite with the official Go client.
package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/entities"
	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/camunda/zeebe/clients/go/v8/pkg/zbc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	lock       = time.Minute
	patience   = 120 * time.Second
	onePoll    = 60 * time.Second
	aMoment    = 1000 * time.Millisecond
	unknownKey = int64(1)<<51 + 4_000_000_000
)

// Variables are the JSON object of an instance or a job.
type Variables = map[string]any

var (
	client zbc.Client
	run    = fmt.Sprintf("%x", time.Now().UnixMilli())
	ids    atomic.Int64
)

func TestMain(m *testing.M) {
	if os.Getenv("OSMIA_GRPC_ADDRESS") == "" {
		fmt.Fprintln(os.Stderr, "OSMIA_GRPC_ADDRESS is not set: name the gRPC address of the server, for example 127.0.0.1:26500.")
		os.Exit(2)
	}
	var err error
	if client, err = connect(); err != nil {
		fmt.Fprintln(os.Stderr, "The client cannot be made:", err)
		os.Exit(2)
	}
	code := m.Run()
	_ = client.Close()
	os.Exit(code)
}

// connect makes a client of its own; the caller closes it.
func connect() (zbc.Client, error) {
	return zbc.NewClient(&zbc.ClientConfig{
		GatewayAddress:         os.Getenv("OSMIA_GRPC_ADDRESS"),
		UsePlaintextConnection: true,
	})
}

// needsFullGateway skips a test on an engine behind a reduced gateway: without job streams, long polls and status details.
func needsFullGateway(t *testing.T) {
	t.Helper()
	if os.Getenv("OSMIA_NO_STREAM") != "" {
		t.Skip("OSMIA_NO_STREAM is set")
	}
}

// within limits a call, so that no test waits for ever.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// model is a shared model deployed under a process id of its own.
type model struct {
	id      string
	process *pb.ProcessMetadata
}

// uniqueID is a process id that no other test and no earlier run has used.
func uniqueID(name string) string {
	return fmt.Sprintf("%s-go-%s-%d", name, run, ids.Add(1))
}

// modelText is the shared model with PROCESS_ID replaced, so that job types are unique too.
func modelText(t *testing.T, name, id string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "shared", name+".bpmn"))
	must(t, err)
	return []byte(strings.ReplaceAll(string(text), "PROCESS_ID", id))
}

func deployText(t *testing.T, file string, text []byte) (*pb.DeployResourceResponse, error) {
	t.Helper()
	return client.NewDeployResourceCommand().AddResource(text, file).Send(within(t))
}

func deployAs(t *testing.T, name, id string) model {
	t.Helper()
	deployment, err := deployText(t, id+".bpmn", modelText(t, name, id))
	must(t, err)
	return model{id: id, process: deployment.GetDeployments()[0].GetProcess()}
}

// deploy deploys the shared model of this name under a unique process id.
func deploy(t *testing.T, name string) model {
	t.Helper()
	return deployAs(t, name, uniqueID(name))
}

func (m model) jobType(elementID string) string {
	return m.id + "-" + elementID
}

func (m model) create(t *testing.T, variables Variables) int64 {
	t.Helper()
	if variables == nil {
		variables = Variables{}
	}
	command, err := client.NewCreateInstanceCommand().BPMNProcessId(m.id).LatestVersion().VariablesFromMap(variables)
	must(t, err)
	created, err := command.Send(within(t))
	must(t, err)
	return created.GetProcessInstanceKey()
}

// createWithResult answers when the instance has completed; the test does the work meanwhile.
func (m model) createWithResult(t *testing.T, variables Variables, fetch ...string) func() Variables {
	t.Helper()
	if variables == nil {
		variables = Variables{}
	}
	command, err := client.NewCreateInstanceCommand().BPMNProcessId(m.id).LatestVersion().VariablesFromMap(variables)
	must(t, err)
	type answer struct {
		result *pb.CreateProcessInstanceWithResultResponse
		err    error
	}
	answers := make(chan answer, 1)
	ctx := within(t)
	go func() {
		result, err := command.WithResult().FetchVariables(fetch...).Send(ctx)
		answers <- answer{result, err}
	}()
	return func() Variables {
		t.Helper()
		answer := <-answers
		must(t, answer.err)
		return object(t, answer.result.GetVariables())
	}
}

// activate is one poll, which may come back empty. This client gives the server 90 % of the patience and ends the call
// itself after all of it, so on a busy machine an empty poll may also end with the client's own deadline.
func activate(t *testing.T, jobType string, count int, lock, patience time.Duration, fetch ...string) ([]entities.Job, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	jobs, err := client.NewActivateJobsCommand().JobType(jobType).MaxJobsToActivate(int32(count)).
		Timeout(lock).WorkerName("suite").FetchVariables(fetch...).Send(ctx)
	if status.Code(err) == codes.DeadlineExceeded && len(jobs) == 0 {
		return nil, nil
	}
	return jobs, err
}

// poll waits for exactly this many jobs of the type; several polls may be needed.
func poll(t *testing.T, jobType string, count int) []entities.Job {
	t.Helper()
	var jobs []entities.Job
	for end := time.Now().Add(patience); len(jobs) < count && time.Now().Before(end); {
		more, err := activate(t, jobType, count-len(jobs), lock, onePoll)
		must(t, err)
		jobs = append(jobs, more...)
	}
	if len(jobs) != count {
		t.Fatalf("%d jobs of type %s were activated instead of %d", len(jobs), jobType, count)
	}
	return jobs
}

func pollOne(t *testing.T, jobType string) entities.Job {
	t.Helper()
	return poll(t, jobType, 1)[0]
}

// assertNone asserts that no job of the type is available now or in the next moment.
func assertNone(t *testing.T, jobType string) {
	t.Helper()
	jobs, err := activate(t, jobType, 1, lock, aMoment)
	must(t, err)
	if len(jobs) != 0 {
		t.Fatalf("a job of type %s is available: %v", jobType, jobs)
	}
}

func complete(t *testing.T, key int64, variables Variables) error {
	t.Helper()
	command, err := client.NewCompleteJobCommand().JobKey(key).VariablesFromMap(variables)
	must(t, err)
	_, err = command.Send(within(t))
	return err
}

func fail(t *testing.T, key int64, retries int32, message string, backoff time.Duration) error {
	t.Helper()
	_, err := client.NewFailJobCommand().JobKey(key).Retries(retries).RetryBackoff(backoff).ErrorMessage(message).Send(within(t))
	return err
}

func throwError(t *testing.T, key int64, code string) error {
	t.Helper()
	_, err := client.NewThrowErrorCommand().JobKey(key).ErrorCode(code).ErrorMessage("no bees left").Send(within(t))
	return err
}

func updateRetries(t *testing.T, key int64, retries int32) error {
	t.Helper()
	_, err := client.NewUpdateJobRetriesCommand().JobKey(key).Retries(retries).Send(within(t))
	return err
}

func updateTimeout(t *testing.T, key int64, timeout time.Duration) error {
	t.Helper()
	_, err := client.NewUpdateJobTimeoutCommand().JobKey(key).Timeout(timeout.Milliseconds()).Send(within(t))
	return err
}

func cancelInstance(t *testing.T, key int64) error {
	t.Helper()
	_, err := client.NewCancelInstanceCommand().ProcessInstanceKey(key).Send(within(t))
	return err
}

func setVariables(t *testing.T, key int64, variables string, local bool) error {
	t.Helper()
	command, err := client.NewSetVariablesCommand().ElementInstanceKey(key).VariablesFromString(variables)
	must(t, err)
	_, err = command.Local(local).Send(within(t))
	return err
}

func resolve(t *testing.T, key int64) error {
	t.Helper()
	_, err := client.NewResolveIncidentCommand().IncidentKey(key).Send(within(t))
	return err
}

// refused asserts that the call was refused with this code; answers the message.
func refused(t *testing.T, code codes.Code, err error) string {
	t.Helper()
	if err == nil {
		t.Fatalf("the call was not refused with %s", code)
	}
	if status.Code(err) != code {
		t.Fatalf("the call was refused with another code than %s: %v", code, err)
	}
	return status.Convert(err).Message()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func contains(t *testing.T, message, part string) {
	t.Helper()
	if !strings.Contains(message, part) {
		t.Fatalf("the message does not name %q: %s", part, message)
	}
}

// object reads JSON text; numbers are float64, as usual in Go.
func object(t *testing.T, text string) Variables {
	t.Helper()
	var read Variables
	must(t, json.Unmarshal([]byte(text), &read))
	return read
}
