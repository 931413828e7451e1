package worker

import (
	"context"
	"log/slog"

	"github.com/caisson-go/caisson/pools"
)

// LogObserver writes one wide line per settled delivery and one for each thing that an operator should know.
//
// Levels: success and deferral are debug; a failed attempt that will be tried again, a duplicate and a job that waits for a handler of its
// kind are info; a dead letter, a hold, a lost lease and an opened breaker are warnings. A hold that somebody has asked for, an operator or a
// handler, is info: there may be one for each job. Payloads are never logged.
type LogObserver struct{ logger *slog.Logger }

// NewLogObserver returns an observer that writes to logger.
func NewLogObserver(logger *slog.Logger) *LogObserver { return &LogObserver{logger: logger} }

// Observe implements [Observer].
func (o *LogObserver) Observe(event Event) {
	ctx := context.Background()
	switch e := event.(type) {
	case *Settled:
		o.settled(ctx, e)
	case *LeaseLost:
		o.logger.LogAttrs(ctx, slog.LevelWarn, "lease lost", jobAttrs(e.Job, e.Kind)...)
	case *ClaimLost:
		o.logger.LogAttrs(ctx, slog.LevelWarn, "claim lost", jobAttrs(e.Job, e.Kind)...)
	case *BreakerChanged:
		level := slog.LevelInfo
		if e.To == pools.StateOpen {
			level = slog.LevelWarn
		}
		o.logger.LogAttrs(ctx, level, "breaker changed", slog.String("destination", e.Destination), slog.String("from", e.From.String()),
			slog.String("to", e.To.String()), slog.String("reason", string(e.Reason)))
	case *Paused:
		if e.Err != nil {
			o.logger.LogAttrs(ctx, slog.LevelWarn, "leasing paused", slog.String("what", e.What), slog.Any("error", e.Err))
		} else {
			o.logger.LogAttrs(ctx, slog.LevelInfo, "leasing resumed", slog.String("what", e.What))
		}
	case *Released:
		o.logger.LogAttrs(ctx, slog.LevelInfo, "held jobs released", slog.String("destination", e.Destination), slog.Int("count", e.Count),
			slog.Bool("probe", e.Probe))
	case *CleanUp:
		if e.Err != nil {
			o.logger.LogAttrs(ctx, slog.LevelWarn, "clean-up failed", slog.String("what", e.What), slog.Any("error", e.Err))
		}
	}
}

func (o *LogObserver) settled(ctx context.Context, e *Settled) {
	level := settledLevel(e)
	if !o.logger.Enabled(ctx, level) {
		return
	}
	attrs := append(jobAttrs(e.Job, e.Kind),
		slog.String("queue", e.Queue), slog.String("outcome", e.Outcome.String()), slog.String("settlement", e.Settlement.String()),
		slog.Duration("handle", e.Handle), slog.Duration("total", e.Total))
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", string(e.Reason)))
	}
	if e.Cause != "" {
		attrs = append(attrs, slog.String("cause", string(e.Cause)))
	}
	if e.Delay > 0 {
		attrs = append(attrs, slog.Duration("delay", e.Delay))
	}
	if e.Result != nil {
		attrs = append(attrs, slog.Bool("stored_result", true), slog.Int64("result_bytes", e.Result.Size))
	}
	if e.ResultOmitted {
		attrs = append(attrs, slog.String("result", "too large to keep: only its size and hash are stored"))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	if e.SettleErr != nil {
		attrs = append(attrs, slog.Any("settle_error", e.SettleErr))
	}
	o.logger.LogAttrs(ctx, level, "job settled", attrs...)
}

func settledLevel(e *Settled) slog.Level {
	switch {
	case e.SettleErr != nil, e.ResultOmitted, e.Settlement == SettlementDeadLetter:
		return slog.LevelWarn
	case e.Settlement == SettlementHold:
		if e.Reason == Reason(pools.ReasonForcedOpen.String()) || e.Reason == ReasonSnoozed {
			return slog.LevelInfo
		}
		return slog.LevelWarn
	case e.Reason == ReasonUnknownKind:
		return slog.LevelInfo // mistyped, perhaps: nothing else would say so for a quarter of an hour
	case e.Outcome == OutcomeSucceeded, e.Outcome == OutcomeDeferred:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func jobAttrs(job *Job, kind string) []slog.Attr {
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("kind", kind))
	if job == nil {
		return attrs
	}
	attrs = append(attrs, slog.String("job", job.ID), slog.Int("attempt", job.Attempt), slog.Int("run", job.Run))
	if job.Destination != "" {
		attrs = append(attrs, slog.String("destination", job.Destination))
	}
	return attrs
}
