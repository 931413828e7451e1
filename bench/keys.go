package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/idempotency"
	claimspg "github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/migrations"
)

// The days of the group keys are 30 s long: keys are kept for two of them, as they are for 48 h, and a generation lasts one.
const (
	keysDay     = 30 * time.Second
	keysCallers = 256
)

// keys claims and completes many keys, far more than are kept at a time, and prints for each day how large the tables are and how long a claim
// takes. Sizes that go on growing, or claims that stall while keys expire, would show here.
func keys(c config) (err error) {
	ctx := context.Background()
	pool, err := postgresPool(ctx, cmp.Or(os.Getenv("CAISSON_TEST_POSTGRES_URL"), postgresDefault))
	if err != nil {
		return err
	}
	defer pool.Close()
	schema := "bench_" + strings.ToLower(rand.Text()[:10])
	defer func() {
		_, dropErr := pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE")
		err = errors.Join(err, dropErr)
	}()
	if _, err := migrations.Up(ctx, pool, schema); err != nil {
		return err
	}
	store, err := claimspg.New(pool, claimspg.Config{Schema: schema, Generation: keysDay, Keep: 2 * keysDay})
	if err != nil {
		return err
	}
	defer store.Close()
	r := &keysRun{pool: pool, store: store, schema: schema}
	r.left.Store(int64(c.keys))
	fmt.Printf("%d keys, kept for %s, generations of %s, %d callers:\n", c.keys, 2*keysDay, keysDay, keysCallers)
	fmt.Printf("  %5s %10s %9s %9s %9s %9s %10s %6s %9s\n", "day", "keys", "keys/s", "p50 ms", "p99 ms", "max ms", "tables MB", "parts", "vacuums")
	return r.run(ctx)
}

type keysRun struct {
	pool   *pgxpool.Pool
	store  *claimspg.Store
	schema string
	left   atomic.Int64

	mu     sync.Mutex
	claims []time.Duration // of this day
	done   int
}

func (r *keysRun) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var callers sync.WaitGroup
	for range keysCallers {
		callers.Add(1)
		g.Go(func() error {
			defer callers.Done()
			for r.left.Add(-1) >= 0 {
				if err := r.one(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error { return r.housekeeping(ctx) })
	g.Go(func() error {
		callers.Wait()
		stop()
		return nil
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// one is the life of one key.
func (r *keysRun) one(ctx context.Context) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	key := idempotency.Key{Scope: "bench", Value: id.String()}
	start := time.Now()
	claim := r.store.Claim(ctx, []idempotency.Request{{Key: key, Job: key.Value, Owner: "bench", Lease: time.Minute}})[0]
	took := time.Since(start)
	if claim.Err != nil || claim.Status != idempotency.StatusAcquired {
		return fmt.Errorf("claim answers %v, %w", claim.Status, claim.Err)
	}
	held := idempotency.Handle{Key: key, Job: key.Value, Token: claim.Token}
	if err := r.store.Complete(ctx, []idempotency.Completion{{Handle: held, Retention: 2 * keysDay}})[0]; err != nil {
		return err
	}
	r.mu.Lock()
	r.claims = append(r.claims, took)
	r.done++
	r.mu.Unlock()
	return nil
}

// housekeeping expires keys as workers do, and ends each day with a line.
func (r *keysRun) housekeeping(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	began := time.Now()
	for day := 1; ; {
		select {
		case <-ctx.Done():
			return r.print(context.WithoutCancel(ctx), day, time.Since(began))
		case <-tick.C:
		}
		if _, err := r.store.Expire(ctx, 100_000); err != nil {
			return fmt.Errorf("expire: %w", err)
		}
		if took := time.Since(began); took >= keysDay {
			if err := r.print(ctx, day, took); err != nil {
				return err
			}
			day, began = day+1, time.Now()
		}
	}
}

func (r *keysRun) print(ctx context.Context, day int, took time.Duration) error {
	r.mu.Lock()
	claims := r.claims
	r.claims = nil
	done := r.done
	r.mu.Unlock()
	if len(claims) == 0 {
		return nil
	}
	slices.Sort(claims)
	var size, parts, vacuums int64
	err := r.pool.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint, count(*), coalesce(sum(s.autovacuum_count), 0)::bigint
FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
WHERE c.relkind = 'r' AND c.relispartition AND c.relnamespace = $1::regnamespace`, r.schema).Scan(&size, &parts, &vacuums)
	if err != nil {
		return err
	}
	ms := func(share float64) float64 { return claims[int(share*float64(len(claims)-1))].Seconds() * 1000 }
	fmt.Printf("  %5d %10d %9.0f %9.1f %9.1f %9.1f %10.0f %6d %9d\n", day, done, float64(len(claims))/took.Seconds(), ms(0.5), ms(0.99), ms(1),
		float64(size)/(1<<20), parts, vacuums)
	return nil
}
