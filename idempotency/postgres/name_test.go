package postgres

import (
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/idempotency"
)

func TestNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value, other := rapid.String().Draw(t, "value"), rapid.String().Draw(t, "other")
		scope, run := rapid.String().Draw(t, "scope"), rapid.IntRange(0, maxRun).Draw(t, "run")
		n := nameOf(idempotency.Key{Scope: scope, Value: value}, value, run)
		if n.keyID.prefix() != n.job || less(n.job.first(), n.keyID) > 0 || less(n.keyID, n.job.last()) > 0 {
			t.Fatalf("a key of its job's id lies outside of the job's range: %+v", n)
		}
		if m := nameOf(idempotency.Key{Scope: scope + "x", Value: value}, value, run+1); m.keyID == n.keyID || m.runID == n.runID || m.job != n.job {
			t.Fatalf("another scope and run: %+v and %+v", n, m)
		}
		if m := nameOf(idempotency.Key{Scope: scope, Value: other}, other, run); other != value && (m.keyID == n.keyID || m.runID == n.runID) {
			t.Fatalf("%q and %q share an id", value, other)
		}
	})
}

func TestIDsOfUUIDv7RiseWithTime(t *testing.T) {
	t.Parallel()
	early, late := "0190a5d0-0000-7fff-bfff-ffffffffffff", "0190a5d0-0001-7000-8000-000000000000"
	if less(valueID(early), valueID(late)) >= 0 {
		t.Error("a later UUIDv7 has a smaller id")
	}
	if id, want := valueID(early), uuid.MustParse(early); [6]byte(id[:6]) != [6]byte(want[:6]) {
		t.Errorf("id %x does not begin with the time of %v", id, want)
	}
	for _, value := range []string{"0190a5d0-0001-4000-8000-000000000000", "x190a5d0-0001-7000-8000-000000000000", "0190a5d0000170008000000000000000"} {
		if _, ok := uuidTime(value); ok {
			t.Errorf("%q passes for a UUIDv7", value)
		}
	}
}
