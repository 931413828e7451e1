package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
)

// stage is one run under way.
type stage struct {
	plan plan
	out  io.Writer

	receiver, worker, sender *child
}

// lead is how long after its processes stand a run begins.
const lead = time.Second

// maxWait is how long after the last event the deliveries to healthy endpoints may take.
const maxWait = 15 * time.Second

// set starts the processes.
func (s *stage) set(ctx context.Context) (err error) {
	var at listening
	if s.receiver, err = start(ctx, "receiver", s.plan, &at); err != nil {
		return err
	}
	s.plan.Port = at.Port
	var ready struct{}
	if s.worker, err = start(ctx, "worker", s.plan, &ready); err != nil {
		return err
	}
	s.plan.Start = time.Now().Add(lead)
	s.sender, err = start(ctx, "sender", s.plan, &sending{})
	return err
}

// follow shows how it goes until everything is sent and the healthy endpoints have it, or patience is over.
func (s *stage) follow(ctx context.Context) error {
	expected := 0
	for n := range s.plan.events() {
		if s.plan.class(s.plan.endpoint(n)) == healthy {
			expected++
		}
	}
	what := "without"
	if s.plan.Sick {
		what = "with"
	}
	fmt.Fprintf(s.out, "%s the sick endpoints:\n", what)
	limit := s.plan.Start.Add(s.plan.For + maxWait)
	every := max(s.plan.For/12, time.Second)
	for shown := time.Now(); ; {
		if !pause.For(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
		var got progress
		var sent sending
		if err := s.receiver.ask(&got); err != nil {
			return err
		}
		if err := s.sender.ask(&sent); err != nil {
			return err
		}
		over := sent.Done && (got.Healthy == expected || time.Now().After(limit))
		if over || time.Since(shown) >= every {
			shown = time.Now()
			fmt.Fprintf(s.out, "%6.1fs  %6d sent  %6d delivered, %d of them to healthy endpoints\n",
				time.Since(s.plan.Start).Seconds(), sent.Sent, got.All, got.Healthy)
		}
		if over {
			return nil
		}
	}
}

// end stops the processes, reads their reports and accounts for every event.
func (s *stage) end(ctx context.Context) (o outcome, err error) {
	o.plan, o.ended = s.plan, time.Now()
	if err := s.sender.finish(&o.sending); err != nil {
		return o, err
	}
	if err := s.worker.finish(&o.work); err != nil {
		return o, err
	}
	o.cpu = s.worker.cpu()
	if err := s.receiver.finish(&o.arrivals); err != nil {
		return o, err
	}
	o.latency = latencies(s.plan, o.arrivals.First, o.ended)
	o.account, err = accountFor(ctx, s.plan, o.arrivals.First)
	return o, err
}

// clear ends what is left after an error.
func (s *stage) clear() {
	for _, c := range []*child{s.sender, s.worker, s.receiver} {
		_ = c.kill()
	}
}
