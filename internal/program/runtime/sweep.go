package runtime

import (
	"context"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/internal/program/backends"
)

// sweepAfter is when the first sweep comes at the latest: what lies there from before the start is not left for long intervals.
const sweepAfter = 5 * time.Second

// sweeper brings what the broker dead-letters by itself into the store, again and again.
type sweeper struct {
	queues  *brokerdlq.Queues
	store   dlq.Store
	every   time.Duration
	logger  *slog.Logger
	metrics *metrics
	failing bool
}

// sweep sweeps until ctx is done, where the backends have something to sweep. Workers that started together do not sweep together.
func (r *Runtime) sweep(ctx context.Context, set *backends.Set) {
	if set.Sweeper == nil || r.cfg.DLQ.Sweep <= 0 {
		return
	}
	w := sweeper{queues: set.Sweeper, store: set.Letters, every: r.cfg.DLQ.Sweep, logger: r.logger, metrics: r.metrics}
	pause := mathrand.N(min(sweepAfter, w.every))
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		w.once(ctx)
		pause = w.every - w.every/10 + mathrand.N(w.every/5+1)
	}
}

func (w *sweeper) once(ctx context.Context) {
	report, err := w.queues.Sweep(ctx, w.store)
	w.metrics.swept(report)
	if report.Restored > 0 {
		w.logger.Warn("dead letters that the store had lost were stored again from their copies in the broker", "count", report.Restored)
	}
	if report.Imported > 0 {
		w.logger.Warn("the broker gave up messages by itself: they are dead letters in the store now", "count", report.Imported)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil && !w.failing:
		w.failing = true
		w.logger.Warn("dead letters of the broker's own cannot be brought into the store for now; they stay in the broker", "error", err)
	case err == nil && w.failing:
		w.failing = false
		w.logger.Info("dead letters of the broker's own are brought into the store again")
	}
}
