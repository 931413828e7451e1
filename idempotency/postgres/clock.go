package postgres

import (
	"sync"
	"time"
)

// clock guesses the database's clock, to give tokens that are known before the database has answered. It decides nothing: a token that is
// too far from the database's time is not used.
type clock struct {
	mu     sync.Mutex
	ahead  time.Duration // of the database
	issued int64
}

// maxAhead is how far a token may be from the database's time: the same minute as in the statement claimFresh.
const maxAhead = time.Minute

// see notes the database's time. Tokens of a time when one of the clocks was ahead were not used, or are below the next one of their key; if all later ones
// followed them, none would be near the database's time any more.
func (c *clock) see(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = time.Until(now)
	if now.Add(maxAhead).UnixMicro() < c.issued {
		c.issued = now.UnixMicro()
	}
}

// token returns a token that was not returned before.
func (c *clock) token() int64 { return c.from(0) }

// from returns a token that was not returned before and is not below least.
func (c *clock) from(least int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.issued = max(c.issued+1, time.Now().Add(c.ahead).UnixMicro(), least)
	return c.issued
}
