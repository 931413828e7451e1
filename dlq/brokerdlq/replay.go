package brokerdlq

import (
	"context"
	"errors"

	"github.com/caisson-go/caisson/dlq/replay"
)

// Replay publishes dead letters again, as [replay.Replay] does, and removes each when its new message is confirmed. cfg.Store is ignored, and
// cfg.Broker may be nil. A dry run looks at [Config.MaxKept] messages at most and changes nothing. Matched counts what was met; Left is an
// estimate if the scan is incomplete.
func (q *Queues) Replay(ctx context.Context, cfg replay.Config) (report replay.Report, scanned ScanReport, err error) {
	s, err := q.scan(ctx, cfg.Filter)
	if err != nil {
		return report, scanned, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	cfg.Store = s
	if cfg.Broker == nil {
		cfg.Broker = q.cfg.Broker
	}
	r, err := replay.New(cfg)
	if err != nil {
		return report, scanned, err
	}
	report, err = r.Run(ctx)
	report.Matched = s.matched
	return report, s.report(), err
}
