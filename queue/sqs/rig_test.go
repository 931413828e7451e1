package sqs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

// rig is a broker on a server in the process, with faults between them, in virtual time.
type rig struct {
	testing.TB
	server *sqstest.Server
	faults *sqstest.Faults
	cfg    sqs.Config
	b      *sqs.Broker

	mu    sync.Mutex
	calls []sqstest.Call
	plan  func(sqstest.Call) sqstest.Fault
}

// inBubble runs f with a rig that has the queues "jobs" and "jobs.fifo".
func inBubble(t *testing.T, cfg sqs.Config, f func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{TB: t, server: sqstest.NewServer()}
		r.faults = &sqstest.Faults{Next: r.server, Plan: r.decide}
		r.cfg = fakeConfig(r.faults, cfg)
		r.b = r.open()
		for _, name := range []string{"jobs", "jobs.fifo"} {
			if err := r.b.CreateQueue(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		f(r)
	})
}

func (r *rig) open() *sqs.Broker {
	r.Helper()
	b := open(r, r.cfg)
	r.Cleanup(func() {
		if err := b.Close(); err != nil {
			r.Errorf("close: %v", err)
		}
	})
	return b
}

func (r *rig) decide(c sqstest.Call) sqstest.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	if r.plan == nil {
		return sqstest.Fault{}
	}
	return r.plan(c)
}

// from sets the plan for the calls from here on.
func (r *rig) from(plan func(sqstest.Call) sqstest.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plan, r.calls = plan, nil
}

// seen returns the calls of that action since the plan was set.
func (r *rig) seen(action string) []sqstest.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []sqstest.Call
	for _, c := range r.calls {
		if c.Action == action {
			list = append(list, c)
		}
	}
	return list
}

// on is a plan that puts fault on the first n calls of an action.
func on(action string, n int, fault sqstest.Fault) func(sqstest.Call) sqstest.Fault {
	return func(c sqstest.Call) sqstest.Fault {
		if c.Action == action && n > 0 {
			n--
			return fault
		}
		return sqstest.Fault{}
	}
}

func (r *rig) publish(name string, pubs ...queue.Publication) {
	r.Helper()
	for i, res := range r.b.Publish(r.Context(), name, pubs) {
		if res.Err != nil {
			r.Fatalf("publish message %d: %v", i, res.Err)
		}
	}
}

// publishAfter publishes one message once d has passed, and closes what it returns when that is confirmed.
func (r *rig) publishAfter(d time.Duration, name string) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() {
		defer close(done)
		r.publish(name, texts(1)...)
	})
	return done
}

func texts(n int) []queue.Publication {
	pubs := make([]queue.Publication, n)
	for i := range pubs {
		pubs[i] = queue.Publication{Message: queue.Message{Body: fmt.Appendf(nil, "message %d", i)}, Group: "one"}
	}
	return pubs
}

func (r *rig) subscribe(name string, lease time.Duration, slots int) queue.Subscription {
	r.Helper()
	return r.subscribeTo(r.b, name, lease, slots)
}

func (r *rig) subscribeTo(b *sqs.Broker, name string, lease time.Duration, slots int) queue.Subscription {
	r.Helper()
	sub, err := b.Subscribe(r.Context(), name, queue.SubscribeConfig{Lease: lease, Slots: slots})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := sub.Close(); err != nil {
			r.Error(err)
		}
	})
	return sub
}

// receive waits for n messages, for at most limit.
func (r *rig) receive(sub queue.Subscription, n int, limit time.Duration) []*queue.Lease {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	var got []*queue.Lease
	for len(got) < n {
		leases, err := sub.Receive(ctx, n-len(got))
		if err != nil {
			r.Fatalf("received %d of %d messages: %v", len(got), n, err)
		}
		got = append(got, leases...)
	}
	return got
}

func (r *rig) one(sub queue.Subscription, limit time.Duration) *queue.Lease {
	r.Helper()
	return r.receive(sub, 1, limit)[0]
}

// ackAll acks at the same time, as many workers do.
func (r *rig) ackAll(leases []*queue.Lease) {
	r.Helper()
	var wg sync.WaitGroup
	for _, l := range leases {
		wg.Go(func() {
			if err := l.Ack(r.Context()); err != nil {
				r.Errorf("ack: %v", err)
			}
		})
	}
	wg.Wait()
}

// raw is a client without anything of ours and without faults.
func (r *rig) raw() *awssqs.Client {
	return rawClient("https://sqs.us-east-1.amazonaws.com", http.RoundTripper(r.server))
}

// set changes attributes of a queue by its name in SQS.
func (r *rig) set(full string, attributes map[string]string) {
	r.Helper()
	if len(attributes) == 0 {
		return
	}
	_, err := r.raw().SetQueueAttributes(r.Context(), &awssqs.SetQueueAttributesInput{QueueUrl: aws.String(full), Attributes: attributes})
	if err != nil {
		r.Fatal(err)
	}
}

func decoded[T any](t testing.TB, c sqstest.Call) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(c.Body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func gauge(t testing.TB, b *sqs.Broker, name string) float64 {
	t.Helper()
	sum, found := 0.0, false
	for _, g := range b.Gauges() {
		if g.Name == name {
			sum, found = sum+g.Value, true
		}
	}
	if !found {
		t.Errorf("no gauge %q", name)
	}
	return sum
}
