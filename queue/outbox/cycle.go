package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/internal/headers"
)

const (
	claimShards = 8 // a loop leases at most as many, so that others find some
	cycleBytes  = 16 << 20
	callTimeout = 20 * time.Second
)

// row is a job as a relay has read it.
type row struct {
	shard    int16
	id       int64
	queue    string
	key      []byte // nil: in no order
	pub      queue.Publication
	attempts int32
	waiting  bool // it is in outbox_waiting
	behind   bool // jobs of its key were waiting when it was read
	damaged  error
}

// lane names the jobs that are published one after the other.
type lane struct{ queue, key string }

func (r *row) lane() lane { return lane{r.queue, string(r.key)} }

// cycle leases shards, publishes jobs in them, records the outcome and gives the shards back. No transaction is open while the broker is
// asked: a slow broker would hold back vacuum in the whole database for as long as it takes to answer. found says that there were jobs;
// if there were none, next is when to look again without notice, zero if nothing is known to come.
func (r *Relay) cycle(ctx context.Context) (found bool, next time.Duration, err error) {
	start := time.Now()
	token := rand.Int64() | 1 // zero means not leased
	rows, leased, next, err := r.read(ctx, token)
	if err != nil {
		r.giveBack(ctx, token)
		return false, 0, err
	}
	if !leased {
		return false, next, nil
	}
	if len(rows) >= r.batch() {
		r.notify() // there may be more than one loop can carry
	}
	// Half of the lease is left for recording the outcome. It decides nothing if it is not enough: jobs are then published twice.
	results := r.publish(ctx, rows, start.Add(r.cfg.Lease/2))
	if err := r.finish(ctx, token, rows, results); err != nil {
		return false, 0, err
	}
	return true, 0, results.fatal
}

// batch is the most rows of a loop. Retries get half of it, so that refused jobs, however many, leave room for others.
func (r *Relay) batch() int { return r.cfg.Batch / r.cfg.Parallel }

func (r *Relay) retries() int { return r.batch() / 2 }

// read leases shards that have something to do and reads their first jobs, in one round trip. leased is false if there were none.
func (r *Relay) read(ctx context.Context, token int64) (rows []row, leased bool, next time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	paused := r.pauses.now(time.Now())
	var retries, fresh []row
	var micros int64
	batch := &pgx.Batch{}
	batch.Queue(begin)
	batch.Queue(sqlPlan)
	batch.Queue(sqlLoose)
	batch.Queue(r.sql.pacing).QueryRow(r.pacing.scan)
	batch.Queue(r.sql.claim, token, r.cfg.Lease.Microseconds(), claimShards, paused).Exec(func(tag pgconn.CommandTag) error {
		leased = tag.RowsAffected() > 0
		return nil
	})
	batch.Queue(r.sql.retries, token, r.retries()+1, r.bytes, paused).Query(scanInto(&retries, true))
	batch.Queue(r.sql.fresh, token, r.batch(), r.bytes, paused).Query(scanInto(&fresh, false))
	batch.Queue(r.sql.nextAt).QueryRow(func(row pgx.Row) error { return row.Scan(&micros) })
	batch.Queue(commit)
	if err := r.cfg.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, false, 0, err
	}
	return r.merge(retries, fresh), leased, max(time.Duration(micros)*time.Microsecond, 0), nil
}

// merge puts the retries before the fresh jobs, and fresh jobs behind waiting ones of their key only if all of those were read.
func (r *Relay) merge(retries, fresh []row) []row {
	size := 0
	for i := range retries {
		size += len(retries[i].pub.Body)
	}
	complete := len(retries) <= r.retries() && size < r.bytes
	retries = retries[:min(len(retries), r.retries())]
	lanes := make(map[lane]bool)
	for i := range retries {
		if retries[i].key != nil {
			lanes[retries[i].lane()] = true
		}
	}
	for i := range fresh {
		if fresh[i].behind && complete && lanes[fresh[i].lane()] {
			fresh[i].behind = false
		}
	}
	return append(retries, fresh[:min(len(fresh), r.batch()-len(retries))]...)
}

func scanInto(rows *[]row, waiting bool) func(pgx.Rows) error {
	return func(from pgx.Rows) error {
		for from.Next() {
			r := row{waiting: waiting}
			var group, dedup, head []byte
			var delay int64
			err := from.Scan(&r.shard, &r.id, &r.queue, &r.key, &group, &dedup, &head, &r.pub.Body, &delay, &r.attempts, &r.behind)
			if err != nil {
				return err
			}
			r.pub.Group, r.pub.DedupID = string(group), string(dedup)
			r.pub.Delay = time.Duration(delay) * time.Microsecond
			r.pub.Headers, r.damaged = headers.Decode(head)
			*rows = append(*rows, r)
		}
		return from.Err()
	}
}

// giveBack frees shards whose lease may or may not have been committed. If it fails, they are free when the lease ends.
func (r *Relay) giveBack(ctx context.Context, token int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = r.cfg.Pool.Exec(ctx, r.sql.release, token)
}

// finish records what became of rows. It insists while the database is away, since what it does not record is published again, and gives
// up some seconds after ctx is done.
func (r *Relay) finish(ctx context.Context, token int64, rows []row, results outcomes) error {
	const grace = 5 * time.Second
	ctx, cancel := lingering(ctx, grace)
	defer cancel()
	for failures := 1; ; failures++ {
		err := r.record(ctx, token, rows, results)
		if err == nil {
			return nil
		}
		if !pgdb.Unreached(err) && !pgdb.Conflict(err) { // of what it does not take, nothing was published
			return errors.Join(err, r.record(ctx, token, rows, results.onlyPublished()))
		}
		if failures == 1 {
			r.cfg.Logger.WarnContext(ctx, "outbox relay has published jobs and cannot delete them yet: it tries on", "schema", r.cfg.Schema, "jobs", len(rows), "error", err)
		}
		if !pause.For(ctx, growing(failures)) {
			return err
		}
	}
}

// lingering returns a context that ends grace after ctx does.
func lingering(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		pause.For(late, grace)
		cancel()
	})
	return late, func() { stop(); cancel() }
}

func (r *Relay) record(ctx context.Context, token int64, rows []row, results outcomes) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var gone pairs
	var moved, again changes
	var woken keys
	for i := range rows {
		job, o := &rows[i], results.list[i]
		switch o.what {
		case published:
			gone.add(job)
			if job.waiting && job.key != nil {
				woken.add(job)
			}
		case untouched:
		default:
			if !job.waiting {
				moved.add(job, o)
			} else if o.what != behind {
				again.add(job, o)
			}
			if !job.waiting && job.key != nil {
				woken.add(job)
			}
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(begin)
	batch.Queue(sqlPlan)
	if len(gone.ids) > 0 {
		batch.Queue(r.sql.published, gone.shards, gone.ids)
		batch.Queue(r.sql.retried, gone.shards, gone.ids)
	}
	if len(moved.ids) > 0 {
		batch.Queue(r.sql.move, moved.args(token)...)
	}
	if len(again.ids) > 0 {
		batch.Queue(r.sql.again, again.args(token)...)
	}
	if len(woken.shards) > 0 {
		batch.Queue(r.sql.wake, woken.shards, woken.queues, woken.keys)
	}
	batch.Queue(r.sql.release, token)
	batch.Queue(commit)
	return r.cfg.Pool.SendBatch(ctx, batch).Close()
}
