package webhookapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook/journal"
)

// attemptPage is a page of calls, newest first.
type attemptPage struct {
	Attempts []journal.Attempt `json:"attempts"`
	Next     string            `json:"next,omitempty"`
}

func (a *api) listAttempts(w http.ResponseWriter, r *http.Request) error {
	q := query(r, "failed", "event", "from", "to", "after", "limit")
	f := journal.AttemptFilter{
		Endpoint: r.PathValue("id"), Event: q.text("event"), Failed: q.truth("failed"), From: q.time("from"), To: q.time("to"),
	}
	limit := q.limit()
	if !f.From.IsZero() && !f.To.IsZero() && !f.To.After(f.From) {
		q.fault("to", "must be after from")
	}
	if err := q.err(); err != nil {
		return err
	}
	if _, err := a.cfg.Registry.Get(r.Context(), f.Endpoint); err != nil {
		return err
	}
	found, next, err := a.cfg.Journal.Attempts(r.Context(), f, q.text("after"), limit)
	if err != nil {
		return err
	}
	if found == nil {
		found = []journal.Attempt{}
	}
	return reply(w, http.StatusOK, attemptPage{found, next})
}

func (a *api) testEndpoint(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(query(r).err(), unconditional(r)); err != nil {
		return err
	}
	o, err := optionalObject(w, r)
	if err != nil {
		return err
	}
	var payload json.RawMessage
	if err := o.read(map[string]reader{"payload": func(value json.RawMessage) error { payload = value; return nil }}); err != nil {
		return err
	}
	e, err := a.cfg.Registry.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	result, err := Test(r.Context(), a.cfg.Sender, e.Endpoint, payload)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, result)
}

func (a *api) resend(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(query(r).err(), unconditional(r)); err != nil {
		return err
	}
	o, err := bodyObject(w, r)
	if err != nil {
		return err
	}
	var event string
	if err := o.read(map[string]reader{"event": into(&event)}); err != nil {
		return err
	}
	if event == "" {
		return invalid("event", "is missing: give the id of a published event")
	}
	e, err := a.cfg.Registry.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	job, err := a.cfg.Recovery.Resend(r.Context(), e.Endpoint, event)
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, map[string]string{"job": job})
}

func (a *api) recoverSince(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(query(r).err(), unconditional(r)); err != nil {
		return err
	}
	o, err := bodyObject(w, r)
	if err != nil {
		return err
	}
	now := time.Now()
	var since time.Time
	when := func(text string) (time.Time, error) { return parseWhen(text, now) }
	if err := o.read(map[string]reader{"since": parsed(&since, when)}); err != nil {
		return err
	}
	if err := CheckSince(since, now); err != nil {
		return err
	}
	e, err := a.cfg.Registry.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), recoverTimeout)
	defer cancel()
	done, err := a.cfg.Recovery.RecoverSince(ctx, e.Endpoint, since)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return newProblem(http.StatusServiceUnavailable, "not-finished", "Not finished in time",
			fmt.Sprintf("%d deliveries are enqueued: repeat the request, which sends none of them twice, or use worker endpoints recover", done.Missed+done.Replay.Replayed))
	}
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, ShowRecovered(done))
}

// recoverTimeout bounds a recovery: the server writes the answer within 30 s.
const recoverTimeout = 20 * time.Second

// Recovered is what became of a recovery.
type Recovered struct {
	// Events is how many events since then the endpoint wants.
	Events int `json:"events"`
	// Missed is how many of them it had no attempt of, and were enqueued.
	Missed int `json:"missed"`
	// Replayed is how many of its dead letters were enqueued, and Left how many were not, as dlq-replay says in detail.
	Replayed int `json:"replayed"`
	Left     int `json:"left"`
}

// ShowRecovered returns r in the form of the API.
func ShowRecovered(r journal.Recovered) Recovered {
	return Recovered{Events: r.Events, Missed: r.Missed, Replayed: r.Replay.Replayed, Left: r.Replay.Failed + r.Replay.Refused + r.Replay.Held + r.Replay.Left}
}

// parseWhen reads a time in RFC 3339, or how long ago it was.
func parseWhen(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	d, err := schedule.ParseDuration(text)
	if err != nil || d < 0 {
		return time.Time{}, fmt.Errorf("%q: use a time such as %s, or a duration such as 2h", text, now.UTC().Format(time.RFC3339))
	}
	return now.Add(-d), nil
}

// CheckSince refuses a time that cannot be meant for a recovery.
func CheckSince(since, now time.Time) error {
	switch {
	case since.IsZero():
		return invalid("since", "is missing: use a time such as "+now.UTC().Format(time.RFC3339)+", or a duration such as 2h")
	case since.After(now):
		return invalid("since", fmt.Sprintf("%s lies in the future", since.UTC().Format(time.RFC3339)))
	}
	return nil
}
