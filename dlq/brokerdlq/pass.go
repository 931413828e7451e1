package brokerdlq

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-go/caisson/dlq"
)

// Pass is what a pass over dead-letter queues tells beside its results.
type Pass struct {
	// PassedOver is how many dead letters did not match. They were given back.
	PassedOver int `json:"passed_over"`
	// Later is how many came after the pass began. They were given back.
	Later int `json:"later,omitempty"`
	// Copies is how many further copies of a letter that left were removed.
	Copies int `json:"copies,omitempty"`
	// Incomplete says that the pass ended before it had met all.
	Incomplete bool `json:"incomplete,omitempty"`
}

// ReplayReport tells how far a replay came. Matched counts what was met; Left is an estimate if the pass is incomplete.
type ReplayReport struct {
	dlq.Report
	Pass
}

// Replay publishes dead letters again, as [dlq.Replay] does, and removes each when its new message is confirmed. cfg.Store is ignored, and
// cfg.Broker may be nil. A dry run looks at as many as [Config.MaxKept] and changes nothing.
func (q *Queues) Replay(ctx context.Context, cfg dlq.ReplayConfig) (report ReplayReport, err error) {
	d, err := q.drain(ctx, cfg.Filter)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, d.close(ctx)) }()
	cfg.Store = d
	if cfg.Broker == nil {
		cfg.Broker = q.cfg.Broker
	}
	r, err := dlq.NewReplay(cfg)
	if err != nil {
		return report, err
	}
	report.Report, err = r.Run(ctx)
	report.Pass, report.Matched = d.pass(), d.matched
	return report, err
}

// Sample is some of the dead letters.
type Sample struct {
	// Entries have their messages. They come in the order of the queues.
	Entries []dlq.Entry
	// Looked is how many messages were looked at.
	Looked int
	// Complete says that these are all that match.
	Complete bool
}

// Sample looks at dead letters until n match f, or it has looked at [Config.MaxKept], and gives all back unchanged. While it looks, nobody else
// receives them.
func (q *Queues) Sample(ctx context.Context, f dlq.Filter, n int) (s Sample, err error) {
	d, err := q.drain(ctx, f)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, d.close(ctx)) }()
	d.end = time.Time{} // what has just come is worth a look, whatever the clocks say
	for more := "more"; more != "" && len(s.Entries) < n; {
		var list []dlq.Entry
		if list, more, err = d.List(ctx, f, "", n-len(s.Entries)); err != nil {
			return s, err
		}
		s.Entries = append(s.Entries, list...)
	}
	s.Looked, s.Complete = d.looked, len(d.queue) == 0 && len(d.order) == 0
	return s, nil
}

// A batch of an import or a purge.
const (
	batchSize  = 100
	batchBytes = 4 << 20
)

// PurgeReport tells what a purge did.
type PurgeReport struct {
	// Purged dead letters are gone for good.
	Purged int `json:"purged"`
	Pass
}

// Purge removes the dead letters that match f for good. The report holds for an error as well.
func (q *Queues) Purge(ctx context.Context, f dlq.Filter) (report PurgeReport, err error) {
	report.Pass, err = q.each(ctx, f, func(ctx context.Context, d *drain, batch []*letter) error {
		var failed error
		for _, err := range d.remove(ctx, batch) {
			if err == nil {
				report.Purged++
			} else {
				failed = err
			}
		}
		return failed
	})
	return report, err
}

// each hands all letters that match f to do, a batch at a time. ctx stops it between two batches only.
func (q *Queues) each(
	ctx context.Context, f dlq.Filter, do func(ctx context.Context, d *drain, batch []*letter) error,
) (pass Pass, err error) {
	d, err := q.drain(ctx, f)
	if err != nil {
		return pass, err
	}
	defer func() {
		pass = d.pass()
		err = errors.Join(err, d.close(ctx))
	}()
	for {
		if err := d.fill(ctx, f, batchSize); err != nil {
			return pass, err
		}
		if err := ctx.Err(); err != nil {
			return pass, err
		}
		batch := d.take(batchSize, batchBytes)
		if len(batch) == 0 {
			return pass, nil
		}
		batchCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.cfg.Lease)
		err := do(batchCtx, d, batch)
		cancel()
		if err != nil {
			return pass, err
		}
	}
}
