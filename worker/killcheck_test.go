package worker_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
)

// check returns every rule that the ledger breaks. Allowed is one thing only: a cut run followed by a higher attempt.
func (l *ledger) check() []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	byKey := make(map[string][]run)
	for _, r := range l.runs {
		byKey[r.Key] = append(byKey[r.Key], r)
	}
	died := make(map[int]time.Time)
	for _, k := range l.kills {
		died[k.pid] = k.at
	}
	for n := range l.jobs {
		key := fmt.Sprintf("job-%05d", n)
		runs := byKey[key]
		slices.SortFunc(runs, func(a, b run) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Attempt, b.Attempt)) })
		completed := l.completed(key, fault)
		previous := run{}
		for i, r := range runs {
			l.checkRun(r, previous, i == 0, died, fault)
			if completed > 0 && r.Attempt > completed {
				fault("%s: attempt %d started after attempt %d had completed", key, r.Attempt, completed)
			}
			if r.OK && r.Attempt != completed && died[r.PID].IsZero() {
				fault("%s: attempt %d succeeded in a process that was never killed, yet it is not the completed one (%d)", key, r.Attempt, completed)
			}
			previous = r
		}
	}
	return faults
}

// completed returns the attempt that the store holds as completed, 0 if the job is dead, and finds jobs that are neither.
func (l *ledger) completed(key string, fault func(string, ...any)) int {
	record, err := l.rig.claims.Get(l.rig.ctx, idempotency.Key{Scope: killKind, Value: key})
	if err == nil && record.State == idempotency.Completed {
		return record.Attempt
	}
	_, dead := l.rig.dead.Get(l.rig.ctx, dlq.EntryID(key, 0))
	switch {
	case errors.Is(dead, dlq.ErrNotFound):
		fault("%s: neither completed nor dead (record %+v, error %v)", key, record, err)
	case dead != nil:
		fault("%s: dead-letter store: %v", key, dead)
	}
	return 0
}

func (l *ledger) checkRun(r, previous run, first bool, died map[int]time.Time, fault func(string, ...any)) {
	if r.Attempt > killAttempts {
		fault("%s: attempt %d is above the maximum of %d", r.Key, r.Attempt, killAttempts)
	}
	from := time.Time{}
	if !first {
		from = previous.Start
		if r.Attempt <= previous.Attempt {
			fault("%s: attempt %d follows attempt %d", r.Key, r.Attempt, previous.Attempt)
		}
		if r.Token <= previous.Token {
			fault("%s: token %d follows token %d", r.Key, r.Token, previous.Token)
		}
		end := previous.End
		if end.IsZero() {
			end = died[previous.PID]
		}
		if end.IsZero() {
			fault("%s: attempt %d never ended, yet its process was never killed", r.Key, previous.Attempt)
		} else if r.Start.Before(end) {
			fault("%s: attempt %d began %s before attempt %d had ended", r.Key, r.Attempt, end.Sub(r.Start), previous.Attempt)
		}
	}
	// A number may be skipped only by a process that was killed between the claim and the handler.
	lost := 0
	for _, k := range l.kills {
		if k.at.After(from) && !k.at.After(r.Start) {
			lost++
		}
	}
	if skipped := r.Attempt - previous.Attempt - 1; skipped > lost {
		fault("%s: attempt %d follows %d with only %d kills between them", r.Key, r.Attempt, previous.Attempt, lost)
	}
}
