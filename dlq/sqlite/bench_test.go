package sqlite_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/queue"
)

func benchEntry(i int) dlq.Entry {
	state, cause := dlq.StateDead, dlq.Causes()[i%5]
	if i%10 == 0 {
		state, cause = dlq.StateHeld, dlq.CauseDestinationOpen
	}
	return dlq.Entry{
		Job: fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", i), State: state, Queue: fmt.Sprintf("queue-%d", i%3), Kind: fmt.Sprintf("kind-%d", i%7),
		Destination: fmt.Sprintf("dest-%d", i%11), Cause: cause,
		Error:    fmt.Sprintf("post https://api-%d.test/v1/items/%d?x=1: status %d", i%13, i, 500+i%4),
		Attempts: []dlq.FailedAttempt{{Number: 1, Error: "status 500"}, {Number: 2, Error: "status 500"}}, AttemptCount: 2,
		Message: queue.Message{Body: benchBody(i), Headers: map[string]string{queue.HeaderEnvelope: "{}"}},
	}
}

// benchBody is an order of 1 KB.
func benchBody(i int) []byte {
	return fmt.Appendf(nil, `{"order":{"id":%d,"items":[{"sku":"sku-%d","n":1},{"sku":"other","n":2}]},"note":"%s"}`, i, i%1000, strings.Repeat("x", 930))
}

func filled(b *testing.B, n int) *sqlite.Store {
	store := open(b, filepath.Join(b.TempDir(), "bench.db"))
	const batch = 1000
	for done := 0; done < n; done += batch {
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
	return store
}

// Benchmark100k measures what people and metrics ask of 100,000 entries of 1 KB.
func Benchmark100k(b *testing.B) {
	store := filled(b, 100_000)
	dlqtest.Bench(b, store,
		dlqtest.BenchList(b, store, "list rare", dlq.Filter{Kind: "kind-6", Destination: "dest-10", Cause: dlq.CausePanic, Text: "500"}),
		dlqtest.BenchCount(b, store, "count by JSON", dlqtest.Matching(b, "order.id=77777")),
		dlqtest.BenchList(b, store, "list by JSON", dlqtest.Matching(b, "order.items[*].sku=sku-77")),
	)
}

// BenchmarkPut measures storing a dead letter of 1 KB in batches of 100.
func BenchmarkPut(b *testing.B) {
	store := open(b, filepath.Join(b.TempDir(), "bench.db"))
	b.ReportAllocs()
	for done := 0; done < b.N; done += 100 {
		entries := make([]dlq.Entry, 100)
		for i := range entries {
			entries[i] = benchEntry(done + i)
		}
		store.Put(b.Context(), entries)
	}
}
