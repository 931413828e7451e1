package audit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq/audit"
)

func TestForLog(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r, err := audit.Record{
		ID: "a", Action: "purge", Planned: 3, State: audit.StateDone, Problem: "old", Counts: audit.Counts{Done: 1}, EndedAt: now,
	}.ForLog(now)
	want := audit.Record{ID: "a", Action: "purge", Planned: 3, State: audit.StateRunning, Silence: audit.DefaultSilence, StartedAt: now, UpdatedAt: now}
	if err != nil || r != want {
		t.Errorf("got %+v, %v, want %+v", r, err, want)
	}
	for name, bad := range map[string]audit.Record{
		"no id": {Action: "purge"}, "no action": {ID: "a"}, "negative plan": {ID: "a", Action: "purge", Planned: -1},
		"negative silence": {ID: "a", Action: "purge", Silence: -1},
	} {
		if _, err := bad.ForLog(now); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestSilentRecordIsInterrupted(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := audit.Record{State: audit.StateRunning, UpdatedAt: now, Silence: time.Minute}
	if got := r.At(now.Add(time.Minute)); got != r {
		t.Errorf("not silent for too long yet, but shown as %+v", got)
	}
	if got := r.At(now.Add(time.Minute + 1)); got.State != audit.StateInterrupted || got.Problem == "" {
		t.Errorf("silent for too long, but shown as %+v", got)
	}
	r.State = audit.StateDone
	if got := r.At(now.Add(time.Hour)); got != r {
		t.Errorf("done, but shown as %+v", got)
	}
}

// ends is a log that notes the ends of operations.
type ends struct {
	audit.Log
	state   audit.State
	problem string
	err     error
}

func (e *ends) EndAudit(ctx context.Context, _ string, state audit.State, _ audit.Counts, problem string) error {
	e.state, e.problem = state, problem
	return errors.Join(ctx.Err(), state.ValidateEnd(), e.err)
}

func TestFinish(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		ctx     context.Context
		problem error
		want    audit.State
	}{
		"done":            {t.Context(), nil, audit.StateDone},
		"done at the end": {over, nil, audit.StateDone},
		"failed":          {t.Context(), boom, audit.StateFailed},
		"interrupted":     {over, boom, audit.StateInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log ends
			err := audit.Finish(tt.ctx, &log, "a", audit.Counts{}, tt.problem)
			if !errors.Is(err, tt.problem) || log.state != tt.want || (log.problem != "") != (tt.problem != nil) {
				t.Errorf("recorded %s, %q, %v, want %s", log.state, log.problem, err, tt.want)
			}
		})
	}
	away := errors.New("away")
	if err := audit.Finish(t.Context(), &ends{err: away}, "a", audit.Counts{}, boom); !errors.Is(err, boom) || !errors.Is(err, away) {
		t.Errorf("got %v, want both errors", err)
	}
	if err := audit.StateRunning.ValidateEnd(); err == nil {
		t.Error("an operation may end as running")
	}
}
