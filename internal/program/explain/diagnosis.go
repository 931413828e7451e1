package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/webhook"
)

const (
	// explainLook is how many messages explain looks at in one pass: some tenths of a second.
	explainLook = 500_000
	// explainNames is how many jobs and keys that the first look found are looked for in turn.
	explainNames = 20
	// explainLetters is how many dead letters of a job are shown: one for each run.
	explainLetters = 100
)

// evidence is all that is known of texts that may be jobs' ids or keys.
type evidence struct {
	texts   []string
	broker  string
	program string // as its commands are called
	// finds says that the broker can tell where a message is, and complete that it looked at all of them.
	finds, complete bool
	places          []queue.Place
	brokerNow       time.Time
	// hasClaims says that there is a claim store that can be searched.
	hasClaims bool
	records   []idempotency.Record
	claimsNow time.Time
	letters   []dlq.Entry
	held      []dlq.HeldDepth
	audits    map[string]dlq.Audit // of those who replayed or purged letters, by id
	// hasLetters says that dead letters live in a store.
	hasLetters bool
	hasBoard   bool
	reports    []fleet.Report
	targets    map[string]*target // the endpoints of deliveries, by id
	event      *published         // if the texts are its deliveries
	of         webhook.Event      // whose deliveries fates are
	fates      []webhooks.Delivery
	notes      []string
}

// gather looks for texts, and then for the jobs and keys that this turned up.
func gather(ctx context.Context, s *backends.Set, program, broker string, texts ...string) (*evidence, error) {
	ev := &evidence{texts: slices.Clone(texts), program: program, broker: broker, complete: true}
	for i := range ev.texts {
		if err := ev.findLetter(ctx, s.Letters, &ev.texts[i]); err != nil {
			return nil, err
		}
		if err := ev.findLetters(ctx, s.Letters, ev.texts[i]); err != nil { // a job that is held, or of an unkeyed kind, has left nothing else
			return nil, err
		}
	}
	asked := map[string]bool{}
	for range 2 {
		var names []string
		for _, n := range append(slices.Clone(ev.texts), ev.names()...) {
			if !asked[n] && len(asked) < explainNames {
				asked[n] = true
				names = append(names, n)
			}
		}
		if err := errors.Join(ev.findPlaces(ctx, s.Broker, names), ev.findRecords(ctx, s.Claims, names)); err != nil {
			return nil, err
		}
	}
	for _, job := range ev.jobs() {
		if err := ev.findLetters(ctx, s.Letters, job); err != nil {
			return nil, err
		}
	}
	ev.findFleet(ctx, s.Statuses)
	ev.noteLimits(s)
	return ev, nil
}

// noteLimits says what could not be looked at.
func (ev *evidence) noteLimits(s *backends.Set) {
	if !ev.finds {
		ev.notes = append(ev.notes, ev.broker+" cannot be asked where one message is")
	} else if !ev.complete {
		ev.notes = append(ev.notes, fmt.Sprintf("the queues hold more messages than were looked at: the oldest %d", explainLook))
	}
	if s.Claims == nil {
		ev.notes = append(ev.notes, "there is no claim store that would know of attempts")
	}
	if s.Letters == nil {
		ev.notes = append(ev.notes, fmt.Sprintf("dead letters are in the broker's own queues: look with %s dlq list", ev.program))
	}
}

func (ev *evidence) findPlaces(ctx context.Context, broker queue.Broker, names []string) error {
	finder, ok := broker.(queue.Finder)
	if !ok || len(names) == 0 {
		return nil
	}
	found, err := finder.Find(ctx, names, explainLook)
	if err != nil {
		return fmt.Errorf("look into the queues: %w", err)
	}
	ev.finds, ev.complete, ev.brokerNow = true, ev.complete && found.Complete, found.Now
	for _, p := range found.Places {
		if !slices.ContainsFunc(ev.places, func(o queue.Place) bool { return o.Queue == p.Queue && o.ID == p.ID }) {
			ev.places = append(ev.places, p)
		}
	}
	return nil
}

