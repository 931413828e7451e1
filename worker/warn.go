package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/caisson-go/caisson/queue/inspect"
)

// warn logs what is legal, but seldom meant.
func (w *Worker) warn() {
	for _, k := range w.kinds.all {
		if span := k.config.Backoff.Span(k.config.MaxAttempts); span > k.config.MaxAge {
			w.cfg.Logger.Warn("attempts may take longer than the max age: late ones expire instead", "kind", k.name, "attempts", k.config.MaxAttempts,
				"span", span, "max_age", k.config.MaxAge)
		}
	}
	if w.deadLetters == nil {
		w.cfg.Logger.Info("dead letters have no store: jobs of sick destinations are put back, none is held")
	}
}

// inspectTime bounds the look at one queue.
const inspectTime = 30 * time.Second

// inspect has the broker judge each queue, and logs what an operator should know. Nothing that it finds stops the worker.
func (w *Worker) inspect(ctx context.Context) {
	inspector, ok := w.cfg.Broker.(inspect.Inspector)
	if !ok {
		return
	}
	for _, q := range w.cfg.Queues {
		w.inspectQueue(ctx, inspector, q.Name)
	}
}

func (w *Worker) inspectQueue(ctx context.Context, inspector inspect.Inspector, name string) {
	looking, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	findings, err := inspector.Inspect(looking, name, w.Use())
	if err != nil && ctx.Err() == nil {
		w.cfg.Logger.Warn("queue could not be inspected", "queue", name, "error", err)
	}
	for _, f := range findings {
		level := slog.LevelWarn
		switch f.Severity {
		case inspect.SeverityNote:
			continue
		case inspect.SeverityFault:
			level = slog.LevelError
		}
		w.cfg.Logger.Log(ctx, level, "queue inspected", "queue", f.Queue, "severity", string(f.Severity), "finding", f.What, "remedy", f.Remedy)
	}
}

// Use says what the registered kinds need of a queue: any of them may come from any queue.
func (w *Worker) Use() inspect.Use {
	var use inspect.Use
	for _, k := range w.kinds.all {
		use.MaxAttempts = max(use.MaxAttempts, k.config.MaxAttempts)
		use.LongestRun = max(use.LongestRun, k.config.Timeout+k.config.TimeoutGrace)
		use.MaxAge = max(use.MaxAge, k.config.MaxAge)
	}
	return use
}
