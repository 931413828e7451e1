package dlqtest

import (
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/jsonmatch"
)

// BenchOp is one thing that a benchmark asks of a store.
type BenchOp struct {
	Name string
	Do   func() error
}

// Bench measures what people and metrics ask of a filled store, and more.
func Bench(b *testing.B, store dlq.Store, more ...BenchOp) {
	b.Helper()
	ctx := b.Context()
	for _, op := range append([]BenchOp{
		{"depth", func() error { _, err := store.Depth(ctx); return err }},
		{"groups", func() error { _, err := store.Groups(ctx, dlq.Filter{}); return err }},
		{"groups by text", func() error { _, err := store.Groups(ctx, dlq.Filter{Text: "api-7.test"}); return err }},
		BenchList(b, store, "list", dlq.Filter{}),
		BenchList(b, store, "list all states", dlq.Filter{States: dlq.States()}),
		BenchList(b, store, "list no match", dlq.Filter{Text: "no such text"}),
		BenchCount(b, store, "count", dlq.Filter{}),
		BenchCount(b, store, "count by text", dlq.Filter{Text: "status 503"}),
		BenchReserve(b, store, "reserve and give back 100", dlq.Filter{Kind: "kind-3"}),
	}, more...) {
		b.Run(op.Name, func(b *testing.B) {
			for b.Loop() {
				if err := op.Do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchList lists a page.
func BenchList(b *testing.B, store dlq.Store, name string, f dlq.Filter) BenchOp {
	return BenchOp{name, func() error { _, _, err := store.List(b.Context(), f, "", 50); return err }}
}

// BenchCount counts.
func BenchCount(b *testing.B, store dlq.Store, name string, f dlq.Filter) BenchOp {
	return BenchOp{name, func() error { _, err := store.Count(b.Context(), f); return err }}
}

// BenchReserve reserves 100 entries and gives them back.
func BenchReserve(b *testing.B, store dlq.Store, name string, f dlq.Filter) BenchOp {
	return BenchOp{name, func() error {
		entries, err := store.Reserve(b.Context(), f, dlq.Reservation{Owner: "bench", For: time.Minute, Limit: 100})
		if err != nil {
			return err
		}
		rs := make([]dlq.Resolution, len(entries))
		for i, e := range entries {
			rs[i] = dlq.Resolution{ID: e.ID, To: dlq.StateDead}
		}
		for _, err := range store.Resolve(b.Context(), "bench", rs) {
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// Matching selects by an expression of package jsonmatch.
func Matching(b *testing.B, text string) dlq.Filter {
	b.Helper()
	m, err := jsonmatch.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	return dlq.Filter{JSON: []jsonmatch.Match{m}}
}
