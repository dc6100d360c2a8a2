package clients

import (
	"fmt"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/entities"
	"google.golang.org/grpc/codes"
)

const kept = 5 * time.Minute

// publish sends a message of the model; without an id when it is empty.
func publish(t *testing.T, m model, message, key string, variables Variables, timeToLive time.Duration, id string) error {
	t.Helper()
	command, err := client.NewPublishMessageCommand().MessageName(m.jobType(message)).CorrelationKey(key).
		TimeToLive(timeToLive).MessageId(id).VariablesFromMap(variables)
	must(t, err)
	published, err := command.Send(within(t))
	if err == nil && published.GetKey() <= 0 {
		t.Fatalf("the message has no key: %v", published)
	}
	return err
}

func TestMessageReachesTheInstanceThatWaitsForIt(t *testing.T) {
	t.Parallel()
	m := deploy(t, "messages")
	instance := m.create(t, Variables{"orderId": "bee"})
	m.create(t, Variables{"orderId": "wasp"})

	must(t, publish(t, m, "paid", "bee", Variables{"amount": 12}, kept, ""))

	job := pollOne(t, m.jobType("ship"))
	equal(t, "instance", job.GetProcessInstanceKey(), instance)
	equal(t, "variables", object(t, job.GetVariables()), Variables{"orderId": "bee", "amount": 12.0})
}

func TestMessagesAreKeptInTheOrderOfTheirPublication(t *testing.T) {
	t.Parallel()
	m := deploy(t, "messages")
	for n := 1; n <= 2; n++ {
		must(t, publish(t, m, "paid", "bee", Variables{"n": n}, kept, ""))
	}

	for n := 1; n <= 2; n++ {
		instance := m.create(t, Variables{"orderId": "bee"})
		job := pollOne(t, m.jobType("ship"))
		equal(t, "instance", job.GetProcessInstanceKey(), instance)
		equal(t, "variables", object(t, job.GetVariables()), Variables{"orderId": "bee", "n": float64(n)})
	}
}

func TestMessageWithoutTimeToLiveIsNotKept(t *testing.T) {
	t.Parallel()
	m := deploy(t, "messages")
	must(t, publish(t, m, "paid", "bee", Variables{}, 0, ""))
	m.create(t, Variables{"orderId": "bee"})

	assertNone(t, m.jobType("ship"))
}

func TestMessageIDIsTakenOnceForANameAndKey(t *testing.T) {
	t.Parallel()
	m := deploy(t, "messages")
	must(t, publish(t, m, "paid", "bee", Variables{}, kept, "once"))

	err := publish(t, m, "paid", "bee", Variables{}, kept, "once")

	contains(t, refused(t, codes.AlreadyExists, err), "once")
	must(t, publish(t, m, "paid", "wasp", Variables{}, kept, "once"))
	must(t, publish(t, m, "note", "bee", Variables{}, kept, "once"))
}

func TestMessageKeysOfAllPartitionsFindTheirInstances(t *testing.T) {
	t.Parallel()
	const orders = 20
	m := deploy(t, "messages")
	waiting := map[int64]string{}
	for n := range orders {
		order := fmt.Sprintf("order-%d", n)
		waiting[m.create(t, Variables{"orderId": order})] = order
	}

	for _, order := range waiting {
		must(t, publish(t, m, "paid", order, Variables{"paid": order}, kept, ""))
	}

	for _, job := range poll(t, m.jobType("ship"), orders) {
		order := waiting[job.GetProcessInstanceKey()]
		equal(t, "variables", object(t, job.GetVariables()), Variables{"orderId": order, "paid": order})
		delete(waiting, job.GetProcessInstanceKey())
	}
	equal(t, "instances without their message", len(waiting), 0)
}

func TestMessagesForAnEventThatDoesNotInterrupt(t *testing.T) {
	t.Parallel()
	m := deploy(t, "messages")
	must(t, publish(t, m, "paid", "bee", Variables{}, kept, ""))
	instance := m.create(t, Variables{"orderId": "bee"})
	ship := pollOne(t, m.jobType("ship"))

	for _, text := range []string{"hurry", "please"} {
		must(t, publish(t, m, "note", "bee", Variables{"text": text}, kept, ""))
	}

	for _, read := range poll(t, m.jobType("read"), 2) {
		equal(t, "instance", read.GetProcessInstanceKey(), instance)
	}
	must(t, complete(t, ship.GetKey(), Variables{}))
}

func TestMessagesWithTheSameKeyStartOneInstanceAfterTheOther(t *testing.T) {
	t.Parallel()
	m := deploy(t, "message-start")
	for n := 1; n <= 2; n++ {
		must(t, publish(t, m, "ordered", "bee", Variables{"n": n}, kept, ""))
	}
	number := func(job entities.Job) any { return object(t, job.GetVariables())["n"] }

	first := pollOne(t, m.jobType("work"))
	equal(t, "first", number(first), 1.0)
	assertNone(t, m.jobType("work"))
	must(t, complete(t, first.GetKey(), Variables{}))

	equal(t, "second", number(pollOne(t, m.jobType("work"))), 2.0)
}

func TestMessagesWithoutAKeyStartAnInstanceEach(t *testing.T) {
	t.Parallel()
	m := deploy(t, "message-start")
	for n := 1; n <= 2; n++ {
		must(t, publish(t, m, "ordered", "", Variables{"n": n}, 0, ""))
	}

	jobs := poll(t, m.jobType("work"), 2)

	if jobs[0].GetProcessInstanceKey() == jobs[1].GetProcessInstanceKey() {
		t.Fatalf("both messages are in one instance: %v", jobs)
	}
}
