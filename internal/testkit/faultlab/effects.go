package faultlab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// OnPostgres is an [Opener] with claims in PostgreSQL, and queue and dead letters in a file. where comes from [PostgresAt].
func OnPostgres(ctx context.Context, dir, where string) (*Stack, error) {
	url, schema, _ := strings.Cut(where, " ")
	broker, err := embedded.Open(ctx, embedded.Config{Path: filepath.Join(dir, "caisson.db")})
	if err != nil {
		return nil, err
	}
	s := &Stack{Broker: broker, closers: []func() error{broker.Close}}
	fail := func(err error) (*Stack, error) { return nil, errors.Join(err, s.Close()) }
	dead, err := sqlite.Open(ctx, sqlite.Config{Path: broker.Path()})
	if err != nil {
		return fail(err)
	}
	s.Dead = dead
	s.closers = append(s.closers, dead.Close)
	if s.pool, err = pgdb.Open(ctx, pgdb.Config{URL: url, MaxConns: 12, ConnectTimeout: 2 * time.Second}); err != nil {
		return fail(err)
	}
	s.effects = pgx.Identifier{schema, "effects"}.Sanitize()
	claims, err := postgres.New(s.pool, postgres.Config{Schema: schema})
	if err != nil {
		s.pool.Close()
		return fail(err)
	}
	s.Claims = claims
	s.closers = append(s.closers, func() error {
		claims.Close()
		s.pool.Close()
		return nil
	})
	return s, nil
}

// PostgresAt is where [OnPostgres] opens: a database and a schema in it, which has Caisson's tables and the one of [MakeEffects].
func PostgresAt(url, schema string) string { return url + " " + schema }

// MakeEffects makes the table that transactional handlers write to. No constraint keeps anything out of it.
func MakeEffects(ctx context.Context, in executor, schema string) error {
	_, err := in.Exec(ctx, "CREATE TABLE "+pgx.Identifier{schema, "effects"}.Sanitize()+" (job text, attempt int, token bigint, pid int)")
	return err
}

// executor is a transaction, or what is outside of one.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// writeEffect is what a transactional handler does.
func writeEffect(ctx context.Context, to executor, table string) error {
	job := worker.JobFrom(ctx)
	_, err := to.Exec(ctx, "INSERT INTO "+table+" VALUES ($1, $2, $3, $4)", job.ID, job.Attempt, job.Token, os.Getpid())
	return err
}

// effect is a row.
type effect struct {
	Job     string
	Attempt int
	Token   int64
	PID     int
}

// effects holds the rows against the claims: one for each completed job, by the attempt that completed it.
func (c *check) effects(ctx context.Context) {
	rows, err := c.Stack.pool.Query(ctx, "SELECT job, attempt, token, pid FROM "+c.Stack.effects)
	var all []effect
	if err == nil {
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[effect])
	}
	if err != nil {
		c.find(Lost, "the effects cannot be read: %v", err)
		return
	}
	byJob := make(map[string][]effect)
	for _, e := range all {
		byJob[e.Job] = append(byJob[e.Job], e)
	}
	for _, job := range c.Transactional {
		c.effect(ctx, job, byJob[job])
	}
	if len(all) != len(c.Transactional) {
		c.find(Effect, "%d rows of %d jobs", len(all), len(c.Transactional))
	}
}

func (c *check) effect(ctx context.Context, job string, written []effect) {
	record, err := c.Stack.Claims.Get(ctx, keyOf(job))
	switch {
	case err != nil || record.State != idempotency.StatusCompleted:
		c.find(Lost, "%s: not completed (record %+v, error %v)", job, record, err)
	case len(written) != 1 || written[0].Attempt != record.Attempt || written[0].Token != record.Token:
		c.find(Effect, "%s: completed by attempt %d with token %d, written %s", job, record.Attempt, record.Token, fmt.Sprint(written))
	}
}
