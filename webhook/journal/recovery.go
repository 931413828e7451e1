package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/internal/deliver"
	"github.com/caisson-go/caisson/worker"
)

// RecoveryConfig configures a [Recovery].
type RecoveryConfig struct {
	// Store has the events and attempts. Required.
	Store Store
	// Client enqueues. Required.
	Client *worker.Client
	// Queue of the deliveries that are enqueued. Empty means the client's. Dead letters go back to their own.
	Queue string
	// Ordering takes the missed deliveries of endpoints that ask for order. Nil refuses to recover such.
	Ordering webhook.Ordering
	// DeadLetters holds what was given up, usually a [dlq.Store], and Broker takes it. Nil leaves dead letters alone.
	DeadLetters replay.Source
	Broker      dlq.Broker
	// Audit gets a record of each RecoverSince, in the name of Actor, usually user@host. Without the record nothing is begun. Nil means none.
	Audit audit.Log
	Actor string
	// Claims tells which of the dead letters were delivered meanwhile. Nil means that nobody can tell.
	Claims replay.KeyReader
	// Rate is the most deliveries per second that RecoverSince enqueues. Zero means no limit.
	Rate float64
	// Batch is how many events are looked at, and enqueued, at once. Zero means 100.
	Batch int
}

// Recovery sends kept events to an endpoint again. It is safe for concurrent use.
type Recovery struct{ cfg RecoveryConfig }

// Recovered tells what [Recovery.RecoverSince] did.
type Recovered struct {
	// Events is how many events since then the endpoint wants.
	Events int `json:"events"`
	// Missed is how many of them it had no attempt of and no dead letter, and were enqueued. Some may just have waited in the queue: a copy
	// of a delivery does no harm.
	Missed int `json:"missed"`
	// Replay is what became of its dead letters.
	Replay replay.Report `json:"replay"`
}

// NewRecovery returns a recovery.
func NewRecovery(cfg RecoveryConfig) (*Recovery, error) {
	cfg.Batch = cmp.Or(cfg.Batch, 100)
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(cfg.Store != nil, "store: required")
	check(cfg.Client != nil, "client: required")
	check((cfg.DeadLetters == nil) == (cfg.Broker == nil), "dead letters and broker: set both or neither")
	check(cfg.Rate >= 0 && cfg.Batch > 0, "rate %v, batch %d: must not be negative", cfg.Rate, cfg.Batch)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("webhook recovery: %w", err)
	}
	if cfg.Rate > 0 { // small batches come evenly
		cfg.Batch = max(1, min(cfg.Batch, int(cfg.Rate/10)))
	}
	return &Recovery{cfg: cfg}, nil
}

