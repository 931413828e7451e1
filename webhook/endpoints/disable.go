package endpoints

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
)

// reportBatch bounds one call of the store.
const reportBatch = 500

// stale is how old what this process saw may be to be judged at once, and not less than a few intervals. After a longer absence of the store other processes have news of their own,
// which may be better, and get the time to report them.
const stale = time.Minute

// report hands the store what was seen, and returns what all processes saw of those endpoints. What it does not take is kept.
func (k *AutoDisabler) report(ctx context.Context, now time.Time) []Health {
	deltas := k.tally.take(now, k.cfg.Window)
	var all []Health
	for len(deltas) > 0 {
		n := min(len(deltas), reportBatch)
		list, err := k.cfg.Registry.cfg.Store.Report(ctx, deltas[:n])
		if err != nil {
			k.tally.putBack(deltas)
			return k.fresh(all, now, false)
		}
		all, deltas = append(all, list...), deltas[n:]
	}
	return k.fresh(all, now, true)
}

// fresh returns list unless reports were missed for a while.
func (k *AutoDisabler) fresh(list []Health, now time.Time, complete bool) []Health {
	missed := now.Sub(k.reported) > max(stale, 3*k.cfg.Interval)
	if complete {
		k.reported = now
	}
	if missed {
		return nil
	}
	return list
}

// judge disables an endpoint whose health says so.
func (k *AutoDisabler) judge(ctx context.Context, h Health, now time.Time) {
	if k.doubt.raised || now.Sub(k.began) < k.cfg.Window || h.Failures < int64(k.cfg.Failures) {
		return
	}
	e, err := k.cfg.Endpoints.Get(ctx, h.Endpoint)
	if err != nil || e.State != webhook.StateActive && e.State != "" || !k.due(e, h, now) || !k.tally.convinced(h.Endpoint, h.FailingSince, k.floor()) {
		return // the next failure brings it here again
	}
	// Somebody may have enabled it meanwhile, which forgets its failures.
	h, err = k.cfg.Registry.Health(ctx, h.Endpoint)
	if err != nil || !k.due(e, h, now) {
		return
	}
	entry, changed, err := k.disable(ctx, h.Endpoint, webhook.ReasonFailing, func(e webhook.Endpoint) bool { return e.State == webhook.StateActive })
	if err != nil {
		if k.warns(now) {
			k.cfg.Logger.Warn("webhook endpoint that fails could not be disabled; trying again at its next failure", "endpoint", e, "error", err)
		}
		return
	}
	k.disabled(entry, changed, "failures", h.Failures, "failing_since", h.FailingSince)
}

// due is the rule.
func (k *AutoDisabler) due(e webhook.Endpoint, h Health, now time.Time) bool {
	s := e.Backoff
	if s.IsZero() {
		s = k.cfg.Backoff
	}
	return h.Failures >= int64(k.cfg.Failures) && !h.FailingSince.IsZero() && now.Sub(h.FailingSince) >= max(length(s, k.cfg.Attempts), k.floor())
}

// leastFailing is how long an endpoint must have failed however short its backoff is: restarts and outages of minutes disable nobody.
const leastFailing = time.Hour

// floor is the shortest time after which an endpoint is disabled. It leaves the fleet guard the time to see that all fail.
func (k *AutoDisabler) floor() time.Duration { return max(leastFailing, 2*k.cfg.Window) }

// length is how long a delivery goes on, jitter left out: 5 h 51 min for the usual 8 attempts.
func length(s schedule.Backoff, attempts int) time.Duration {
	var total time.Duration
	for n := 1; n < attempts; n++ {
		total += s.Nominal(n)
	}
	return total
}

// closeGone disables endpoints that answered 410.
func (k *AutoDisabler) closeGone(ctx context.Context, now time.Time) {
	k.mu.Lock()
	list := make([]*webhook.Attempt, 0, len(k.gone))
	for _, a := range k.gone {
		list = append(list, a)
	}
	k.mu.Unlock()
	for _, a := range list {
		switch err := k.closeOne(ctx, *a); {
		case err == nil, errors.Is(err, webhook.ErrUnknownEndpoint):
			k.mu.Lock()
			if k.gone[a.Endpoint] == a {
				delete(k.gone, a.Endpoint)
			}
			k.mu.Unlock()
		case k.warns(now):
			k.cfg.Logger.Warn("webhook endpoint that answered 410 Gone could not be disabled; trying again", "endpoint", a.Endpoint, "error", err)
		}
	}
}

// closeOne disables one, unless it has another URL by now, or somebody has enabled it since.
func (k *AutoDisabler) closeOne(ctx context.Context, a webhook.Attempt) error {
	entry, changed, err := k.disable(ctx, a.Endpoint, webhook.ReasonGone, func(e webhook.Endpoint) bool {
		return a.WentTo(e) && !a.At.Before(e.Since)
	})
	if err != nil {
		return err
	}
	k.disabled(entry, changed)
	return nil
}

// disable disables an endpoint if it is due. Where the store does not say whether it did, ask finds out.
func (k *AutoDisabler) disable(ctx context.Context, id, reason string, due func(webhook.Endpoint) bool) (Entry, bool, error) {
	entry, changed, err := k.cfg.Registry.disable(ctx, id, reason, due)
	switch {
	case changed:
		delete(k.unsure, id)
	case errors.Is(err, ErrUnavailable) && entry.State == webhook.StateDisabled:
		k.unsure[id] = entry.Since
	}
	return entry, changed, err
}

// ask tells the world of endpoints that this process did disable, although the answer was lost. A write that is under way comes to its end within
// a minute.
func (k *AutoDisabler) ask(ctx context.Context, now time.Time) {
	for id, since := range k.unsure {
		e, err := k.cfg.Registry.Get(ctx, id)
		if errors.Is(err, ErrUnavailable) {
			return
		}
		done := err == nil && ours(e.Endpoint) && e.Since.Sub(since).Abs() < time.Microsecond // stores keep no more
		if done || err != nil || now.Sub(since) > stale {
			delete(k.unsure, id)
		}
		k.disabled(e, done)
	}
}

// disabled tells the world, if it was this process that did it.
func (k *AutoDisabler) disabled(entry Entry, changed bool, more ...any) {
	if !changed {
		return
	}
	k.cfg.Logger.Warn("webhook endpoint was disabled: its jobs wait until it is enabled, or are dead letters if it is gone",
		append([]any{"endpoint", entry.Endpoint, "reason", entry.Reason}, more...)...)
	k.cfg.OnDisabled(entry.Endpoint)
	k.plan(entry.Endpoint)
}
