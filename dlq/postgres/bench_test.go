package postgres_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/jsonmatch"
	"github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
)

// benchEntry is a dead letter of 1 KB of JSON.
func benchEntry(i int) dlq.Entry {
	what := i % 60 // things that can go wrong
	state, cause := dlq.StateDead, dlq.Causes()[what%5]
	if i%10 == 0 {
		state, cause = dlq.StateHeld, dlq.CauseDestinationOpen
	}
	body := fmt.Appendf(nil, `{"order":{"id":%d,"items":[{"sku":"sku-%d","n":1},{"sku":"other","n":2}]},"customer":{"id":"c-%d","tier":%d},"note":"%s"}`,
		i, i%1000, i, i%3, strings.Repeat("x", 890))
	return dlq.Entry{
		Job: fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", i), State: state, Queue: fmt.Sprintf("queue-%d", i%3), Kind: fmt.Sprintf("kind-%d", what%7),
		Destination: fmt.Sprintf("dest-%d", what), Cause: cause,
		Error:    fmt.Sprintf("post https://api-%d.test/v1/items/%d?x=1: status %d", what%13, i, 500+what%4),
		Attempts: []dlq.FailedAttempt{{Number: 1, Error: "status 500"}, {Number: 2, Error: "status 500"}}, AttemptCount: 2,
		Message: queue.Message{Body: body, Headers: map[string]string{queue.HeaderEnvelope: "{}"}},
	}
}

// filled stores n entries, over several generations.
func filled(b *testing.B, n int) (*postgres.Store, *pgxpool.Pool, string) {
	pool, schema := testserver.Schema(b)
	store := open(b, pool, postgres.Config{Schema: schema, Generation: time.Microsecond})
	const batch = 500
	start := time.Now()
	for done := 0; done < n; done += batch {
		if done%(n/4) == 0 {
			if _, err := store.Expire(b.Context(), time.Hour, 1); err != nil {
				b.Fatal(err)
			}
		}
		entries := make([]dlq.Entry, batch)
		for i := range entries {
			entries[i] = benchEntry(done + i)
		}
		for _, err := range store.Put(b.Context(), entries) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Logf("%d entries put in %v", n, time.Since(start).Round(time.Millisecond))
	return store, pool, schema
}

func match(b *testing.B, text string) dlq.Filter {
	m, err := jsonmatch.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	return dlq.Filter{JSON: []jsonmatch.Match{m}}
}

// Benchmark100k measures what people and metrics ask of 100,000 entries of 1 KB. DLQ_ENTRIES=1000000 asks of more.
func Benchmark100k(b *testing.B) {
	n := 100_000
	if text := os.Getenv("DLQ_ENTRIES"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			b.Fatal(err)
		}
	}
	store, _, _ := filled(b, n)
	ctx := b.Context()
	run := func(name string, op func() error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := op(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	list := func(f dlq.Filter) func() error {
		return func() error { _, _, err := store.List(ctx, f, "", 50); return err }
	}
	count := func(f dlq.Filter) func() error {
		return func() error { _, err := store.Count(ctx, f); return err }
	}
	run("depth", func() error { _, err := store.Depth(ctx); return err })
	run("groups", func() error { _, err := store.Groups(ctx, dlq.Filter{}); return err })
	run("groups by text", func() error { _, err := store.Groups(ctx, dlq.Filter{Text: "api-7.test"}); return err })
	run("get", func() error { _, err := store.Get(ctx, dlq.EntryID(benchEntry(77).Job, 0)); return err })
	run("job", list(dlq.Filter{Job: benchEntry(77).Job}))
	run("list", list(dlq.Filter{}))
	run("list all states", list(dlq.Filter{States: dlq.States()}))
	run("list no match", list(dlq.Filter{Text: "no such text"}))
	run("count", count(dlq.Filter{}))
	run("count by text", count(dlq.Filter{Text: "status 503"}))
	run("list by JSON, rare", list(match(b, "order.id=77777")))
	run("list by JSON, in any element", list(match(b, "order.items[*].sku=sku-77")))
	run("count by JSON, common", count(match(b, "customer.tier=1")))
	run("count by JSON, a value is there", count(match(b, "customer.id")))
	run("groups by JSON", func() error { _, err := store.Groups(ctx, match(b, "customer.tier=1")); return err })
	reserve := func(f dlq.Filter) func() error {
		return func() error {
			entries, err := store.Reserve(ctx, f, dlq.Reservation{Owner: "bench", For: time.Minute, Limit: 100})
			if err != nil {
				return err
			}
			rs := make([]dlq.Resolution, len(entries))
			for i, e := range entries {
				rs[i] = dlq.Resolution{ID: e.ID, To: dlq.StateDead}
			}
			for _, err := range store.Resolve(ctx, "bench", rs) {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	run("reserve and give back 100", reserve(dlq.Filter{Kind: "kind-3"}))
	run("reserve and give back 100 by JSON", reserve(match(b, "customer.tier=1")))
}

// BenchmarkPut measures storing a dead letter of 1 KB in batches of 100.
func BenchmarkPut(b *testing.B) {
	pool, schema := testserver.Schema(b)
	store := open(b, pool, postgres.Config{Schema: schema})
	for done := 0; done < b.N; done += 100 {
		entries := make([]dlq.Entry, 100)
		for i := range entries {
			entries[i] = benchEntry(done + i)
		}
		store.Put(b.Context(), entries)
	}
}
