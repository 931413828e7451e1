package faultlab

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/caisson-go/caisson/worker"
)

// KillPlan is a round of worker processes on one queue, killed again and again.
type KillPlan struct {
	// Broker names one of the openers given to [Main], Where is what it is told. Open must be that opener.
	Broker, Where string
	Open          Opener
	// Queue of the jobs. It is made if it is missing.
	Queue string
	// Exact says that the broker's depth is complete and never lags: an empty queue is then the end, even if jobs are lost.
	Exact bool
	// Jobs that are enqueued, and how often a process is killed.
	Jobs, Kills int
	// Waves has the jobs enqueued in parts, one before each kill or restart, so that there is work at each. Else all are enqueued at first, and
	// a process is killed each second.
	Waves bool
	// Restart restarts the broker; it is called Restarts times, evenly among the kills. It returns when the broker is back.
	Restart  func()
	Restarts int
	// Workers is how many processes work at once. Zero means two.
	Workers int
	// Concurrency of each process. Zero means 20.
	Concurrency int
	// Copies is how often each job is enqueued. Zero means once.
	Copies int
	// Transactional makes every second job one whose handler writes in its claim's transaction. The stack must be one of [OnPostgres].
	Transactional bool
	// Every is the least time from one wave to the next, in which a process is killed in the middle of a handler if it comes to one. Zero means
	// that processes are killed at random.
	Every time.Duration
	// Outages take the claim store away, one after the other, each for a kill or more. There must be three times as many kills, and one.
	Outages []Break
	// Lease of the workers. Zero means 2 s.
	Lease time.Duration
	// Mutation is how the workers are broken; empty means not at all.
	Mutation string
	// Limit is how long the jobs may take after the last kill. Zero means 5 min.
	Limit time.Duration
}

// Break takes something away and gives it back.
type Break struct{ Break, Mend func() }

func (p KillPlan) lease() time.Duration { return cmp.Or(p.Lease, 2*time.Second) }

// long is how long an attempt takes where processes are killed: long enough that kills hit.
func long(i int) time.Duration { return time.Duration(20+i%100) * time.Millisecond }

// KillRound enqueues jobs, works them with two processes that are killed and started again, then lets them finish, and returns the ledger.
func KillRound(t testing.TB, plan KillPlan) *Ledger {
	t.Helper()
	dir := t.TempDir()
	stack, err := plan.Open(t.Context(), dir, plan.Where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := stack.Broker.CreateQueue(t.Context(), plan.Queue); err != nil {
		t.Fatal(err)
	}
	r := &round{plan: plan, dir: dir, stack: stack}
	r.ledger = &Ledger{Stack: stack, Lease: plan.lease()}
	if r.feeder, err = newFeeder(stack.Broker, plan.Queue); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	r.killAll(t)
	killed := time.Now()
	r.wait(t)
	t.Logf("killed for %.1fs, all ended %.1fs later", killed.Sub(start).Seconds(), time.Since(killed).Seconds())
	for _, c := range r.workers {
		c.Stop(t)
	}
	if r.ledger.Runs, err = readBooks(dir); err != nil {
		t.Fatal(err)
	}
	return r.ledger
}

// round is a KillPlan at work.
type round struct {
	plan    KillPlan
	dir     string
	stack   *Stack
	feeder  *feeder
	workers []*Child
	ledger  *Ledger
}

func (r *round) killAll(t testing.TB) {
	t.Helper()
	plan := r.plan
	batch := jobs("job", plan.Jobs, func(i int) time.Duration {
		if plan.Waves && plan.Every == 0 {
			return 2 * long(i) // so that a wave lasts until the kill
		}
		return long(i)
	})
	if plan.Transactional {
		transactional(batch)
	}
	for _, id := range ids(batch) {
		if keyOf(id).Scope == TxKindName {
			r.ledger.Transactional = append(r.ledger.Transactional, id)
		} else {
			r.ledger.Jobs = append(r.ledger.Jobs, id)
		}
	}
	waves := slices.Collect(slices.Chunk(batch, plan.Jobs))
	steps := plan.Kills + plan.Restarts
	if plan.Waves {
		waves = slices.Collect(slices.Chunk(batch, 1+plan.Jobs/(steps+1)))
	}
	feed := func() {
		if len(waves) > 0 {
			for range max(plan.Copies, 1) {
				r.feed(t, waves[0])
			}
			waves = waves[1:]
		}
	}
	feed()
	for range cmp.Or(plan.Workers, 2) {
		r.workers = append(r.workers, startChild(t, plan, r.dir))
	}
	for step, restarts := 1, 0; step <= steps; step++ {
		feed()
		pause := time.Second
		next := time.Now().Add(plan.Every)
		if plan.Waves {
			pause = 50*time.Millisecond + rand.N(400*time.Millisecond)
		}
		time.Sleep(pause) // a kill may come at any time
		if restarts < plan.Restarts && step*(plan.Restarts+1) >= (restarts+1)*(steps+1) {
			restarts++
			plan.Restart()
			continue
		}
		victim := rand.IntN(len(r.workers))
		if plan.Every > 0 {
			victim = step % len(r.workers) // in turn, so that each has come up before it goes
			awaitWork(r.workers[victim], r.dir, next)
		}
		r.ledger.Kills = append(r.ledger.Kills, r.workers[victim].Kill(t))
		r.workers[victim] = startChild(t, plan, r.dir)
		r.outage(step, steps)
		time.Sleep(time.Until(next))
	}
	for len(waves) > 0 {
		feed()
	}
}

// outage begins and ends outages, evenly among the steps and with three quarters of the time between them, in which work goes on.
func (r *round) outage(step, steps int) {
	n := len(r.plan.Outages)
	for i, o := range r.plan.Outages {
		from := 1 + i*(steps-1)/n
		switch step {
		case from:
			r.ledger.Outages = append(r.ledger.Outages, Outage{From: time.Now()})
			o.Break()
		case from + max(steps/(4*n), 1):
			o.Mend()
			r.ledger.Outages[i].To = time.Now()
		}
	}
}

func (r *round) feed(t testing.TB, batch []worker.NewJob) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.feeder.feed(ctx, batch); err != nil {
		t.Fatal(err)
	}
}

// wait waits until all jobs have ended and nothing can come back any more.
func (r *round) wait(t testing.TB) {
	t.Helper()
	limit := r.plan.Limit
	if limit == 0 {
		limit = 5 * time.Minute // what a killed RabbitMQ has not moved from a delay queue it moves after three
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	p := pending{stack: r.stack, ids: slices.Concat(r.ledger.Jobs, r.ledger.Transactional)}
	for calm := time.Now(); ; {
		empty := idle(ctx, r.stack.Broker, r.plan.Queue)
		if r.plan.Exact && empty {
			return
		}
		if r.plan.Exact || !empty {
			calm = time.Now()
		} else if !p.none(ctx) {
			calm = time.Now()
		} else if time.Since(calm) > r.plan.lease()+time.Second {
			return // also what was leased by a process that is gone
		}
		select {
		case <-time.After(100 * time.Millisecond): // between looks at what other processes do
		case <-ctx.Done():
			ctx := context.WithoutCancel(ctx)
			d, depthErr := r.stack.Broker.Depth(ctx, r.plan.Queue)
			open, err := p.left(ctx)
			t.Fatalf("%d jobs have not ended after %s: %.10q, %v; the queue: %+v, %v\n%s", len(open), limit, open, err, d, depthErr, r.workers[0].Log())
		}
	}
}
