package worker

import (
	"context"
	"errors"
	"log/slog"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
)

// NewLogObserver returns an observer that logs one line per settled delivery, and one for each other event an operator should know.
//
// Success and deferral log at debug. A failed attempt with another to come, a duplicate, and a job without a handler for its kind log at info.
// A dead letter, a hold, a lost lease and an opened breaker log at warn. A hold that an operator or handler requested logs at info, since
// there may be one per job. Payloads are never logged.
func NewLogObserver(logger *slog.Logger) Observer { return &logObserver{logger: logger} }

type logObserver struct{ logger *slog.Logger }

// Observe implements [Observer].
func (o *logObserver) Observe(event Event) {
	ctx := context.Background()
	switch e := event.(type) {
	case *Settled:
		o.settled(ctx, e)
	case *Lost:
		attrs := jobAttrs(e.Job, e.Kind)
		if errors.Is(e.Err, ErrClaimLost) {
			o.logger.LogAttrs(ctx, slog.LevelWarn, "claim lost", attrs...)
		} else {
			o.logger.LogAttrs(ctx, slog.LevelWarn, "lease lost", attrs...)
		}
	case *BreakerChanged:
		level := slog.LevelInfo
		if e.To == breaker.StateOpen {
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

func (o *logObserver) settled(ctx context.Context, e *Settled) {
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
		if e.Reason == pools.ReasonForcedOpen.String() || e.Reason == ReasonSnoozed {
			return slog.LevelInfo
		}
		return slog.LevelWarn
	case e.Reason == ReasonUnknownKind:
		return slog.LevelInfo // perhaps a typo, which would otherwise go unnoticed until UnknownKindAfter
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
