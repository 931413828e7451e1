package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/queue/inspect"
)

// jobView is one job as explain shows it, and its JSON form.
type jobView struct {
	Job         string   `json:"job"`
	Run         int      `json:"run"`
	Kind        string   `json:"kind,omitempty"`
	Key         string   `json:"key"`
	Destination string   `json:"destination,omitempty"`
	State       jobState `json:"state"`
	// Why is a sentence without its subject, the job.
	Why string `json:"why"`
	// MaxAttempts is 0 where no live worker knows the kind, and its endpoint has no schedule of its own.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// NextTry is when the ledger lets the next attempt begin.
	NextTry *time.Time    `json:"next_try,omitempty"`
	Claim   *claimView    `json:"claim,omitempty"`
	Runs    []runView     `json:"runs,omitempty"`
	Message []messageView `json:"messages,omitempty"`
	// Breaker is how the fleet sees the destination.
	Breaker *fleet.View `json:"breaker,omitempty"`
	// Endpoint is where a webhook delivery goes.
	Endpoint *endpoint    `json:"endpoint,omitempty"`
	Pool     *poolView    `json:"pool,omitempty"`
	Letters  []letterView `json:"dead_letters,omitempty"`

	keyAssumed bool
}

type claimView struct {
	Scope string `json:"scope"`
	// State is held, ran_out, completed or free.
	State string    `json:"state"`
	Job   string    `json:"job"`
	Run   int       `json:"run"`
	Owner string    `json:"owner,omitempty"`
	Token int64     `json:"token"`
	Until time.Time `json:"until,omitzero"`
	// ResultSize is the size of the result in bytes.
	ResultSize int64 `json:"result_size,omitempty"`
}

type runView struct {
	Run int `json:"run"`
	// Attempts were spent, the present one included.
	Attempts int                   `json:"attempts"`
	Closed   bool                  `json:"closed"`
	Failed   []idempotency.Attempt `json:"failed,omitempty"`
}

type messageView struct {
	inspect.Location
	Run int `json:"run"`
}

type letterView struct {
	ID         string              `json:"id"`
	Run        int                 `json:"run"`
	State      dlq.State           `json:"state"`
	Cause      dlq.Cause           `json:"cause"`
	Error      string              `json:"error"`
	Attempts   int                 `json:"attempts"`
	Failed     []dlq.FailedAttempt `json:"failed,omitempty"`
	StoredAt   time.Time           `json:"stored_at"`
	ChangedAt  time.Time           `json:"changed_at"`
	EnqueuedAt time.Time           `json:"enqueued_at,omitzero"`
	// Replay is the operation that published it again.
	Replay *replayView `json:"replay,omitempty"`
}

