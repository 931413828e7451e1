package postgres_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
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

// Benchmark100k measures what people and metrics ask of 100,000 entries of 1 KB. DLQ_ENTRIES=1000000 asks of more.
func Benchmark100k(b *testing.B) {
	n := 100_000
	if text := os.Getenv("DLQ_ENTRIES"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			b.Fatal(err)
		}
	}
	store, _, _ := filled(b, n)
	ctx, common := b.Context(), dlqtest.Matching(b, "customer.tier=1")
	dlqtest.Bench(b, store,
		dlqtest.BenchOp{Name: "get", Do: func() error { _, err := store.Get(ctx, dlq.EntryID(benchEntry(77).Job, 0)); return err }},
		dlqtest.BenchList(b, store, "job", dlq.Filter{Job: benchEntry(77).Job}),
		dlqtest.BenchList(b, store, "list by JSON, rare", dlqtest.Matching(b, "order.id=77777")),
		dlqtest.BenchList(b, store, "list by JSON, in any element", dlqtest.Matching(b, "order.items[*].sku=sku-77")),
		dlqtest.BenchCount(b, store, "count by JSON, common", common),
		dlqtest.BenchCount(b, store, "count by JSON, a value is there", dlqtest.Matching(b, "customer.id")),
		dlqtest.BenchOp{Name: "groups by JSON", Do: func() error { _, err := store.Groups(ctx, common); return err }},
		dlqtest.BenchReserve(b, store, "reserve and give back 100 by JSON", common),
	)
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
