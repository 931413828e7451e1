package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// contest measures several ways of doing the same durable work on one broker. In each round each side gets a queue of its own, fills it
// and works it off; the order of the sides turns from round to round.
type contest struct {
	config
	server server
	make   func(ctx context.Context, name string) error
	drop   func(ctx context.Context, name string) error
	sides  []*side
}

// side is one way of doing it. The first side is what the others are compared with.
type side struct {
	name string
	// publish puts n jobs in the queue, in batches, from that many goroutines at once.
	publish func(ctx context.Context, queue string, n, callers int) error
	// work receives and acks n jobs, and calls done once the last one is acked: what it does afterwards is not measured.
	work func(ctx context.Context, queue string, n int, done func()) error

	alone, together, worked []lap
}

// lap is what a phase took for each job.
type lap struct {
	rate   float64 // jobs/s
	client float64 // CPU of this process, in microseconds
	server float64 // CPU of the broker, in microseconds, also what it spent on others; zero if unknown
}

// callers is how many goroutines publish at once in the second half of the publishing, as a busy producer does.
const callers = 4

// batch is how many jobs a caller publishes in one call.
const batch = 100

const roundTimeout = 5 * time.Minute

func (t *contest) run(ctx context.Context) error {
	if len(t.filter) > 0 {
		t.sides = slices.DeleteFunc(t.sides, func(s *side) bool {
			return !slices.Contains(t.filter, s.name)
		})
	}
	if len(t.sides) == 0 {
		return fmt.Errorf("no side is called %s", strings.Join(t.filter, " or "))
	}
	t.jobs -= t.jobs % (2 * callers * batch)
	if t.jobs == 0 {
		return fmt.Errorf("-jobs must be at least %d", 2*callers*batch)
	}
	for n := range t.rounds {
		for i := range t.sides {
			s := t.sides[(n+i)%len(t.sides)]
			if err := t.round(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

func (t *contest) round(ctx context.Context, s *side) (err error) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	name := "bench-" + strings.ToLower(rand.Text()[:12])
	if err := t.make(ctx, name); err != nil {
		return err
	}
	defer func() {
		if dropErr := t.drop(ctx, name); err == nil {
			err = dropErr
		}
	}()
	half := t.jobs / 2
	alone, err := t.lap(half, func(func()) error { return s.publish(ctx, name, half, 1) })
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	together, err := t.lap(half, func(func()) error { return s.publish(ctx, name, half, callers) })
	if err != nil {
		return fmt.Errorf("publish from %d goroutines: %w", callers, err)
	}
	worked, err := t.lap(t.jobs, func(done func()) error { return s.work(ctx, name, t.jobs, done) })
	if err != nil {
		return fmt.Errorf("receive and ack: %w", err)
	}
	s.alone, s.together, s.worked = append(s.alone, alone), append(s.together, together), append(s.worked, worked)
	return nil
}

// lap measures phase until it calls done, else until it returns.
func (t *contest) lap(jobs int, phase func(done func()) error) (lap, error) {
	per := float64(jobs)
	var l lap
	client, server, start := cpuTime(), t.server.cpu(), time.Now()
	var once sync.Once
	done := func() {
		once.Do(func() {
			l.rate = per / time.Since(start).Seconds()
			l.client = micros(cpuTime()-client) / per
			l.server = micros(t.server.cpu()-server) / per
		})
	}
	err := phase(done)
	done()
	return l, err
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// cycle is the rate of publishing by one caller, receiving and acking, one after the other.
func (s *side) cycle() []float64 {
	list := make([]float64, len(s.worked))
	for i := range list {
		list[i] = 1 / (1/s.alone[i].rate + 1/s.worked[i].rate)
	}
	return list
}

// cycleCPU is the client's CPU for such a cycle, with the broker's or without.
func (s *side) cycleCPU(broker bool) []float64 {
	list := make([]float64, len(s.worked))
	for i := range list {
		list[i] = s.alone[i].client + s.worked[i].client
		if broker {
			list[i] += s.alone[i].server + s.worked[i].server
		}
	}
	return list
}
