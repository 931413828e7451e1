package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// attempts is one more than schedule.Webhook has delays.
const attempts = 8

// lookupPause is how long a job is put back while endpoints cannot be looked up.
const lookupPause = 5 * time.Second

// Register registers [KindDeliver] with a sender of its own: 8 attempts over 5 h 51 min ([schedule.Webhook]), each bounded by the total
// timeout. Change the kind's limits with [worker.Registry.Override]. Close the sender after the worker's Run has returned.
func Register(reg *worker.Registry, cfg Config) (*Sender, error) {
	s, err := NewSender(cfg)
	if err != nil {
		return nil, err
	}
	kind := worker.Kind[[]byte]{
		Name: KindDeliver,
		Config: worker.KindConfig{
			Timeout:     s.kindTimeout(),
			MaxAttempts: attempts,
			Backoff:     schedule.Webhook,
		},
	}
	worker.Handle(reg, kind, s.handle)
	return s, nil
}

// DestinationConfig is what an endpoint's breaker and limits should be: at most its concurrency and rate, open for 5 min at 80 % failures
// within 10 min and at least 5 calls. Register it under the endpoint's id.
func DestinationConfig(e Endpoint) pools.DestinationConfig {
	e = e.withDefaults()
	return pools.DestinationConfig{
		Breaker:     pools.WebhookBreaker(),
		Concurrency: e.Concurrency,
		Rate:        pools.RateConfig{Rate: e.Rate},
	}
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
	if s.isDisabled(e) {
		return &worker.Error{Outcome: worker.Rejected, Cause: dlq.CauseEndpointGone, Err: errDisabled, Breaker: pools.Ignored}
	}
	d, err := deliveryOf(job)
	if err != nil {
		return worker.Cancel(err)
	}
	r, err := s.Send(ctx, e, d)
	if err != nil {
		return worker.Cancel(err) // a call that cannot be made today cannot be made tomorrow: repair the endpoint, then replay
	}
	s.cfg.Observe(Attempt{Endpoint: e.ID, Event: d.ID, Job: job.ID, Number: job.Attempt, Response: r})
	logger := worker.Logger(ctx)
	logger.Debug("webhook attempt", "endpoint", e, "status", r.Status, "phase", r.Phase, "resent", r.Resent, "duration", r.Duration)
	if r.Status == 0 && ctx.Err() != nil {
		return cutOff(ctx, job, r)
	}
	err = judge(r, e, s.cfg.Now())
	if r.Status == http.StatusGone && s.markGone(e) {
		logger.Warn("webhook endpoint answered 410 Gone: disabled in this process until it has another URL", "endpoint", e)
	}
	return err
}

// endpoint finds the job's endpoint. A job whose endpoint is not known, or cannot be looked up, waits without an attempt spent.
func (s *Sender) endpoint(ctx context.Context, job *worker.Job) (Endpoint, error) {
	if job.Destination == "" {
		return Endpoint{}, worker.Cancel(errors.New("job names no endpoint: set its destination to the endpoint's id"))
	}
	e, err := s.cfg.Endpoints.Get(ctx, job.Destination)
	switch {
	case err == nil:
		return e.withDefaults(), nil
	case !errors.Is(err, ErrUnknownEndpoint):
		return Endpoint{}, deferred(lookupPause, fmt.Errorf("look up endpoint: %w", err))
	}
	due := job.EnqueuedAt
	if job.NotBefore.After(due) {
		due = job.NotBefore
	}
	if patience := s.cfg.UnknownEndpointAfter; time.Since(due) < patience {
		worker.Logger(ctx).Info("webhook endpoint is not configured here: its job waits", "endpoint", job.Destination, "until", due.Add(patience))
		return Endpoint{}, deferred(max(patience/5, time.Second), err)
	}
	return Endpoint{}, &worker.Error{
		Outcome: worker.Rejected, Cause: dlq.CauseEndpointGone, Breaker: pools.Ignored,
		Err: fmt.Errorf("%w: configure it, then replay", err),
	}
}

func deferred(wait time.Duration, err error) error {
	return &worker.Error{Outcome: worker.Deferred, After: wait, Err: err, Breaker: pools.Ignored}
}

// cutOff is for a call that was ended from outside before any answer. The worker knows a stop and a lost claim by the context's cause. A
// call that had less time than it is due, because the job's deadline came, says nothing about the endpoint.
func cutOff(ctx context.Context, job *worker.Job, r Response) error {
	err := &DeliveryError{Phase: r.Phase, Resent: r.Resent, Err: context.Cause(ctx)}
	if !job.Deadline.IsZero() && !time.Now().Before(job.Deadline) {
		return &worker.Error{Outcome: worker.Failed, Cause: dlq.CauseTimeout, Err: err, Breaker: pools.Ignored}
	}
	return err
}
