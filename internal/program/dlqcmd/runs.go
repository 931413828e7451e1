package dlqcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// runs are the runs of a job: those that ended as dead letters, and what comes next.
type runs struct {
	// Runs are the job's other entries, newest first.
	Runs []otherRun `json:"runs,omitempty"`
	Next nextRun    `json:"next_run"`
}

// otherRun is another entry of the same job.
type otherRun struct {
	ID        string    `json:"id"`
	State     dlq.State `json:"state"`
	ChangedAt time.Time `json:"changed_at"`
	ClosedBy  string    `json:"closed_by,omitempty"`
	Error     string    `json:"error"`
}

// nextRun is what became, or would become, of the run after an entry.
type nextRun struct {
	Run int `json:"run"`
	// Status is completed, died, pending or unknown for a run that a replay has started; would_replay, would_be_left_out or
	// would_be_refused for one that none has; none where there is none to come.
	Status string `json:"fate"`
	Why    string `json:"why,omitempty"`
}

// String returns the line for people.
func (n nextRun) String() string {
	text := map[string]string{
		"completed": "run %d has completed", "died": "run %d died again", "pending": "run %d was published and has not ended yet",
		"unknown": "run %d was published; what became of it is not known", "would_replay": "a replay would start run %d",
		"would_be_left_out": "a replay would leave it out", "would_be_refused": "a replay would refuse it", "none": "none",
	}[n.Status]
	if strings.Contains(text, "%d") {
		text = fmt.Sprintf(text, n.Run)
	}
	if n.Why != "" {
		text += ": " + n.Why
	}
	return text
}

// shownRuns is the most other runs that show lists.
const shownRuns = 20

// runsOf looks for the other runs of e's job, and for what becomes of its next run.
func (s *session) runsOf(ctx context.Context, e dlq.Entry) (*runs, error) {
	all := &runs{}
	if s.store != nil {
		runs, _, err := s.store.List(ctx, dlq.Filter{Job: e.Job, States: dlq.States()}, "", shownRuns+1)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			if r.ID != e.ID {
				all.Runs = append(all.Runs, otherRun{r.ID, r.State, r.ChangedAt, r.ClosedBy, r.Error})
			}
		}
	}
	var err error
	all.Next, err = s.nextRunOf(ctx, e)
	return all, err
}

func (s *session) nextRunOf(ctx context.Context, e dlq.Entry) (nextRun, error) {
	n := nextRun{Run: e.Run + 1, Status: "none"}
	switch e.State {
	case dlq.StateReplayed:
		return s.replayStatus(ctx, e)
	case dlq.StateHeld:
		n.Run, n.Why = e.Run, "workers release this run when its destination's breaker closes"
		return n, nil
	case dlq.StatePurged:
		n.Why = "the entry was purged"
		return n, nil
	}
	plan := replay.Config{Store: oneEntry{e}, DryRun: true, KeyRetention: s.keyRetention}
	if s.Claims != nil {
		plan.Claims = s.Claims
	}
	r, err := replay.New(plan)
	if err != nil {
		return n, err
	}
	report, err := r.Run(ctx)
	switch {
	case err != nil:
		return n, err
	case report.Refused > 0:
		n.Status, n.Why = "would_be_refused", report.Problems[0].Error
	case report.Completed > 0:
		n.Status, n.Why = "would_be_left_out", report.Problems[0].Error
	default:
		n.Status = "would_replay"
		if report.Forgotten > 0 {
			n.Why = "whether its work has completed meanwhile, nobody can tell"
		}
	}
	return n, nil
}

// replayStatus says what became of the run that a replay of e has started.
func (s *session) replayStatus(ctx context.Context, e dlq.Entry) (nextRun, error) {
	n := nextRun{Run: e.Run + 1, Status: "unknown"}
	if s.Claims == nil {
		return n, nil
	}
	key := idempotency.Key{Scope: e.Kind, Value: cmp.Or(e.Key, e.Job)}
	status, err := replay.StoreOutcomes{Claims: s.Claims, Letters: s.store}.Status(ctx, replay.Republished{Job: e.Job, Run: n.Run, Key: key})
	if err != nil {
		return n, err
	}
	switch status {
	case replay.StatusCompleted:
		n.Status = "completed"
	case replay.StatusDied:
		n.Status, n.Why = "died", "see "+dlq.EntryID(e.Job, n.Run)
	default:
		n.Status = "pending"
		if time.Since(e.ChangedAt) > s.keyRetention {
			n.Status, n.Why = "unknown", fmt.Sprintf("it was replayed more than idempotency.retention (%s) ago", s.keyRetention)
		}
	}
	return n, nil
}

// String lists the other runs.
func (l *runs) String() string {
	if len(l.Runs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nother runs\n")
	for _, r := range l.Runs {
		by := ""
		if r.ClosedBy != "" {
			by = " by " + cli.OneLine(r.ClosedBy)
		}
		fmt.Fprintf(&b, "  %s  %s since %s%s  %s\n", cli.OneLine(r.ID), r.State, cli.Time(r.ChangedAt), by, cli.Cut(headline(r.Error), 80))
	}
	return b.String()
}

// oneEntry is a source that has a single entry, for a dry run.
type oneEntry struct{ dlq.Entry }

var errOnlyLooked = errors.New("only looked at")

func (o oneEntry) Count(context.Context, dlq.Filter) (int, error) { return 1, nil }

func (o oneEntry) List(context.Context, dlq.Filter, string, int) ([]dlq.Entry, string, error) {
	return []dlq.Entry{o.Entry}, "", nil
}

func (o oneEntry) Get(context.Context, string) (dlq.Entry, error) { return o.Entry, nil }

func (o oneEntry) Reserve(context.Context, dlq.Filter, dlq.Reservation) ([]dlq.Entry, error) {
	return nil, errOnlyLooked
}

func (o oneEntry) Resolve(_ context.Context, _ string, rs []dlq.Resolution) []error {
	return make([]error, len(rs))
}
