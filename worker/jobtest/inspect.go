package jobtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/worker"
)

// Attempts returns how often the handler of a job was started, over all deliveries, workers and runs.
func (b *Bench) Attempts(job string) int { return len(b.AttemptTimes(job)) }

// AttemptTimes returns when the handler of a job was started, oldest first.
func (b *Bench) AttemptTimes(job string) []time.Time {
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	return slices.Clone(b.ledger.started[job])
}

// Settlements returns how each delivery of a job ended, oldest first. An empty id stands for messages that could not be decoded.
func (b *Bench) Settlements(job string) []worker.Settled {
	var list []worker.Settled
	for _, s := range b.ledger.settledFrom(0) {
		if idOf(&s) == job {
			list = append(list, s)
		}
	}
	return list
}

func (l *ledger) settledFrom(n int) []worker.Settled {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]worker.Settled(nil), l.settled[n:]...)
}

func (l *ledger) settledCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.settled)
}

// Dead returns the dead letters with their messages, oldest first.
func (b *Bench) Dead() []dlq.Entry {
	b.t.Helper()
	return b.entries(dlq.StateDead)
}

// DeadOne returns the only dead letter, and fails the test if there is none or more than one.
func (b *Bench) DeadOne() dlq.Entry {
	b.t.Helper()
	list := b.Dead()
	if len(list) != 1 {
		var where []string
		for _, e := range b.ledger.allEnqueued() {
			where = append(where, "\n  "+b.Where(e.ID))
		}
		b.t.Fatalf("jobtest: expected exactly one dead letter, found %d; the jobs are:%s", len(list), where)
	}
	return list[0]
}

// Held returns the held jobs with their messages, oldest first.
func (b *Bench) Held() []dlq.Entry {
	b.t.Helper()
	return b.entries(dlq.StateHeld)
}

func (b *Bench) entries(state dlq.State) []dlq.Entry {
	b.t.Helper()
	ctx := context.Background()
	var all []dlq.Entry
	for after := ""; ; {
		page, next, err := b.dead.List(ctx, dlq.Filter{States: []dlq.State{state}}, after, 1000)
		b.must("list dead letters", err)
		for _, e := range page {
			whole, err := b.dead.Get(ctx, e.ID)
			b.must("get dead letter "+e.ID, err)
			all = append(all, whole)
		}
		if after = next; next == "" {
			slices.Reverse(all)
			return all
		}
	}
}

// Where tells in words where a job is now: in which queue and why, with which worker, dead, held or done. For failure messages.
func (b *Bench) Where(job string) string {
	for _, m := range append(b.ledger.running(), b.ledger.waiting()...) {
		if m.job == job {
			return b.describe(m)
		}
	}
	settled := b.Settlements(job)
	if len(settled) == 0 {
		return fmt.Sprintf("job %s: unknown: it was never enqueued through this bench", job)
	}
	last := settled[len(settled)-1]
	if e, err := b.dead.Get(context.Background(), dlq.EntryID(job, last.Job.Run)); err == nil {
		return fmt.Sprintf("job %s: %s: %s after %d attempts: %s", job, e.State, e.Cause, e.AttemptCount, e.Error)
	} else if !errors.Is(err, dlq.ErrNotFound) {
		return fmt.Sprintf("job %s: not in a queue, and the dead-letter store says: %v", job, err)
	}
	return fmt.Sprintf("job %s: gone from its queue after: %s", job, ended(&last))
}

// describe tells where a message is.
func (b *Bench) describe(m message) string {
	name := "job " + m.job
	if m.job == "" {
		name = "message " + m.id + " (undecodable)"
	}
	state := ""
	switch wait := time.Until(m.due); {
	case m.leased():
		state = fmt.Sprintf("with %s for %s", m.process.name, time.Since(m.since))
	case wait > 0:
		state = fmt.Sprintf("in queue %q, due in %s", m.queue, wait)
	default:
		state = fmt.Sprintf("in queue %q, ready", m.queue)
	}
	before := b.Settlements(m.job)
	if m.job == "" || len(before) == 0 {
		return fmt.Sprintf("%s: %s, handler started %d times", name, state, b.Attempts(m.job))
	}
	return fmt.Sprintf("%s: %s, handler started %d times, last: %s", name, state, b.Attempts(m.job), ended(&before[len(before)-1]))
}

// ended describes how a delivery ended.
func ended(s *worker.Settled) string {
	text := fmt.Sprintf("%s, %s", s.Outcome, s.Settlement)
	if s.Reason != "" {
		text += fmt.Sprintf(" (%s)", s.Reason)
	}
	if s.Err != nil {
		text += fmt.Sprintf(": %v", s.Err)
	}
	if s.SettleErr != nil {
		text += fmt.Sprintf("; not settled: %v", s.SettleErr)
	}
	return text
}
