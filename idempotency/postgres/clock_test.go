package postgres_test

import (
	"testing"
	"time"

	"github.com/caisson-go/caisson/idempotency/postgres"
)

// A clock that was ahead for a while does not keep tokens ahead of the database's time, where they are of no use.
func TestTokensComeBackFromAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	var c postgres.Clock
	c.See(time.Now().Add(time.Hour))
	before := c.Token()
	now := time.Now()
	c.See(now)
	first, second := c.Token(), c.Token()
	if first >= before || first < now.UnixMicro() || first > now.Add(time.Minute).UnixMicro() {
		t.Errorf("token %d, want one of %d and the minute after it", first, now.UnixMicro())
	}
	if second <= first {
		t.Errorf("tokens %d and %d: not rising", first, second)
	}
}

// Two requests that must have a token above the same one do not get the same.
func TestTokensAreNotGivenTwice(t *testing.T) {
	t.Parallel()
	var c postgres.Clock
	c.See(time.Now())
	least := time.Now().Add(20 * time.Second).UnixMicro()
	first, second, third := c.From(least), c.From(least), c.Token()
	if first != least || second <= first || third <= second {
		t.Errorf("tokens %d, %d and %d from %d on", first, second, third, least)
	}
}
