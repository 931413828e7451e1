package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/migrations"
	"github.com/caisson-go/caisson/queue"
)

// Config tunes the side that enqueues.
type Config struct {
	// Schema that holds the tables of package migrations. Default "caisson".
	Schema string
	// Capabilities tells what the relay's broker can do with a queue, usually the broker's own method. With it jobs that the broker would
	// refuse as too large are refused by Enqueue, and jobs of a FIFO queue are ordered by their group. Nil leaves both to the relay's
	// first try and to OrderingKey.
	Capabilities func(queue string) queue.Capabilities
	// Silent never notifies relays: they find the jobs by polling. PostgreSQL lets transactions that notify commit one at a time, so by
	// default they do while relays are idle, and stop while relays are busy and look by themselves.
	Silent bool
}

// Box enqueues jobs in transactions. It is safe for concurrent use, holds no connection and needs no closing.
type Box struct {
	cfg     Config
	sql     statements
	channel string // "" when silent
}

// New returns a Box. It asks the database nothing.
func New(cfg Config) (*Box, error) {
	cfg.Schema = cmp.Or(cfg.Schema, migrations.DefaultSchema)
	b := &Box{cfg: cfg, sql: statementsOf(cfg.Schema)}
	if !cfg.Silent {
		b.channel = channelOf(cfg.Schema)
	}
	return b, nil
}

// channelOf names what relays of a schema listen to. PostgreSQL takes 63 bytes.
func channelOf(schema string) string {
	name := "caisson_outbox." + schema
	if len(name) > 63 {
		sum := sha256.Sum256([]byte(schema))
		name = "caisson_outbox." + hex.EncodeToString(sum[:16])
	}
	return name
}

// A statement takes at most this much, so that no parameter nears PostgreSQL's limit of 1 GB.
const (
	chunkJobs  = 10_000
	chunkBytes = 64 << 20
)

// Enqueue writes jobs in tx and returns the ids of their rows, in the order of jobs: ascending, and unique in the schema. They are published
// if and when tx commits. Up to 10,000 jobs of 64 MB together cost one round trip.
//
// All jobs are checked before any is written: an error that matches [ErrInvalid] names the first bad one by its index and leaves tx as it was.
// Any other error is the database's, and tx can only be rolled back, as after every failed statement.
func (b *Box) Enqueue(ctx context.Context, tx pgx.Tx, jobs ...Job) ([]int64, error) {
	if tx == nil {
		return nil, errors.New("outbox: enqueue needs a transaction")
	}
	for i := range jobs {
		if err := jobs[i].check(b.cfg.Capabilities); err != nil {
			return nil, fmt.Errorf("outbox: job %d: %w", i, err)
		}
	}
	ids := make([]int64, 0, len(jobs))
	for start := 0; start < len(jobs); {
		end, size := start, 0
		for end < len(jobs) && end-start < chunkJobs && (end == start || size+len(jobs[end].Body) <= chunkBytes) {
			size += len(jobs[end].Body)
			end++
		}
		written, err := b.insert(ctx, tx, jobs[start:end])
		if err != nil {
			return nil, fmt.Errorf("outbox: enqueue %d jobs: %w", len(jobs), err)
		}
		ids = append(ids, written...)
		start = end
	}
	return ids, nil
}

func (b *Box) insert(ctx context.Context, tx pgx.Tx, jobs []Job) ([]int64, error) {
	// Jobs of one call lie in one shard, where a relay reads them together; with many of them, in as many as relays can share.
	place, spread := rand.IntN(shards), 1+len(jobs)/16
	var c columns
	for i := range jobs {
		c.add(&jobs[i], b.fifo(jobs[i].Queue), int16((place+i%spread)%shards)) //nolint:gosec // below shards
	}
	var ids []int64
	batch := &pgx.Batch{}
	batch.Queue(b.sql.insert, c.shards, c.queues, c.delays, c.keys, c.groups, c.dedups, c.heads, c.bodies).Query(func(rows pgx.Rows) (err error) {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	if b.channel != "" {
		batch.Queue(b.sql.tell, b.channel)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	slices.Sort(ids)
	return ids, nil
}

func (b *Box) fifo(name string) bool {
	return b.cfg.Capabilities != nil && b.cfg.Capabilities(name).FIFO
}
