package brokerdlq

import (
	"context"
	"errors"

	"github.com/caisson-go/caisson/dlq"
)

// A chunk of an import or a purge.
const (
	chunkSize  = 100
	chunkBytes = 4 << 20
)

// Purge removes the dead letters that match f for good and returns how many. Number and report hold for an error as well.
func (q *Queues) Purge(ctx context.Context, f dlq.Filter) (purged int, scanned ScanReport, err error) {
	scanned, err = q.each(ctx, f, func(ctx context.Context, s *scan, chunk []*letter) error {
		var failed error
		for _, err := range s.remove(ctx, chunk) {
			if err == nil {
				purged++
			} else {
				failed = err
			}
		}
		return failed
	})
	return purged, scanned, err
}

// each hands all letters that match f to do, a chunk at a time. ctx stops it between two chunks only.
func (q *Queues) each(
	ctx context.Context, f dlq.Filter, do func(ctx context.Context, s *scan, chunk []*letter) error,
) (report ScanReport, err error) {
	s, err := q.scan(ctx, f)
	if err != nil {
		return report, err
	}
	defer func() {
		report = s.report()
		err = errors.Join(err, s.close(ctx))
	}()
	for {
		if err := s.fill(ctx, f, chunkSize); err != nil {
			return report, err
		}
		if err := ctx.Err(); err != nil {
			return report, err
		}
		chunk := s.take(chunkSize, chunkBytes)
		if len(chunk) == 0 {
			return report, nil
		}
		chunkCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.cfg.Lease)
		err := do(chunkCtx, s, chunk)
		cancel()
		if err != nil {
			return report, err
		}
	}
}