// Resend sends a kept event to an endpoint again, also if it was delivered or its type is not among the endpoint's. The receiver gets the same
// webhook-id and may drop it. It returns the id of the job, which has attempts of its own and waits in no ordered queue. [webhook.ErrNoEvent] if it is not kept.
func (r *Recovery) Resend(ctx context.Context, e webhook.Endpoint, eventID string) (job string, err error) {
	tenant := cmp.Or(e.Tenant, webhook.DefaultTenant)
	event, err := r.cfg.Store.Event(ctx, tenant, eventID)
	if err != nil {
		return "", fmt.Errorf("resend event %s of tenant %q to endpoint %s: %w", eventID, tenant, e.ID, err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("resend event %s: make a job id: %w", eventID, err)
	}
	j := deliver.New(e.ID, deliver.Event{ID: event.ID, Tenant: event.Tenant, ContentType: event.ContentType, Body: event.Body})
	j.ID, j.Key, j.Queue = id.String(), j.Key+"#resend-"+id.String(), r.cfg.Queue
	return r.cfg.Client.Enqueue(ctx, j)
}

// RecoverSince replays the endpoint's dead letters that were stored since then, and enqueues the events published since then that it wants
// and that it had no attempt of. What was delivered is not sent again, for as long as attempts and idempotency keys are kept. It may be repeated,
// also after an error, with which it returns what it did until then.
func (r *Recovery) RecoverSince(ctx context.Context, e webhook.Endpoint, since time.Time) (out Recovered, err error) {
	if e.Ordered && r.cfg.Ordering == nil {
		return out, fmt.Errorf("recover endpoint %s: it asks for order: give the recovery an Ordering", e.ID)
	}
	end, err := r.record(ctx, e, since)
	if err != nil {
		return out, fmt.Errorf("recover endpoint %s: %w", e.ID, err)
	}
	defer func() { err = end(out, err) }()
	e.Tenant = cmp.Or(e.Tenant, webhook.DefaultTenant)
	filter := EventFilter{Tenant: e.Tenant, From: since, To: time.Now().Add(time.Minute)} // the store's clock may be ahead
	err = r.replay(ctx, e, since, &out)
	if err != nil && ctx.Err() != nil {
		return out, fmt.Errorf("recover endpoint %s: %w", e.ID, err)
	}
	errs := []error{err}
	for after, more := "", true; more; more = after != "" {
		var page []webhook.Event
		if page, after, err = r.cfg.Store.Events(ctx, filter, after, r.cfg.Batch); err == nil {
			err = r.recoverPage(ctx, e, page, &out)
		}
		if err != nil {
			errs = append(errs, err)
			break
		}
	}
	if err := errors.Join(errs...); err != nil {
		return out, fmt.Errorf("recover endpoint %s: %w", e.ID, err)
	}
	return out, nil
}

// replay starts the next run of each dead letter. The deadlines of ordered deliveries are over by then; they are sent all the same.
func (r *Recovery) replay(ctx context.Context, e webhook.Endpoint, since time.Time, out *Recovered) error {
	if r.cfg.DeadLetters == nil {
		return nil
	}
	replay, err := replay.New(replay.Config{
		Store: r.cfg.DeadLetters, Broker: r.cfg.Broker, Claims: r.cfg.Claims, Rate: r.cfg.Rate, DropDeadline: true,
		Filter: dlq.Filter{Kind: webhook.KindDeliver, Destination: e.ID, Since: since},
	})
	if err != nil {
		return err
	}
	out.Replay, err = replay.Run(ctx)
	return err
}

// recoverPage enqueues those of a page that the endpoint wants and missed.
func (r *Recovery) recoverPage(ctx context.Context, e webhook.Endpoint, page []webhook.Event, out *Recovered) error {
	var wanted []webhook.Event
	var ids []string
	for _, event := range page {
		if e.Wants(event.Type) {
			wanted, ids = append(wanted, event), append(ids, event.ID)
		}
	}
	if len(wanted) == 0 {
		return ctx.Err()
	}
	out.Events += len(wanted)
	tried, err := r.cfg.Store.Tried(ctx, e.Tenant, e.ID, ids)
	if err != nil {
		return err
	}
	dead, err := r.letters(ctx, e, ids)
	if err != nil {
		return err
	}
	var missed []webhook.Event
	for _, event := range wanted {
		if !tried[event.ID] && !dead[dlq.EntryID(deliver.ID(e.Tenant, e.ID, event.ID), 0)] {
			missed = append(missed, event)
		}
	}
	return r.enqueue(ctx, e, missed, out)
}

// letters returns which deliveries of the events have an entry, dead or held, replayed or purged.
func (r *Recovery) letters(ctx context.Context, e webhook.Endpoint, events []string) (map[string]bool, error) {
	found := make(map[string]bool)
	if r.cfg.DeadLetters == nil {
		return found, nil
	}
	entries := make([]string, len(events))
	for i, id := range events {
		entries[i] = dlq.EntryID(deliver.ID(e.Tenant, e.ID, id), 0)
	}
	list, _, err := r.cfg.DeadLetters.List(ctx, dlq.Filter{IDs: entries, States: dlq.States()}, "", len(entries))
	for _, entry := range list {
		found[entry.ID] = true
	}
	return found, err
}

// enqueue enqueues deliveries under the keys of their events, as publishing them did.
func (r *Recovery) enqueue(ctx context.Context, e webhook.Endpoint, missed []webhook.Event, out *Recovered) error {
	if len(missed) == 0 {
		return nil
	}
	var errs []error
	if e.Ordered {
		for _, event := range missed {
			n, err := r.cfg.Ordering.Append(ctx, event, []string{e.ID})
			if out.Missed += n; err != nil {
				return err // nothing may come before it
			}
		}
	} else {
		jobs := make([]worker.NewJob, len(missed))
		for i, event := range missed {
			jobs[i] = deliver.New(e.ID, deliver.Event{ID: event.ID, Tenant: event.Tenant, ContentType: event.ContentType, Body: event.Body})
			jobs[i].Queue = r.cfg.Queue
		}
		for _, result := range r.cfg.Client.EnqueueMany(ctx, jobs) {
			if errs = append(errs, result.Err); result.Err == nil {
				out.Missed++
			}
		}
	}
	if r.cfg.Rate > 0 && !pause.For(ctx, time.Duration(float64(len(missed))/r.cfg.Rate*float64(time.Second))) {
		errs = append(errs, context.Cause(ctx))
	}
	return errors.Join(errs...)
}
