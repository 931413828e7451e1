package outbox

import (
	"strings"
	"time"
)

// verdict is what becomes of a row.
type verdict uint8

const (
	untouched verdict = iota // it stays as it is: the queue takes nothing at present, or the cycle ended first
	published                // confirmed: it is deleted
	refused                  // it is tried again after a delay
	parked                   // it was refused for the last time
	behind                   // it waits for the one before it
	postponed                // it is offered again when it is due
)

type outcome struct {
	what  verdict
	delay time.Duration // of refused and postponed
	err   error
}

// outcomes are those of a cycle's rows, in the same order.
type outcomes struct {
	list  []outcome
	fatal error // the relay has to end
}

// onlyPublished leaves the rows as they are that were not published.
func (o outcomes) onlyPublished() outcomes {
	list := make([]outcome, len(o.list))
	for i := range o.list {
		if o.list[i].what == published {
			list[i] = o.list[i]
		}
	}
	return outcomes{list: list, fatal: o.fatal}
}

// pairs name rows.
type pairs struct {
	shards []int16
	ids    []int64
}

func (p *pairs) add(r *row) {
	p.shards = append(p.shards, r.shard)
	p.ids = append(p.ids, r.id)
}

// changes are rows of outbox_waiting as they are to be.
type changes struct {
	pairs
	attempts []int32
	errors   []string
	delays   []int64 // microseconds, -1 for infinity
	parked   []bool
}

func (c *changes) add(r *row, o outcome) {
	c.pairs.add(r)
	attempts, text, delay := r.attempts, "", o.delay.Microseconds()
	switch o.what {
	case refused, parked:
		attempts, text = attempts+1, errorText(o.err)
	}
	if o.what == behind || o.what == parked {
		delay = -1
	}
	c.attempts = append(c.attempts, attempts)
	c.errors = append(c.errors, text)
	c.delays = append(c.delays, delay)
	c.parked = append(c.parked, o.what == parked)
}

func (c *changes) args(token int64) []any {
	return []any{token, c.shards, c.ids, c.attempts, c.errors, c.delays, c.parked}
}

// maxError is how much of an error's text is kept.
const maxError = 2000

// errorText is what PostgreSQL takes of an error's text.
func errorText(err error) string {
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}

// keys name lanes.
type keys struct {
	shards []int16
	queues []string
	keys   [][]byte
	seen   map[lane]bool
}

func (k *keys) add(r *row) {
	if k.seen[r.lane()] {
		return
	}
	if k.seen == nil {
		k.seen = make(map[lane]bool)
	}
	k.seen[r.lane()] = true
	k.shards = append(k.shards, r.shard)
	k.queues = append(k.queues, r.queue)
	k.keys = append(k.keys, r.key)
}
