package brokerdlq

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-go/caisson/dlq"
)

// Sample looks at dead letters until n match f, or it has looked at [Config.MaxKept], and gives all back unchanged. While it looks, nobody else
// receives them. Entries have their messages and come in the order of the queues; they are all that match unless the scan is incomplete.
func (q *Queues) Sample(ctx context.Context, f dlq.Filter, n int) (entries []dlq.Entry, scanned ScanReport, err error) {
	s, err := q.scan(ctx, f)
	if err != nil {
		return nil, scanned, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	s.end = time.Time{} // what has just come is worth a look, whatever the clocks say
	for more := "more"; more != "" && len(entries) < n; {
		var list []dlq.Entry
		if list, more, err = s.List(ctx, f, "", n-len(entries)); err != nil {
			return entries, s.report(), err
		}
		entries = append(entries, list...)
	}
	scanned = s.report()
	scanned.Incomplete = scanned.Incomplete || len(s.order) > 0
	return entries, scanned, nil
}
