// Command cluster works with all gateways of a cluster while its nodes fail, writes down what it was promised, and checks
// that afterwards. It knows nothing of the server but its public interfaces.
//
//	cluster ledger -grpc A,B,C -ledger FILE     creates instances and completes their jobs until SIGTERM
//	cluster audit -rest A,B,C -ledger FILE      compares that with what each node finds
//	cluster register -grpc A,B,C -duration 60s  sets and reads variables, and checks that they are linearizable
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/camunda/zeebe/clients/go/v8/pkg/zbc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	// A request that has no answer by then has an unknown outcome.
	requestLimit = 10 * time.Second
	// A job whose worker is silent for so long comes again.
	lock = 5 * time.Second
	// How often a node is asked again that does not answer.
	pause = 50 * time.Millisecond
)

func main() {
	flags := flag.NewFlagSet("cluster", flag.ExitOnError)
	grpcAddresses := flags.String("grpc", "", "addresses of all gateways, with commas")
	restAddresses := flags.String("rest", "", "the same for REST")
	path := flags.String("ledger", "", "the file of what was intended and acknowledged")
	rate := flags.Int("rate", 20, "instances per second")
	duration := flags.Duration("duration", time.Minute, "how long registers are used")
	settle := flags.Duration("settle", time.Minute, "how long something may be wrong without a change")
	if len(os.Args) < 2 {
		fail("name what to do: ledger, audit or register")
	}
	_ = flags.Parse(os.Args[2:])
	// The library's workers say each time that they cannot connect.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var err error
	switch os.Args[1] {
	case "ledger":
		err = runLedger(ctx, split(*grpcAddresses), *path, *rate)
	case "audit":
		err = audit(split(*restAddresses), *path, *settle)
	case "register":
		err = runRegisters(ctx, split(*grpcAddresses), *duration)
	default:
		err = fmt.Errorf("there is no %q: choose among ledger, audit and register", os.Args[1])
	}
	if err != nil {
		fail(err.Error())
	}
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}

func split(addresses string) []string {
	return strings.Split(addresses, ",")
}

// connect makes a client for each gateway, also for those that are down.
func connect(addresses []string) ([]zbc.Client, error) {
	var clients []zbc.Client
	for _, address := range addresses {
		client, err := zbc.NewClient(&zbc.ClientConfig{
			GatewayAddress:         address,
			UsePlaintextConnection: true,
			DialOpts: []grpc.DialOption{
				// A node that is cut off closes no connection.
				grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second}),
			},
		})
		if err != nil {
			return nil, fmt.Errorf("the client of %s cannot be made: %w", address, err)
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// deploy deploys a process with one task at whichever gateway takes it.
func deploy(ctx context.Context, clients []zbc.Client, id string) error {
	text := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="urn:osmia:clients">
  <bpmn:process id="%[1]s" isExecutable="true">
    <bpmn:startEvent id="start"/>
    <bpmn:sequenceFlow id="to-work" sourceRef="start" targetRef="work"/>
    <bpmn:serviceTask id="work">
      <bpmn:extensionElements><zeebe:taskDefinition type="=jobType"/></bpmn:extensionElements>
    </bpmn:serviceTask>
    <bpmn:sequenceFlow id="to-end" sourceRef="work" targetRef="end"/>
    <bpmn:endEvent id="end"/>
  </bpmn:process>
</bpmn:definitions>`, id)
	var err error
	for attempt := range 100 {
		limited, cancel := context.WithTimeout(ctx, requestLimit)
		_, err = clients[attempt%len(clients)].NewDeployResourceCommand().AddResource([]byte(text), id+".bpmn").Send(limited)
		cancel()
		if err == nil {
			return nil
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("the process cannot be deployed: %w", err)
}

func create(ctx context.Context, client zbc.Client, id string, variables map[string]any) (*pb.CreateProcessInstanceResponse, error) {
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	command, err := client.NewCreateInstanceCommand().BPMNProcessId(id).LatestVersion().VariablesFromMap(variables)
	if err != nil {
		return nil, err
	}
	return command.Send(limited)
}

// everyone runs something for each number below count, and waits for all.
func everyone(count int, run func(int)) {
	var group sync.WaitGroup
	for number := range count {
		group.Add(1)
		go func() {
			defer group.Done()
			run(number)
		}()
	}
	group.Wait()
}
