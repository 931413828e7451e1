package rabbitmq

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// topology names what stands in the broker and declares it.
type topology struct {
	prefix        string
	deliveryLimit int
}

func newTopology(cfg Config) *topology {
	return &topology{prefix: cfg.Prefix, deliveryLimit: cfg.DeliveryLimit}
}

// queue returns the broker's name of a queue.
func (t *topology) queue(name string) string { return t.prefix + name }

// deliver is the exchange in which delays end.
func (t *topology) deliver() string { return t.prefix + "deliver" }

// unroutable is where messages go whose queue was deleted while they were delayed: an exchange and its queue.
func (t *topology) unroutable() string { return t.prefix + "unroutable" }

// delay is a step of delay: an exchange and its queue.
func (t *topology) delay(step time.Duration) string {
	return t.delayPrefix() + strconv.FormatInt(step.Milliseconds(), 10)
}

func (t *topology) delayPrefix() string { return t.prefix + "delay." }

// check refuses names that cannot be a queue's.
func (t *topology) check(name string) error {
	full := t.queue(name)
	if name == "" || len(queue.DLQ(full)) > maxShortText || !utf8.ValidString(name) {
		return fmt.Errorf("queue name %q: use 1 to %d bytes of UTF-8", name, maxShortText-len(queue.DLQ(t.prefix)))
	}
	if full == t.unroutable() || strings.HasPrefix(full, t.delayPrefix()) {
		return fmt.Errorf("queue name %q: the driver has a queue of its own there: use another", name)
	}
	return nil
}

// queueType is what all queues are: replicated, and safe at a crash.
const queueType = "quorum"

func (t *topology) mainArgs(name string) amqp.Table {
	return amqp.Table{
		"x-queue-type":              queueType,
		"x-delivery-limit":          int64(t.deliveryLimit),
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": t.queue(queue.DLQ(name)),
		"x-dead-letter-strategy":    "at-least-once",
		"x-overflow":                "reject-publish", // at-least-once needs it
	}
}

// keepArgs is for queues that only keep messages: no TTL, no limit. They have nowhere to dead-letter to, so a message that reaches the
// delivery limit would be lost; RabbitMQ 4 sets a limit of 20 where none is given, and 3.10 takes -1 for 0.
func (t *topology) keepArgs() amqp.Table {
	return amqp.Table{"x-queue-type": queueType, "x-delivery-limit": int64(neverLimit)}
}

const neverLimit = 1_000_000_000

func (t *topology) delayArgs(step time.Duration) amqp.Table {
	return amqp.Table{
		"x-queue-type":           queueType,
		"x-message-ttl":          step.Milliseconds(),
		"x-dead-letter-exchange": t.deliver(),
		"x-dead-letter-strategy": "at-least-once",
		"x-overflow":             "reject-publish",
	}
}

// declarer declares on one channel and keeps the first error; a failed declaration closes the channel.
type declarer struct {
	ch  *channel
	err error
}

func (d *declarer) exchange(name, kind string, args amqp.Table) {
	if d.err == nil {
		d.err = declared(name, d.ch.declareExchange(name, kind, args))
	}
}

func (d *declarer) queue(name string, args amqp.Table) {
	if d.err == nil {
		d.err = declared(name, d.ch.declareQueue(name, args))
	}
}

func (d *declarer) bind(queueName, key, exchange string) {
	if d.err == nil {
		d.err = d.ch.bind(queueName, key, exchange)
	}
}

// declareQueue declares a queue with what belongs to it.
func (t *topology) declareQueue(ch *channel, name string) error {
	d := declarer{ch: ch}
	t.declareShared(&d)
	if !queue.IsDLQ(name) {
		// First, so that there is no moment in which the queue's dead letters have nowhere to go.
		t.declareOne(&d, queue.DLQ(name))
	}
	t.declareOne(&d, name)
	if d.err != nil {
		return fmt.Errorf("declare queue %q: %w", name, d.err)
	}
	return nil
}

func (t *topology) declareOne(d *declarer, name string) {
	args := t.keepArgs()
	if !queue.IsDLQ(name) {
		args = t.mainArgs(name)
	}
	full := t.queue(name)
	d.queue(full, args)
	d.bind(full, full, t.deliver())
}

// declareShared declares where delays end.
func (t *topology) declareShared(d *declarer) {
	d.exchange(t.unroutable(), amqp.ExchangeFanout, nil)
	d.queue(t.unroutable(), t.keepArgs())
	d.bind(t.unroutable(), "", t.unroutable())
	d.exchange(t.deliver(), amqp.ExchangeDirect, amqp.Table{"alternate-exchange": t.unroutable()})
}

// declareDelay declares one delay, and where it ends.
func (t *topology) declareDelay(ch *channel, step time.Duration) error {
	d := declarer{ch: ch}
	t.declareShared(&d)
	name := t.delay(step)
	d.exchange(name, amqp.ExchangeFanout, nil)
	d.queue(name, t.delayArgs(step))
	d.bind(name, "", name)
	return d.err
}
