package postgres

import (
	"testing"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
)

// The first try's commit may come after the second has looked, so that the third meets a claim of the first.
func TestRequestOwnsWhatAnyOfItsTriesGot(t *testing.T) {
	t.Parallel()
	q := requestOf(idempotency.Request{Key: idempotency.Key{Scope: "s", Value: "v"}, Job: "v", Owner: "me"})
	stored := func(token int64, change func(*record.Row)) *record.Record {
		r := &record.Record{Row: record.Row{State: idempotency.StatusAcquired, Token: token, Holder: q.name.run, Owner: "me"}}
		if change != nil {
			change(&r.Row)
		}
		return r
	}
	if q.owns(stored(0, nil)) {
		t.Error("owns a claim before the first try")
	}
	q.try(7)
	q.try(8)
	for token, want := range map[int64]bool{7: true, 8: true, 6: false, 0: false} {
		if got := q.owns(stored(token, nil)); got != want {
			t.Errorf("after tries 7 and 8: owns the claim with token %d: %v", token, got)
		}
	}
	for what, change := range map[string]func(*record.Row){
		"completed": func(r *record.Row) { r.State = idempotency.StatusCompleted },
		"another's": func(r *record.Row) { r.Owner = "somebody" },
		"of a run":  func(r *record.Row) { r.Holder.Run++ },
	} {
		if q.owns(stored(7, change)) {
			t.Errorf("owns a row that is %s", what)
		}
	}
}
