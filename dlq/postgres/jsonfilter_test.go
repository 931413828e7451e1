package postgres_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/jsonmatch"
	"github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// The answers for drawn documents agree with the reference, whether PostgreSQL takes the document as jsonb or not.
func TestJSONFilterAgreesWithTheReference(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	store := open(t, pool, postgres.Config{Schema: schema})
	round, matched := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		if round++; round > 20 {
			return // each round is 40 documents and 10 questions
		}
		job := fmt.Sprint("round-", round)
		entries := make([]dlq.Entry, 40)
		for i := range entries {
			entries[i] = letter(fmt.Sprint(job, "-", i))
			entries[i].Queue = job
			entries[i].Message.Body = []byte(dlqtest.DrawJSON(rt, 4))
		}
		put(t, store, entries...)
		for range 10 {
			m := dlqtest.DrawJSONMatch(rt)
			found, _, err := store.List(t.Context(), dlq.Filter{Queue: job, JSON: []jsonmatch.Match{m}}, "", len(entries))
			if err != nil {
				rt.Fatalf("%s: %v", m, err)
			}
			got := map[string]bool{}
			for _, e := range found {
				got[e.Job] = true
			}
			for _, e := range entries {
				want := m.Matches(e.Message.Body)
				if got[e.Job] != want {
					rt.Fatalf("%s in %q: store says %v, want %v", m, e.Message.Body, got[e.Job], want)
				}
				if want {
					matched++
				}
			}
		}
	})
	if matched == 0 {
		t.Error("nothing ever matched")
	}
	// What the store thinks jsonb takes it takes: else it would have refused the entries. And some were drawn that it does not.
	for class, what := range map[int]string{1: "kept as jsonb", 2: "read by the store"} {
		if n := number(t, pool, fmt.Sprintf("SELECT count(*) FROM %s.dead_letters WHERE json = %d", schema, class)); n == 0 {
			t.Errorf("no document was %s", what)
		}
	}
}
