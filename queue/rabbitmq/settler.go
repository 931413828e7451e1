package rabbitmq

import (
	"time"
)

// verdict is what the broker is told about a delivery.
type verdict uint8

const (
	verdictAck    verdict = iota + 1
	verdictReturn         // requeue, and count it
)

type ending struct {
	tag  uint64
	v    verdict
	kept bool // it was left out of a write, so that one with a lower tag may catch up
}

// linger is how long an ack waits for others: one frame that acks many costs the broker as little as one that acks one. It waits for
// less when half of the prefetch is done, since the broker then has fewer messages under way than there are slots.
const linger = time.Millisecond

// endLocked takes h out of all books and has the broker told.
func (c *consumer) endLocked(h *handle, v verdict) {
	c.dues.remove(h)
	c.unlinkLocked(h)
	h.state = stateOver
	c.endings = append(c.endings, ending{tag: h.d.DeliveryTag, v: v})
	c.fresh++
	if len(c.endings) == 1 {
		c.flushAt = time.Now().Add(linger)
		c.armLocked(c.flushAt)
	}
	if v == verdictReturn || c.fresh == max(c.sub.slots/2, 1) {
		c.flushAt = time.Time{}
		c.signal()
	}
}

// linkLocked adds h behind all earlier deliveries: tags rise.
func (c *consumer) linkLocked(h *handle) {
	h.prev = c.last
	if c.last != nil {
		c.last.next = h
	} else {
		c.first = h
	}
	c.last = h
	c.open++
}

func (c *consumer) unlinkLocked(h *handle) {
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		c.first = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	} else {
		c.last = h.prev
	}
	h.prev, h.next = nil, nil
	c.open--
}

func (c *consumer) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// armLocked sees to it that the settler looks at due, at the latest.
func (c *consumer) armLocked(due time.Time) {
	if c.armed.IsZero() || due.Before(c.armed) {
		c.armed = due
		c.signal()
	}
}

// settle is the one goroutine that writes settlements on the channel: what comes while it writes goes out with the next write. It also
// ends leases that are over. It ends with the channel, or once retired is closed and nothing is open.
func (c *consumer) settle() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	retired := c.retired
	var spare []ending
	for {
		select {
		case <-c.wake:
		case <-timer.C:
		case <-retired:
			retired = nil
		case <-c.dead:
			return
		}
		batch, lowest, next, done := c.due(spare, retired == nil)
		if !c.write(batch, lowest) {
			return // the channel is closed: its pump sees to the rest
		}
		if done {
			return
		}
		if batch != nil {
			spare = batch[:0]
		}
		if !next.IsZero() {
			timer.Reset(max(time.Until(next), 0))
		}
	}
}

// due collects what is to be written. lowest is the lowest tag that stays open, 0 if none does; done says that nothing will follow.
func (c *consumer) due(spare []ending, retired bool) (batch []ending, lowest uint64, next time.Time, done bool) {
	s := c.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for h := c.dues.late(now); h != nil; h = c.dues.late(now) {
		c.endLocked(h, verdictReturn)
	}
	if c.first != nil {
		lowest = c.first.d.DeliveryTag
	}
	next = c.dues.next()
	switch {
	case len(c.endings) == 0:
	case now.Before(c.flushAt) && !retired:
		next = sooner(next, c.flushAt)
	default:
		batch, c.endings = c.splitLocked(spare, lowest, retired)
		if c.fresh = 0; len(c.endings) > 0 {
			c.flushAt = now.Add(linger)
			next = sooner(next, c.flushAt)
		}
	}
	c.writing = len(batch) > 0
	c.armed = next
	return batch, lowest, next, retired && c.open == 0
}

// splitLocked divides what is decided into what is written now and what may wait once for a lower tag, to be acked together with it.
func (c *consumer) splitLocked(spare []ending, lowest uint64, all bool) (batch, kept []ending) {
	batch, kept = spare, c.endings[:0]
	for _, e := range c.endings {
		if all || e.kept || e.v == verdictReturn || lowest == 0 || e.tag < lowest {
			batch = append(batch, e)
			continue
		}
		e.kept = true
		kept = append(kept, e)
	}
	return batch, kept
}

// sooner returns the earlier of two times, of which the first may be zero for never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// write tells the broker; false if the channel is closed. Acks below the lowest open tag go as one.
func (c *consumer) write(batch []ending, lowest uint64) bool {
	if len(batch) > 1 {
		c.s.wire.hold()
		defer c.s.wire.release()
	}
	var top uint64
	covered := 0
	for _, e := range batch {
		switch {
		case e.v == verdictReturn:
			// A reject, not a nack: RabbitMQ 4.3 counts only rejects.
			if c.ch.Reject(e.tag, true) != nil {
				return false
			}
		case lowest == 0 || e.tag < lowest:
			top = max(top, e.tag)
			covered++
		}
	}
	if covered > 0 && c.ch.Ack(top, covered > 1) != nil {
		return false
	}
	if lowest == 0 {
		return true
	}
	for _, e := range batch {
		if e.v == verdictAck && e.tag > lowest && c.ch.Ack(e.tag, false) != nil {
			return false
		}
	}
	return true
}