type replayView struct {
	ID string `json:"id"`
	// Actor and StartedAt are absent where the audit log does not know of it.
	Actor     string    `json:"actor,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
}

// view makes the view of a job.
func (d *diagnosis) view(j *job) jobView {
	st := d.statusOf(j)
	v := jobView{Job: j.id, Run: j.run, Kind: j.kind, Key: j.key, Destination: j.destination, State: st.state, Why: st.why, Pool: d.poolOf(j), MaxAttempts: d.mostAttempts(j), Endpoint: d.endpointOf(j), keyAssumed: j.keyAssumed && j.claim == nil}
	if l := j.ledger(); l != nil && l.State == 0 && !l.Closed && !l.Until.IsZero() {
		v.NextTry = &l.Until
	}
	if c := j.claim; c != nil {
		v.Claim = &claimView{
			Scope: c.Key.Scope, State: d.claimState(c), Job: c.Job, Run: c.Run, Owner: c.Owner, Token: c.Token, Until: c.Until, ResultSize: c.Result.Size,
		}
	}
	for _, l := range j.ledgers {
		v.Runs = append(v.Runs, runView{Run: l.Run, Attempts: l.Attempt, Closed: l.Closed, Failed: l.History})
	}
	for _, p := range j.places {
		v.Message = append(v.Message, messageView{p, p.Envelope.Run})
	}
	if j.destination != "" && d.hasStatuses {
		b := fleet.Look(d.reports, j.destination)
		v.Breaker = &b
	}
	for _, e := range j.letters {
		v.Letters = append(v.Letters, d.letterView(e))
	}
	return v
}

func (d *diagnosis) letterView(e dlq.Entry) letterView {
	v := letterView{
		ID: e.ID, Run: e.Run, State: e.State, Cause: e.Cause, Error: e.Error, Attempts: e.AttemptCount, Failed: e.Attempts, StoredAt: e.StoredAt,
		ChangedAt: e.ChangedAt, EnqueuedAt: e.EnqueuedAt,
	}
	if e.ClosedBy != "" {
		a := d.audits[e.ClosedBy]
		v.Replay = &replayView{ID: e.ClosedBy, Actor: a.Actor, StartedAt: a.StartedAt}
	}
	return v
}

func (d *diagnosis) claimState(c *idempotency.Record) string {
	switch {
	case c.State == idempotency.StatusCompleted:
		return "completed"
	case c.State != idempotency.StatusAcquired:
		return "free"
	case c.Until.After(d.claimsNow):
		return "held"
	}
	return "ran_out"
}

// rank puts unfinished jobs before those that are over.
func (v jobView) rank() int {
	switch v.State {
	case stateCompleted, stateClosed, statePurged, stateReplayed:
		return 0
	}
	return 1
}

// print writes the one job with its facts, or a list of several.
func (e explanation) print(w io.Writer) error {
	var b strings.Builder
	if e.Event != nil {
		e.Event.print(&b)
	}
	for _, v := range e.Jobs {
		fmt.Fprintf(&b, "job %s %s.\n", cli.OneLine(v.Job), cli.OneLine(v.Why))
	}
	switch {
	case len(e.Jobs) == 1:
		b.WriteString("\n")
		e.Jobs[0].facts(&b)
	case e.Event == nil:
		fmt.Fprintf(&b, "\n%d jobs match %s: name one by its id for what is known of it\n", len(e.Jobs), cli.OneLine(e.Query))
	}
	for _, n := range e.Notes {
		fmt.Fprintf(&b, "note: %s\n", cli.OneLine(n))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print explanation: %w", err)
	}
	return nil
}

// facts writes what is known, a line for each thing.
func (v jobView) facts(b *strings.Builder) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-12s %s\n", name, cli.OneLine(fmt.Sprintf(format, args...)))
	}
	line("state", "%s", v.State)
	line("run", "%d", v.Run)
	if v.Kind != "" {
		line("kind", "%s", v.Kind)
	}
	if v.keyAssumed {
		line("key", "%s, unless its kind makes one of the payload", v.Key)
	} else {
		line("key", "%s", v.Key)
	}
	for _, m := range v.Message {
		line("message", "%s in queue %s: %s", m.ID, m.Queue, m.describe())
	}
	if c := v.Claim; c != nil {
		line("claim", "%s", c.describe())
	}
	if v.NextTry != nil {
		line("next try", "not before %s", cli.Time(*v.NextTry))
	}
	if v.MaxAttempts > 0 {
		line("attempts", "at most %d", v.MaxAttempts)
	}
	for _, r := range v.Runs {
		closed := ""
		if r.Closed {
			closed = ", given up"
		}
		line("run "+fmt.Sprint(r.Run), "%s%s", count(r.Attempts, "attempt"), closed)
		for _, a := range r.Failed {
			line("", "%d  %s  %s  %s", a.Number, cli.Time(a.Started), a.Ended.Sub(a.Started).Round(time.Millisecond), headline(a.Error))
		}
	}
	if v.Destination != "" {
		text := v.Destination
		if v.Breaker != nil && v.Breaker.Workers > 0 {
			text += ": " + cli.Breaker(*v.Breaker)
		}
		line("destination", "%s", text)
	}
	if t := v.Endpoint; t != nil {
		line("endpoint", "%s", t)
	}
	if p := v.Pool; p != nil {
		line("pool", "%s: %d of %d places taken at %s, %d waiting", p.Name, p.InUse, p.Size, count(p.Workers, "worker"), p.Waiting)
	}
	for _, l := range v.Letters {
		by := ""
		if r := l.Replay; r != nil {
			by = ", by " + r.ID
			if r.Actor != "" {
				by += " of " + r.Actor
			}
		}
		line("dead letter", "%s is %s since %s%s: %s after %s: %s", l.ID, l.State, cli.Time(l.ChangedAt), by, l.Cause, count(l.Attempts, "attempt"), headline(l.Error))
	}
}

func (m messageView) describe() string {
	delivered := ", delivered " + count(m.Deliveries, "time")
	switch m.State {
	case inspect.StateLeased:
		return "leased until " + cli.Time(m.Due) + delivered
	case inspect.StateDelayed:
		return "hidden until " + cli.Time(m.Due) + delivered
	}
	return "ready, ahead of it " + m.Ahead.String() + delivered
}

func (c claimView) describe() string {
	of := fmt.Sprintf("job %s, run %d, token %d", c.Job, c.Run, c.Token)
	switch c.State {
	case "completed":
		return fmt.Sprintf("completed by %s; remembered until %s, result of %s", of, cli.Time(c.Until), count(int(c.ResultSize), "byte"))
	case "free":
		return "free; last held by " + of
	case "ran_out":
		return fmt.Sprintf("of %s at %s; ran out at %s", of, c.Owner, cli.Time(c.Until))
	}
	return fmt.Sprintf("held by %s at %s until %s", of, c.Owner, cli.Time(c.Until))
}
