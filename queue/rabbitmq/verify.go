package rabbitmq

import (
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// silence is how often a consumer that gets nothing is verified.
const silence = 1500 * time.Millisecond

// A consumer that gets nothing for a while is replaced by one on another channel: after calmFirst silences, then after twice as many each
// time, up to calmMost. The count starts again with the next message. Not sooner and not for ever at that pace: what the broker delivers in the
// very moment is charged for nothing, see park.
const (
	calmFirst = 4
	calmMost  = 64
)

// errStale asks for another channel. The leases of the old one live on.
var errStale = errors.New("nothing has come for a while")

// verify finds a consumer that the broker has forgotten. When a queue is deleted and made again within the same few milliseconds,
// RabbitMQ 3.10 does not cancel the consumer: it shows it as one of the new queue and drops what that sends to it. Nothing that can be asked
// shows that, so a consumer that gets nothing is replaced now and then.
func (c *consumer) verify() error {
	c.sub.mu.Lock()
	quiet := c.arrivals == c.verified && c.open < c.sub.slots
	c.verified = c.arrivals
	c.sub.mu.Unlock()
	if !quiet {
		c.suspect, c.calm, c.sub.calm = false, 0, calmFirst
		return nil
	}
	var q amqp.Queue
	err := c.s.call(func() error {
		var err error
		q, err = c.ch.QueueDeclarePassive(c.sub.full, true, false, false, false, nil)
		return err
	})
	if err != nil {
		return err
	}
	// Messages that wait may be on their way just now, but not twice.
	passedOver := q.Messages > 0 && c.suspect
	c.suspect = q.Messages > 0
	if q.Consumers == 0 || passedOver {
		return errors.New("the broker has forgotten the consumer: the queue was deleted and made again")
	}
	if c.calm++; c.calm >= c.sub.calm {
		c.sub.calm = min(2*c.sub.calm, calmMost)
		return errStale
	}
	return nil
}

// busy reports whether anything of the channel is not settled, or may not be written yet.
func (c *consumer) busy() bool {
	c.sub.mu.Lock()
	defer c.sub.mu.Unlock()
	if c.writing {
		c.signal() // the settler says that it has written only when it looks again
	}
	return c.open > 0 || len(c.endings) > 0 || c.writing
}

// check is made once in a silence.
func (c *consumer) check() error {
	if err := c.bind(); err != nil {
		return err
	}
	return c.verify()
}

// bindAfter is how many checks go by before the queue is bound again.
const bindAfter = 4

// bind makes sure that delayed messages find the queue: whoever made it again may not have bound it. Of a binding that is there this changes
// nothing.
func (c *consumer) bind() error {
	if c.checks++; c.checks%bindAfter != 0 {
		return nil
	}
	return c.s.call(func() error { return c.ch.QueueBind(c.sub.full, c.sub.full, c.sub.b.topology.deliver(), false, nil) })
}
