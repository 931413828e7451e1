package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/worker"
)

// sending is what the sender has to tell.
type sending struct {
	// Sent counts confirmed events. All of them are sent once Done is set.
	Sent int
	Done bool
	// Late is the most that an event was handed to the broker after it was due, and Confirm the longest that a confirmation took.
	Late, Confirm time.Duration
	// Retried counts events that had to be enqueued again.
	Retried int
}

// sender enqueues each event when it is due, come what may: it never waits for the system that it loads.
type sender struct {
	plan   plan
	broker queue.Broker
	client *worker.Client
	stop   context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	report sending
	errs   []error
}

func startSender(ctx context.Context, p plan) (part, any, error) {
	broker, err := openBroker(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	client, err := worker.NewClient(worker.ClientConfig{Broker: broker, DefaultQueue: queueName})
	if err != nil {
		return nil, nil, errors.Join(err, broker.Close())
	}
	s := &sender{plan: p, broker: broker, client: client, done: make(chan struct{})}
	ctx, s.stop = context.WithCancel(ctx)
	go s.run(ctx)
	return s, sending{}, nil
}

// run hands over what is due and sleeps until more is. Each batch has a goroutine of its own, however many there are.
func (s *sender) run(ctx context.Context) {
	defer close(s.done)
	var batches sync.WaitGroup
	defer batches.Wait()
	for n := 0; n < s.plan.events(); {
		if !pause.For(ctx, time.Until(s.plan.due(n))) {
			return
		}
		var due []int
		for now := time.Now(); n < s.plan.events() && !s.plan.due(n).After(now); n++ {
			if s.plan.sent(n) {
				due = append(due, n)
			}
		}
		if len(due) > 0 {
			s.note(func(r *sending) { r.Late = max(r.Late, time.Since(s.plan.due(due[0]))) })
			batches.Go(func() { s.enqueue(ctx, due) })
		}
	}
}

// enqueue repeats what was not confirmed: under the same key that is harmless.
func (s *sender) enqueue(ctx context.Context, events []int) {
	began := time.Now()
	for try := 0; len(events) > 0; try++ {
		jobs := make([]worker.NewJob, len(events))
		for i, n := range events {
			jobs[i] = webhook.NewDelivery(endpointID(s.plan.endpoint(n)), eventID(n), s.plan.body(n), nil)
			jobs[i].ID = eventID(n)
		}
		var failed []int
		var err error
		for i, r := range s.client.EnqueueMany(ctx, jobs) {
			if r.Err != nil {
				err = r.Err
				failed = append(failed, events[i])
			}
		}
		s.note(func(r *sending) {
			r.Sent += len(events) - len(failed)
			r.Retried += len(failed)
			r.Confirm = max(r.Confirm, time.Since(began))
		})
		events = failed
		if err != nil && (time.Since(began) > time.Minute || !pause.For(ctx, 100*time.Millisecond)) {
			s.mu.Lock()
			s.errs = append(s.errs, fmt.Errorf("%d events could not be enqueued: %w", len(failed), err))
			s.mu.Unlock()
			return
		}
	}
}

func (s *sender) note(change func(*sending)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.report)
}

func (s *sender) status() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	select {
	case <-s.done:
		r.Done = true
	default:
	}
	return r
}

func (s *sender) end() (any, error) {
	s.stop()
	<-s.done
	return s.status(), errors.Join(errors.Join(s.errs...), s.broker.Close())
}
