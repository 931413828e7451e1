package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/pause"
)

// Canary tries a few jobs and waits for what becomes of them before the rest is replayed.
type Canary struct {
	// Size is how many jobs are tried first. Zero means none: no canary.
	Size int
	// MaxFail is the most of them, in percent, that may die again. Zero means none.
	MaxFail float64
	// Outcomes tells what became of them. Required if Size is set. [StoreOutcomes] asks the stores.
	Outcomes Outcomes
	// Wait is how long to wait for all of them. It should cover a job's attempts with their backoff. Zero means 5 minutes.
	Wait time.Duration
	// Poll is how often to ask. Zero means 1 s.
	Poll time.Duration
}

func (c Canary) withDefaults() Canary {
	c.Wait = cmp.Or(c.Wait, 5*time.Minute)
	c.Poll = cmp.Or(c.Poll, time.Second)
	return c
}

func (c Canary) validate() error {
	switch {
	case c.Size < 0 || c.Wait < 0 || c.Poll < 0:
		return fmt.Errorf("canary of %d, wait %v, poll %v: must not be negative", c.Size, c.Wait, c.Poll)
	case c.MaxFail < 0 || c.MaxFail > 100:
		return fmt.Errorf("canary: max fail of %v %% must be from 0 to 100", c.MaxFail)
	case c.Size > 0 && c.Outcomes == nil:
		return errors.New("canary: outcomes are missing: without them nobody knows whether the jobs died again")
	}
	return nil
}

// Errors of a canary. Match them with errors.Is.
var (
	// ErrCanaryFailed means that more of the first jobs died again than allowed. The rest stays dead.
	ErrCanaryFailed = errors.New("canary failed")
	// ErrCanaryUndecided means that the first jobs did not end in time. The rest stays dead.
	ErrCanaryUndecided = errors.New("canary undecided")
)

// CanaryReport is what became of the jobs that were tried first.
type CanaryReport struct {
	Size      int `json:"size"`
	Completed int `json:"completed"`
	Died      int `json:"died"`
	// Pending have not ended yet.
	Pending int `json:"pending"`
}

// Status is what became of a replayed run.
type Status uint8

// The statuses.
const (
	// StatusPending: the run has not ended yet, or nobody knows.
	StatusPending Status = iota
	// StatusCompleted: the job's key is completed.
	StatusCompleted
	// StatusDied: the run is a dead letter.
	StatusDied
)

// Outcomes tells what became of replayed runs.
type Outcomes interface {
	Status(ctx context.Context, r Republished) (Status, error)
}

// StoreOutcomes reads outcomes from the stores that workers write to. Jobs that claim no key never count as completed.
type StoreOutcomes struct {
	Claims  idempotency.Store
	Letters dlq.Store
}

// Status implements [Outcomes].
func (s StoreOutcomes) Status(ctx context.Context, r Republished) (Status, error) {
	entry, err := s.Letters.Get(ctx, dlq.EntryID(r.Job, r.Run))
	switch {
	case err == nil && entry.State != dlq.StateHeld:
		return StatusDied, nil
	case err != nil && !errors.Is(err, dlq.ErrNotFound):
		return StatusPending, fmt.Errorf("dead letter of %s run %d: %w", r.Job, r.Run, err)
	}
	rec, err := s.Claims.Get(ctx, r.Key)
	switch {
	case err == nil && rec.State == idempotency.StatusCompleted:
		return StatusCompleted, nil
	case err != nil && !errors.Is(err, idempotency.ErrNotFound):
		return StatusPending, fmt.Errorf("key of %s: %w", r.Job, err)
	}
	return StatusPending, nil
}

// canary replays the first jobs and returns nil if the rest may follow.
func (r *runner) canary(ctx context.Context) error {
	var tried []Republished
	for len(tried) < r.Canary.Size {
		chunk, err := r.next(ctx, min(r.ChunkSize, r.Canary.Size-len(tried)))
		tried = append(tried, chunk.replayed...)
		r.report.Canary = CanaryReport{Size: len(tried), Pending: len(tried)}
		if err != nil {
			return err
		}
		if !chunk.more {
			break
		}
	}
	deadline := time.Now().Add(r.Canary.Wait)
	for {
		if err := r.askOutcomes(ctx, tried); err != nil {
			return err
		}
		c := r.report.Canary
		switch {
		case float64(c.Died)*100 > r.Canary.MaxFail*float64(c.Size):
			return fmt.Errorf("%w: %d of %d jobs died again, %v %% are allowed; the others stay dead", ErrCanaryFailed, c.Died, c.Size, r.Canary.MaxFail)
		case c.Pending == 0:
			return nil
		case !time.Now().Before(deadline):
			return fmt.Errorf("%w: %d of %d jobs have not ended within %v; the others stay dead: wait longer, or look why", ErrCanaryUndecided,
				c.Pending, c.Size, r.Canary.Wait)
		}
		if r.Progress != nil {
			r.Progress(r.copyReport())
		}
		pause.For(ctx, r.Canary.Poll)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// askOutcomes asks what became of all jobs and counts it anew.
func (r *runner) askOutcomes(ctx context.Context, tried []Republished) error {
	c := CanaryReport{Size: len(tried)}
	for _, run := range tried {
		status, err := r.Canary.Outcomes.Status(ctx, run)
		if err != nil {
			return fmt.Errorf("canary: %w", err)
		}
		switch status {
		case StatusCompleted:
			c.Completed++
		case StatusDied:
			c.Died++
		default:
			c.Pending++
		}
	}
	r.report.Canary = c
	return nil
}
