package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/internal/headers"
)

// DB is a pool, a connection or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Stats count the jobs that are committed and not yet published.
type Stats struct {
	// Fresh jobs were not refused; those under way are among them.
	Fresh int64
	// Waiting jobs were refused and will be tried again, wait behind one of their key, or are not due on a queue that takes no delays.
	Waiting int64
	// Stuck jobs were refused for the last time and wait for [Box.Retry] or [Box.Discard].
	Stuck int64
	// Oldest is the age of the oldest of all these, of a delayed one since it was due.
	Oldest time.Duration
}

// Pending is how many jobs are not yet published, the stuck ones included.
func (s Stats) Pending() int64 { return s.Fresh + s.Waiting + s.Stuck }

// Stats counts. It reads all of the outbox, so ask some times a minute.
func (b *Box) Stats(ctx context.Context, db DB) (Stats, error) {
	var s Stats
	var age float64
	if err := db.QueryRow(ctx, b.sql.stats).Scan(&s.Fresh, &s.Waiting, &s.Stuck, &age); err != nil {
		return Stats{}, fmt.Errorf("outbox: count: %w", err)
	}
	s.Oldest = time.Duration(age * float64(time.Second))
	return s, nil
}

// Refused is a job that the broker has refused.
type Refused struct {
	// ID is that of the row, as [Box.Enqueue] returned it.
	ID      int64
	Queue   string
	Created time.Time
	// Tried is the time of the last attempt.
	Tried time.Time
	// Next is the time of the next one; zero if there is none.
	Next     time.Time
	Attempts int
	// Error of the last attempt.
	Error string
	// Stuck says that it is not tried again by itself.
	Stuck       bool
	DedupID     string
	OrderingKey string
	Headers     map[string]string
	// Size of the body in bytes.
	Size int
}

// Job returns the job's id, "" if its message carries no envelope that can be read.
func (r Refused) Job() string {
	env, err := queue.Message{Headers: r.Headers}.Envelope()
	if err != nil {
		return ""
	}
	return env.ID
}

// Refused lists at most limit jobs that the broker has refused, the stuck ones first.
func (b *Box) Refused(ctx context.Context, db DB, limit int) ([]Refused, error) {
	rows, err := db.Query(ctx, b.sql.stuck, limit)
	if err != nil {
		return nil, fmt.Errorf("outbox: list refused jobs: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Refused, error) {
		var r Refused
		var dedup, key, head []byte
		var next *time.Time
		err := row.Scan(&r.ID, &r.Queue, &r.Created, &r.Tried, &next, &r.Attempts, &r.Error, &r.Stuck, &dedup, &key, &head, &r.Size)
		r.DedupID, r.OrderingKey = string(dedup), string(key)
		if next != nil {
			r.Next = *next
		}
		r.Headers, _ = headers.Decode(head) // damage is what the row was refused for
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: list refused jobs: %w", err)
	}
	return list, nil
}

// Retry has refused jobs tried again at once, with as many attempts as a new one has, and returns how many. No ids means all.
func (b *Box) Retry(ctx context.Context, db DB, ids ...int64) (int64, error) {
	tag, err := db.Exec(ctx, b.sql.retry, append([]int64{}, ids...))
	if err != nil {
		return 0, fmt.Errorf("outbox: retry: %w", err)
	}
	return tag.RowsAffected(), nil
}

// Discard deletes refused jobs and returns how many. They are lost, but for one that a relay is publishing at that moment; those of their
// key behind them go on.
func (b *Box) Discard(ctx context.Context, db DB, ids ...int64) (int64, error) {
	tag, err := db.Exec(ctx, b.sql.discard, append([]int64{}, ids...))
	if err != nil {
		return 0, fmt.Errorf("outbox: discard: %w", err)
	}
	if _, err := db.Exec(ctx, b.sql.orphans); err != nil { // relays do the same from time to time
		return tag.RowsAffected(), fmt.Errorf("outbox: wake those behind discarded jobs: %w", err)
	}
	return tag.RowsAffected(), nil
}
