package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook/internal/deliver"
	"github.com/caisson-go/caisson/worker"
)

// attempts is one more than schedule.WebhookBackoff has delays.
const attempts = 8

// How long a job is put back.
const (
	// lookupPause is for one whose endpoint cannot be looked up.
	lookupPause = 5 * time.Second
	// newPause is for one whose endpoint is not known, at first: usually it was added a moment ago, and a mirror sees it in the next one. It
	// doubles from then on.
	newPause = 2 * time.Second
	// closedPause is for one whose endpoint is paused or disabled, where it cannot be held.
	closedPause = 30 * time.Second
)

// errGone is why jobs of an endpoint are given up without a call.
var errGone = errors.New("endpoint is gone: enable it, then replay its dead letters")

// Register registers the sender as the handler of [KindDeliver]: 8 attempts over 5 h 51 min ([schedule.WebhookBackoff]), or as many as the endpoint's own
// backoff has delays and one more, each bounded by the total timeout. Change the kind's limits with [worker.Registry.Configure]. Close the sender
// after the worker's Run has returned.
func (s *Sender) Register(reg *worker.Registry) {
	worker.Handle(reg, worker.Kind[[]byte]{
		Name: KindDeliver,
		Config: worker.KindConfig{
			Timeout:     s.cfg.Timeouts.Total,
			MaxAttempts: attempts,
			Backoff:     schedule.WebhookBackoff,
		},
		Attempts: s.attempts,
	}, s.handle)
}

// attempts is how many attempts a delivery has by its endpoint's own backoff; 0 if it has none, or one without an end.
func (s *Sender) attempts(job *worker.Job) int {
	e, err := s.cfg.Endpoints.Get(context.Background(), job.Destination)
	if err != nil {
		return 0 // the handler finds out what is wrong
	}
	return e.Attempts()
}

// handle is the kind's handler. The job's payload is the body.
func (s *Sender) handle(ctx context.Context, _ []byte) error {
	return s.deliver(ctx, worker.JobFrom(ctx))
}

// deliver is one attempt, top to bottom.
func (s *Sender) deliver(ctx context.Context, job *worker.Job) error {
	e, err := s.endpoint(ctx, job)
	if err != nil {
		return err
	}
	if s.isGone(e) {
		if e, err = s.renewed(ctx, job); err != nil {
			return err
		}
	}
	if of, ok := job.Headers[deliver.HeaderTenant]; ok && of != e.Tenant {
		return &worker.Error{
			Outcome: worker.OutcomeRejected, Cause: dlq.CauseEndpointGone, Breaker: breaker.OutcomeIgnored,
			Err: fmt.Errorf("event is of tenant %q, and the endpoint's id is another tenant's by now: add an endpoint for the tenant and resend the event to it", of),
		}
	}
	if err := s.closed(e); err != nil {
		return err
	}
	d, err := deliveryOf(job)
	if err != nil {
		return worker.Cancel(err)
	}
	r, err := s.Send(ctx, e, d)
	if err != nil {
		return worker.Cancel(err) // a call that cannot be made today cannot be made tomorrow: repair the endpoint, then replay
	}
	cut := wasCutOff(ctx, job, r)
	s.observe(ctx, e, d, job, r, cut)
	s.log(ctx, e, r)
	if cut {
		return cutOff(ctx, job, r)
	}
	if r.Status == http.StatusGone && s.gone.add(e) {
		worker.Logger(ctx).Warn("webhook endpoint answered 410 Gone: no more calls from this process until it is enabled or has another URL", "endpoint", e)
	}
	return judge(r, e, s.cfg.Now())
}

// log leaves a line of the attempt where somebody reads such lines. Making one that nobody reads costs as much as the signature.
func (s *Sender) log(ctx context.Context, e Endpoint, r Response) {
	if !worker.Logger(ctx).Enabled(ctx, slog.LevelDebug) {
		return
	}
	worker.Logger(ctx).Debug("webhook attempt", "endpoint", e, "status", r.Status, "phase", r.Phase, "resent", r.Resent, "duration", r.Duration)
}

// closed is why an endpoint gets no call now, nil if it does. Usually the worker has heard before that its destination is closed, and has held
// the job: see [Apply].
func (s *Sender) closed(e Endpoint) error {
	switch {
	case s.isGone(e):
		return &worker.Error{Outcome: worker.OutcomeRejected, Cause: dlq.CauseEndpointGone, Err: errGone, Breaker: breaker.OutcomeIgnored}
	case e.State != StateActive:
		return &worker.Error{
			Outcome: worker.OutcomeDeferred, Hold: true, After: closedPause, Breaker: breaker.OutcomeIgnored,
			Err: fmt.Errorf("endpoint is %s: its jobs wait until it is enabled", e.State),
		}
	}
	return nil
}

func (s *Sender) isGone(e Endpoint) bool { return e.Gone() || s.gone.has(e) }

// renewed looks a job's endpoint up once more, where that was answered from memory.
func (s *Sender) renewed(ctx context.Context, job *worker.Job) (Endpoint, error) {
	if r, ok := s.cfg.Endpoints.(renewer); ok {
		ctx, cancel := context.WithTimeout(ctx, lookupPause)
		defer cancel()
		if err := r.Renew(ctx); err != nil {
			return Endpoint{}, deferred(lookupPause, fmt.Errorf("endpoint is gone as far as is known here; look it up again: %w", err))
		}
	}
	return s.endpoint(ctx, job)
}

// endpoint finds the job's endpoint. A job whose endpoint is not known, or cannot be looked up, waits without an attempt spent.
func (s *Sender) endpoint(ctx context.Context, job *worker.Job) (Endpoint, error) {
	if job.Destination == "" {
		return Endpoint{}, worker.Cancel(errors.New("job names no endpoint: set its destination to the endpoint's id"))
	}
	e, err := s.cfg.Endpoints.Get(ctx, job.Destination)
	switch {
	case err == nil:
		return e.WithDefaults(), nil
	case !errors.Is(err, ErrUnknownEndpoint):
		return Endpoint{}, deferred(lookupPause, fmt.Errorf("look up endpoint: %w", err))
	}
	due := job.EnqueuedAt
	if job.NotBefore.After(due) {
		due = job.NotBefore
	}
	if unknownAfter, waited := s.cfg.UnknownEndpointAfter, time.Since(due); waited < unknownAfter {
		worker.Logger(ctx).Info("webhook endpoint is not configured here: its job waits", "endpoint", job.Destination, "until", due.Add(unknownAfter))
		return Endpoint{}, deferred(min(max(waited, newPause), max(unknownAfter/5, time.Second)), err)
	}
	return Endpoint{}, &worker.Error{
		Outcome: worker.OutcomeRejected, Cause: dlq.CauseEndpointGone, Breaker: breaker.OutcomeIgnored,
		Err: fmt.Errorf("%w: configure it, then replay", err),
	}
}

func deferred(wait time.Duration, err error) error {
	return &worker.Error{Outcome: worker.OutcomeDeferred, After: wait, Err: err, Breaker: breaker.OutcomeIgnored}
}

// wasCutOff reports whether a call was ended from outside before any answer, in a way that says nothing about the endpoint. The timeout of the
// kind, or one that adapts, does say something: the endpoint had all of it.
func wasCutOff(ctx context.Context, job *worker.Job, r Response) bool {
	if r.Status != 0 || ctx.Err() == nil {
		return false
	}
	inTime := job.Deadline.IsZero() || time.Now().Before(job.Deadline)
	return !inTime || !errors.Is(context.Cause(ctx), worker.ErrTimeout)
}

// cutOff is for such a call. The worker knows a stop and a lost claim by the context's cause. A
// call that had less time than it is due, because the job's deadline came, says nothing about the endpoint.
func cutOff(ctx context.Context, job *worker.Job, r Response) error {
	err := &deliveryError{Phase: r.Phase, Resent: r.Resent, Err: context.Cause(ctx)}
	if !job.Deadline.IsZero() && !time.Now().Before(job.Deadline) {
		return &worker.Error{Outcome: worker.OutcomeFailed, Cause: dlq.CauseTimeout, Err: err, Breaker: breaker.OutcomeIgnored}
	}
	return err
}
