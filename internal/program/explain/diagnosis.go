package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
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

// diagnosis is all that is known of texts that may be jobs' ids or keys.
type diagnosis struct {
	texts   []string
	broker  string
	program string // as its commands are called
	// finds says that the broker can tell where a message is, and complete that it looked at all of them.
	finds, complete bool
	places          []inspect.Location
	brokerNow       time.Time
	// hasClaims says that there is a claim store that can be searched.
	hasClaims bool
	records   []idempotency.Record
	claimsNow time.Time
	letters   []dlq.Entry
	held      []dlq.HeldDepth
	audits    map[string]audit.Record // of those who replayed or purged letters, by id
	// hasLetters says that dead letters live in a store.
	hasLetters  bool
	hasStatuses bool
	reports     []fleet.Report
	endpoints   map[string]*endpoint // the endpoints of deliveries, by id
	event       *eventView           // if the texts are its deliveries
	of          webhook.Event        // whose deliveries these are
	deliveries  []webhooks.Delivery
	notes       []string
}

// gather looks for texts, and then for the jobs and keys that this turned up.
func gather(ctx context.Context, s *backends.Set, program, broker string, texts ...string) (*diagnosis, error) {
	d := &diagnosis{texts: slices.Clone(texts), program: program, broker: broker, complete: true}
	for i := range d.texts {
		if err := d.findLetter(ctx, s.Letters, &d.texts[i]); err != nil {
			return nil, err
		}
		if err := d.findLetters(ctx, s.Letters, d.texts[i]); err != nil { // a job that is held, or of an unkeyed kind, has left nothing else
			return nil, err
		}
	}
	asked := map[string]bool{}
	for range 2 {
		var names []string
		for _, n := range append(slices.Clone(d.texts), d.names()...) {
			if !asked[n] && len(asked) < explainNames {
				asked[n] = true
				names = append(names, n)
			}
		}
		if err := errors.Join(d.findPlaces(ctx, s.Broker, names), d.findRecords(ctx, s.Claims, names)); err != nil {
			return nil, err
		}
	}
	for _, id := range d.ids() {
		if err := d.findLetters(ctx, s.Letters, id); err != nil {
			return nil, err
		}
	}
	d.findFleet(ctx, s.Statuses)
	d.noteLimits(s)
	return d, nil
}

// noteLimits says what could not be looked at.
func (d *diagnosis) noteLimits(s *backends.Set) {
	if !d.finds {
		d.notes = append(d.notes, d.broker+" cannot be asked where one message is")
	} else if !d.complete {
		d.notes = append(d.notes, fmt.Sprintf("the queues hold more messages than were looked at: the oldest %d", explainLook))
	}
	if s.Claims == nil {
		d.notes = append(d.notes, "there is no claim store that would know of attempts")
	}
	if s.Letters == nil {
		d.notes = append(d.notes, fmt.Sprintf("dead letters are in the broker's own queues: look with %s dlq list", d.program))
	}
}

func (d *diagnosis) findPlaces(ctx context.Context, broker queue.Broker, names []string) error {
	finder, ok := broker.(inspect.Finder)
	if !ok || len(names) == 0 {
		return nil
	}
	found, err := finder.Find(ctx, names, explainLook)
	if err != nil {
		return fmt.Errorf("look into the queues: %w", err)
	}
	d.finds, d.complete, d.brokerNow = true, d.complete && found.Complete, found.Now
	for _, p := range found.Locations {
		if !slices.ContainsFunc(d.places, func(o inspect.Location) bool { return o.Queue == p.Queue && o.ID == p.ID }) {
			d.places = append(d.places, p)
		}
	}
	return nil
}

func (d *diagnosis) findRecords(ctx context.Context, store idempotency.Store, names []string) error {
	finder, ok := store.(idempotency.Finder)
	if !ok {
		return nil
	}
	d.hasClaims = true
	for _, name := range names {
		found, err := finder.Find(ctx, name)
		if err != nil {
			return fmt.Errorf("look into the claims: %w", err)
		}
		d.claimsNow = found.Now
		for _, r := range found.Records {
			if !slices.ContainsFunc(d.records, func(o idempotency.Record) bool { return o.Key == r.Key && o.Job == r.Job && o.Run == r.Run }) {
				d.records = append(d.records, r)
			}
		}
	}
	return nil
}

// findLetter puts the job of a dead letter in place of a text that is its id.
func (d *diagnosis) findLetter(ctx context.Context, store dlq.Store, text *string) error {
	if store == nil {
		return nil
	}
	d.hasLetters = true
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
func (d *diagnosis) findLetters(ctx context.Context, store dlq.Store, job string) error {
	if store == nil {
		return nil
	}
	found, _, err := store.List(ctx, dlq.Filter{Job: job, States: dlq.States()}, "", explainLetters)
	if err != nil {
		return fmt.Errorf("look into the dead letters: %w", err)
	}
	for _, e := range found {
		if !slices.ContainsFunc(d.letters, func(o dlq.Entry) bool { return o.ID == e.ID }) {
			d.letters = append(d.letters, e)
			if err := d.findAudit(ctx, store, e.ClosedBy); err != nil {
				return err
			}
		}
		if e.State == dlq.StateHeld && d.held == nil {
			depth, err := store.Depth(ctx)
			if err != nil {
				return fmt.Errorf("count held jobs: %w", err)
			}
			d.held = depth.Held
		}
	}
	return nil
}

// findAudit looks for who replayed or purged an entry.
func (d *diagnosis) findAudit(ctx context.Context, store dlq.Store, id string) error {
	log, ok := store.(audit.Log)
	if !ok || id == "" {
		return nil
	}
	a, err := log.Audit(ctx, id)
	switch {
	case errors.Is(err, audit.ErrNotFound):
		return nil // done by a program without a record, or longer ago than records are kept
	case err != nil:
		return fmt.Errorf("look into the audit log: %w", err)
	}
	if d.audits == nil {
		d.audits = map[string]audit.Record{}
	}
	d.audits[id] = a
	return nil
}

// findFleet asks the status store. What it cannot tell is no reason to say nothing.
func (d *diagnosis) findFleet(ctx context.Context, statuses fleet.StatusStore) {
	if statuses == nil {
		d.notes = append(d.notes, "workers share no store to report their breakers and pools in")
		return
	}
	reports, err := statuses.Reports(ctx)
	if err != nil {
		d.notes = append(d.notes, "not all workers can be asked: "+err.Error())
	}
	d.reports, d.hasStatuses = reports, err == nil || len(reports) > 0
}

// names are the jobs and keys of what matches.
func (d *diagnosis) names() []string {
	var names []string
	for _, id := range d.ids() {
		names = append(names, id)
		if k := d.factsOf(id).key; k != "" {
			names = append(names, k)
		}
	}
	return names
}

// ids are those whose id or key is one of the texts, in the order in which they were found.
func (d *diagnosis) ids() []string {
	var jobs []string
	add := func(job string) {
		if job != "" && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	for _, e := range d.letters {
		add(e.Job)
	}
	for _, r := range d.records {
		if d.asks(r.Job) || d.asks(r.Key.Value) {
			add(r.Job)
		}
	}
	for _, p := range d.places {
		if id := jobID(p); d.asks(id) || d.asks(p.Envelope.Key) {
			add(id)
		}
	}
	return jobs
}

func (d *diagnosis) asks(name string) bool { return slices.Contains(d.texts, name) }

// jobID is the job that a message is: one without an envelope is called by its place, as workers do.
func jobID(p inspect.Location) string { return cmp.Or(p.Envelope.ID, p.Queue+":"+p.ID) }