func (ev *evidence) findRecords(ctx context.Context, store idempotency.Store, names []string) error {
	finder, ok := store.(idempotency.Finder)
	if !ok {
		return nil
	}
	ev.hasClaims = true
	for _, name := range names {
		found, err := finder.Find(ctx, name)
		if err != nil {
			return fmt.Errorf("look into the claims: %w", err)
		}
		ev.claimsNow = found.Now
		for _, r := range found.Records {
			if !slices.ContainsFunc(ev.records, func(o idempotency.Record) bool { return o.Key == r.Key && o.Job == r.Job && o.Run == r.Run }) {
				ev.records = append(ev.records, r)
			}
		}
	}
	return nil
}

// findLetter puts the job of a dead letter in place of a text that is its id.
func (ev *evidence) findLetter(ctx context.Context, store dlq.Store, text *string) error {
	if store == nil {
		return nil
	}
	ev.hasLetters = true
	e, err := store.Get(ctx, *text)
	switch {
	case errors.Is(err, dlq.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look into the dead letters: %w", err)
	}
	*text = e.Job
	return nil
}

// findLetters looks for those of all runs of a job.
func (ev *evidence) findLetters(ctx context.Context, store dlq.Store, job string) error {
	if store == nil {
		return nil
	}
	found, _, err := store.List(ctx, dlq.Filter{Job: job, States: dlq.States()}, "", explainLetters)
	if err != nil {
		return fmt.Errorf("look into the dead letters: %w", err)
	}
	for _, e := range found {
		if !slices.ContainsFunc(ev.letters, func(o dlq.Entry) bool { return o.ID == e.ID }) {
			ev.letters = append(ev.letters, e)
			if err := ev.findAudit(ctx, store, e.ClosedBy); err != nil {
				return err
			}
		}
		if e.State == dlq.StateHeld && ev.held == nil {
			depth, err := store.Depth(ctx)
			if err != nil {
				return fmt.Errorf("count held jobs: %w", err)
			}
			ev.held = depth.Held
		}
	}
	return nil
}

// findAudit looks for who replayed or purged an entry.
func (ev *evidence) findAudit(ctx context.Context, store dlq.Store, id string) error {
	log, ok := store.(dlq.AuditLog)
	if !ok || id == "" {
		return nil
	}
	a, err := log.Audit(ctx, id)
	switch {
	case errors.Is(err, dlq.ErrNoAudit):
		return nil // done by a program without a record, or longer ago than records are kept
	case err != nil:
		return fmt.Errorf("look into the audit log: %w", err)
	}
	if ev.audits == nil {
		ev.audits = map[string]dlq.Audit{}
	}
	ev.audits[id] = a
	return nil
}

// findFleet asks the board. What it cannot tell is no reason to say nothing.
func (ev *evidence) findFleet(ctx context.Context, board fleet.StatusStore) {
	if board == nil {
		ev.notes = append(ev.notes, "workers share no store in which they would tell of their breakers and pools")
		return
	}
	reports, err := board.Reports(ctx)
	if err != nil {
		ev.notes = append(ev.notes, "not all workers can be asked: "+err.Error())
	}
	ev.reports, ev.hasBoard = reports, err == nil || len(reports) > 0
}

// names are the jobs and keys of what matches.
func (ev *evidence) names() []string {
	var names []string
	for _, job := range ev.jobs() {
		names = append(names, job)
		if k := ev.subject(job).key; k != "" {
			names = append(names, k)
		}
	}
	return names
}

// jobs are those whose id or key is one of the texts, in the order in which they were found.
func (ev *evidence) jobs() []string {
	var jobs []string
	add := func(job string) {
		if job != "" && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	for _, e := range ev.letters {
		add(e.Job)
	}
	for _, r := range ev.records {
		if ev.asks(r.Job) || ev.asks(r.Key.Value) {
			add(r.Job)
		}
	}
	for _, p := range ev.places {
		if id := jobOf(p); ev.asks(id) || ev.asks(p.Envelope.Key) {
			add(id)
		}
	}
	return jobs
}

func (ev *evidence) asks(name string) bool { return slices.Contains(ev.texts, name) }

// jobOf is the job that a message is: one without an envelope is called by its place, as workers do.
func jobOf(p queue.Place) string { return cmp.Or(p.Envelope.ID, p.Queue+":"+p.ID) }
