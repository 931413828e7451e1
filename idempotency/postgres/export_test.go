package postgres

import (
	"strings"
	"time"
)

// WithClock returns cfg with an SQL expression for the time.
func (c Config) WithClock(expression string) Config {
	c.clock = expression
	return c
}

// Colliding begins values that all have the same hash.
const Colliding = "colliding "

func init() {
	digest = func(value string) id {
		if strings.HasPrefix(value, Colliding) {
			return valueID(Colliding)
		}
		return valueID(value)
	}
}

// Clock is what gives tokens.
type Clock = clock

func (c *clock) See(now time.Time) { c.see(now) }
func (c *clock) Token() int64      { return c.token() }

func (c *clock) From(least int64) int64 { return c.from(least) }
