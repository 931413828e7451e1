package endpoints

import (
	"context"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/worker"
)

const (
	// sweepBack is how long ago an endpoint may have been disabled for its notice to be looked for. It is shorter than keys of completed jobs are
	// remembered (48 h), so that a notice that was sent is not sent again.
	sweepBack = 24 * time.Hour
	// sweepGrace is left to the process that disabled it.
	sweepGrace = time.Minute
	sweepPage  = 200
)

// plan remembers to enqueue the notice of an endpoint.
func (k *AutoDisabler) plan(e webhook.Endpoint) {
	if k.cfg.Client == nil {
		return
	}
	job := notice(e, k.cfg.Queue)
	if _, told := k.told[job.ID]; !told {
		k.notices[job.ID] = job
	}
}

// notify enqueues what is planned. What the broker does not take stays planned.
func (k *AutoDisabler) notify(ctx context.Context, now time.Time) {
	if len(k.notices) == 0 {
		return
	}
	jobs := make([]worker.NewJob, 0, len(k.notices))
	for _, job := range k.notices {
		jobs = append(jobs, job)
	}
	for _, r := range k.cfg.Client.EnqueueMany(ctx, jobs) {
		if r.Err != nil {
			if k.warns(now) {
				k.cfg.Logger.Warn("the notice that a webhook endpoint was disabled could not be enqueued; trying again", "job", r.ID, "error", r.Err)
			}
			continue
		}
		delete(k.notices, r.ID)
		k.told[r.ID] = now
	}
}

// sweep plans the notices of endpoints that were disabled lately and that this process has not told of: whoever disabled them may have died first.
// Each process enqueues them once, under one id, and one of those jobs runs.
func (k *AutoDisabler) sweep(ctx context.Context, now time.Time) {
	if k.cfg.Client == nil || now.Sub(k.swept) < k.cfg.Sweep {
		return
	}
	for id, at := range k.told {
		if now.Sub(at) > 2*sweepBack {
			delete(k.told, id)
		}
	}
	for after := ""; ; {
		page, err := k.cfg.Registry.List(ctx, Filter{State: webhook.StateDisabled}, after, sweepPage)
		if err != nil && len(page) == 0 { // what cannot be decrypted is no reason to leave out the others
			return // the store's own error shows where it matters; look again
		}
		for _, e := range page {
			if age := now.Sub(e.Since); ours(e.Endpoint) && age >= sweepGrace && age < sweepBack {
				k.plan(e.Endpoint)
			}
		}
		if len(page) < sweepPage {
			break
		}
		after = page[len(page)-1].ID
	}
	k.swept = now
}
