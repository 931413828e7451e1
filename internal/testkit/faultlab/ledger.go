package faultlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
)

// Ledger is what the handlers wrote, what was killed, and what the stores say in the end.
type Ledger struct {
	// Jobs are the ids of all jobs that were enqueued, which are their keys as well.
	Jobs []string
	// Groups is over how many groups the jobs were spread in turn, each of which must have been worked in order. Zero if there is no order.
	Groups int
	// Runs in any order. Those of other jobs are left out of the check.
	Runs []Run
	// Kills of worker processes.
	Kills []Kill
	// Transactional are the ids of the jobs whose handlers write in their claims' transactions. Of their runs nothing is wanted: it is their
	// rows that are counted.
	Transactional []string
	// Outages are when the claim store could not be reached. A claim may run out then although its handler has succeeded.
	Outages []Outage
	// Lease is how long a claim lasts without a sign of life. It counts with Outages only.
	Lease time.Duration
	// Stack has the stores.
	Stack *Stack
}

// Outage is a time in which a store could not be reached.
type Outage struct{ From, To time.Time }

// Kill is one SIGKILL of a worker process.
type Kill struct {
	PID int
	At  time.Time // the process was gone by then
}

// Rule is what a finding breaks.
type Rule string

// The rules.
const (
	Lost     Rule = "lost"       // a job is neither completed nor dead, or cannot be asked after
	RanAgain Rule = "ran again"  // a handler ran after, or beside, the attempt that was completed
	Overlap  Rule = "overlap"    // an attempt began before its predecessor had ended
	Count    Rule = "miscounted" // attempts or tokens are not as documented
	Order    Rule = "order"      // a job began before its predecessor in the group was done
	Effect   Rule = "effect"     // a transactional job has not exactly the one row of its completed attempt
)

// Finding is one broken rule.
type Finding struct {
	Rule Rule
	Text string
}

// Cut counts the runs that never ended.
func (l *Ledger) Cut() (n int) {
	for _, r := range l.Runs {
		if r.End.IsZero() {
			n++
		}
	}
	return n
}

// Check returns every rule that the ledger breaks. Allowed is one thing only: a cut run followed by a higher attempt.
func (l *Ledger) Check(ctx context.Context) []Finding {
	c := &check{Ledger: l, died: make(map[int]time.Time)}
	byKey := make(map[string][]Run)
	for _, r := range l.Runs {
		byKey[r.Key] = append(byKey[r.Key], r)
	}
	for _, k := range l.Kills {
		c.died[k.PID] = k.At
	}
	for _, key := range l.Jobs {
		runs := byKey[key]
		slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Attempt, b.Attempt)) })
		completed := c.completed(ctx, key)
		previous := Run{}
		for i, r := range runs {
			c.run(r, previous, i == 0)
			if completed > 0 && r.Attempt > completed {
				c.find(RanAgain, "%s: attempt %d started after attempt %d had completed", key, r.Attempt, completed)
			}
			if r.OK && r.Attempt != completed && c.died[r.PID].IsZero() && !c.away(r.End) {
				c.find(RanAgain, "%s: attempt %d succeeded in a process that was never killed, yet it is not the completed one (%d)", key, r.Attempt, completed)
			}
			previous = r
		}
	}
	for i := c.Groups; c.Groups > 0 && i < len(c.Jobs); i++ {
		c.ordered(c.Jobs[i-c.Groups], c.Jobs[i], byKey)
	}
	if len(c.Transactional) > 0 {
		c.effects(ctx)
	}
	return c.findings
}

type check struct {
	*Ledger
	died     map[int]time.Time // by process
	findings []Finding
}

func (c *check) find(rule Rule, format string, args ...any) {
	c.findings = append(c.findings, Finding{rule, fmt.Sprintf(format, args...)})
}

// completed returns the attempt that the store holds as completed, 0 if the job is dead, and finds jobs that are neither.
func (c *check) completed(ctx context.Context, key string) int {
	record, err := c.Stack.Claims.Get(ctx, keyOf(key))
	if err == nil && record.State == idempotency.StatusCompleted {
		return record.Attempt
	}
	_, dead := c.Stack.Dead.Get(ctx, dlq.EntryID(key, 0))
	switch {
	case errors.Is(dead, dlq.ErrNotFound):
		c.find(Lost, "%s: neither completed nor dead (record %+v, error %v)", key, record, err)
	case dead != nil:
		c.find(Lost, "%s: dead-letter store: %v", key, dead)
	}
	return 0
}

// ordered finds a job that began before the one in front of it had succeeded. The runs of each are in order of time.
func (c *check) ordered(front, key string, byKey map[string][]Run) {
	runs := byKey[key]
	if len(runs) == 0 {
		return // which is found elsewhere
	}
	for _, r := range byKey[front] {
		if r.OK && !r.End.After(runs[0].Start) {
			return
		}
	}
	c.find(Order, "%s: began before %s in front of it was done", key, front)
}

func (c *check) run(r, previous Run, first bool) {
	if r.Attempt > MaxAttempts {
		c.find(Count, "%s: attempt %d is above the maximum of %d", r.Key, r.Attempt, MaxAttempts)
	}
	from := time.Time{}
	if !first {
		from = previous.Start
		c.follows(r, previous)
	}
	// A number may be skipped only by a process that was killed between the claim and the handler.
	lost := 0
	for _, k := range c.Kills {
		if k.At.After(from) && !k.At.After(r.Start) {
			lost++
		}
	}
	if skipped := r.Attempt - previous.Attempt - 1; skipped > lost {
		c.find(Count, "%s: attempt %d follows %d with only %d kills between them", r.Key, r.Attempt, previous.Attempt, lost)
	}
}

func (c *check) follows(r, previous Run) {
	if r.Attempt <= previous.Attempt {
		c.find(Count, "%s: attempt %d follows attempt %d", r.Key, r.Attempt, previous.Attempt)
	}
	if r.Token <= previous.Token {
		c.find(Count, "%s: token %d follows token %d", r.Key, r.Token, previous.Token)
	}
	end := previous.End
	if end.IsZero() {
		end = c.died[previous.PID]
	}
	if end.IsZero() {
		c.find(Overlap, "%s: attempt %d never ended, yet its process was never killed", r.Key, previous.Attempt)
	} else if r.Start.Before(end) {
		c.find(Overlap, "%s: attempt %d began %s before attempt %d had ended", r.Key, r.Attempt, end.Sub(r.Start), previous.Attempt)
	}
}

// away reports whether a run ended so close to an outage that its claim may have run out before its completion was stored: a claim lives
// for a lease after its last extension, and a completion that met the outage waits for its end.
func (l *Ledger) away(end time.Time) bool {
	for _, o := range l.Outages {
		if end.After(o.From.Add(-l.Lease)) && end.Before(o.To.Add(l.Lease)) {
			return true
		}
	}
	return false
}
