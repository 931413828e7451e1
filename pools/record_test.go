package pools

import (
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
)

func TestRecordWithoutAPermitOpensTheBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	ds, err := NewDestinations(DestinationsConfig{Default: DestinationConfig{Breaker: breaker.Config{MinimumCalls: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		ds.Record(now, Request{Destination: "db"}, breaker.OutcomeFailure)
	}
	ds.Record(now, Request{Destination: "db"}, breaker.OutcomeIgnored)
	if v := ds.Peek(now, Request{Destination: "db"}); !v.OK() {
		t.Fatalf("four failures and an ignored call opened a breaker that wants five: %+v", v)
	}
	ds.Record(now, Request{Destination: "db"}, breaker.OutcomeFailure)
	if v := ds.Peek(now, Request{Destination: "db"}); v.Reason != ReasonBreakerOpen {
		t.Fatalf("five failures of five: got %+v", v)
	}
	later := now.Add(time.Hour)
	for range 10 {
		ds.Record(later, Request{Destination: "db"}, breaker.OutcomeSuccess) // not a probe: it has no voice
	}
	if _, open := ds.OpenSince("db", later); !open {
		t.Fatal("recorded successes closed an open breaker")
	}
}
