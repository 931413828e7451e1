package embedded

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/internal/headers"
)

// A batch is cut where one of these is reached, so that it does not keep others from the writer for long.
const (
	chunkMessages = 1000
	chunkBytes    = 8 << 20
)

// Publish implements [queue.Broker]. Each message is confirmed once it is on the disk.
func (b *Broker) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	results := make([]queue.PublishResult, len(pubs))
	l, err := b.find(ctx, name)
	if err != nil {
		fail(results, err)
		return results
	}
	for start := 0; start < len(pubs); {
		size, end := 0, start
		for end < len(pubs) && end-start < chunkMessages && (end == start || size < chunkBytes) {
			size += len(pubs[end].Body)
			end++
		}
		b.publishChunk(ctx, l, pubs[start:end], results[start:end])
		start = end
	}
	return results
}

// publishChunk stores pubs in one write.
func (b *Broker) publishChunk(ctx context.Context, l *line, pubs []queue.Publication, results []queue.PublishResult) {
	rows := make([]row, len(pubs))
	for i := range pubs {
		rows[i], results[i].Err = b.encode(&pubs[i])
	}
	visible, first := 0, int64(0)
	err := b.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		// Read here, where writes are serial: so the order of due times is the order of ids.
		now := time.Now()
		visible, first = 0, 0
		enqueued := any(floorMilli(now))
		for i := range rows {
			if results[i].Err != nil {
				continue
			}
			due := enqueued
			if d := pubs[i].Delay; d > 0 {
				ms := ceilMilli(now.Add(d))
				if due = ms; first == 0 || ms < first {
					first = ms
				}
			} else {
				visible++
			}
			res, err := tx.Exec(sqlPublish, l.id, due, enqueued, rows[i].headers, rows[i].body)
			if err != nil {
				return err
			}
			rows[i].id = res.LastID
		}
		return nil
	})
	if err != nil {
		fail(results, fmt.Errorf("publish to %q: %w", l.name, translate(err)))
		return
	}
	for i := range results {
		if results[i].Err == nil {
			results[i].ID = strconv.FormatInt(rows[i].id, 10)
		}
	}
	if visible > 0 {
		l.wake(visible)
	}
	if first > 0 {
		l.note(first)
	}
}

// row is a message as the table takes it.
type row struct {
	id            int64
	headers, body []byte
}

func (b *Broker) encode(p *queue.Publication) (row, error) {
	r := row{headers: headers.Encode(p.Headers), body: p.Body}
	if size := len(r.headers) + len(r.body); size > b.cfg.MaxBody {
		return row{}, &queue.TooLargeError{Size: size, Limit: b.cfg.MaxBody}
	}
	if r.body == nil {
		r.body = []byte{} // nil would be NULL
	}
	return r, nil
}

// fail sets err where there is no error of the message's own.
func fail(results []queue.PublishResult, err error) {
	for i := range results {
		if results[i].Err == nil {
			results[i] = queue.PublishResult{Err: err}
		}
	}
}

// A time that something must not happen before is rounded up, now is rounded down: so nothing happens early.
func floorMilli(t time.Time) int64 { return t.UnixMilli() }

func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }
