package rabbitmq

import (
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// The silent losses of docs/rabbitmq.md, each as a regression test.

// TestDelaysInARow sends one message through the delays again and again. With the broker's headers kept it is taken for a loop and dropped.
func TestDelaysInARow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "rounds")
	sub := r.subscribe(b, name, 30*time.Second, 1)
	r.publish(b, name, queue.Publication{Message: queue.Message{Body: []byte("round"), Headers: map[string]string{"h": "v"}}})
	for round := 1; round <= 5; round++ {
		l := r.receive(sub)
		if l.Attempts != round || l.DeliveryCount != round || l.Headers["h"] != "v" || len(l.Headers) != 1 {
			t.Fatalf("round %d: attempts %d, deliveries %d, headers %v", round, l.Attempts, l.DeliveryCount, l.Headers)
		}
		if err := l.Retry(t.Context(), time.Second, false); err != nil {
			t.Fatal(err)
		}
	}
	r.ack(r.receive(sub))
}

// TestRequeueKeepsTheMessage requeues more than once: with a delivery limit of -1 RabbitMQ 3.10 drops it.
func TestRequeueKeepsTheMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "requeue")
	for _, queueName := range []string{name, queue.DLQ(name)} {
		sub := r.subscribe(b, queueName, 30*time.Second, 1)
		r.publish(b, queueName, text("x"))
		for i := range 5 {
			l := r.receive(sub)
			if l.DeliveryCount != i+1 {
				t.Errorf("%s: delivery count %d, want %d", queueName, l.DeliveryCount, i+1)
			}
			if err := l.Settle(t.Context(), queue.Settlement{Action: queue.ActionRelease}); err != nil {
				t.Fatal(err)
			}
		}
		r.ack(r.receive(sub))
	}
}

// TestDeliveryLimit has the broker give a message up: it must be in the dead-letter queue.
func TestDeliveryLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.config()
	cfg.DeliveryLimit = 2
	b := r.open(cfg)
	name := r.queue(b, "limit")
	sub := r.subscribe(b, name, 30*time.Second, 1)
	r.publish(b, name, text("kills every worker"))
	for range 3 {
		if err := r.receive(sub).Settle(t.Context(), queue.Settlement{Action: queue.ActionRelease}); err != nil {
			t.Fatal(err)
		}
	}
	l := r.receive(r.subscribe(b, queue.DLQ(name), 30*time.Second, 1))
	if string(l.Body) != "kills every worker" || len(l.Headers) != 0 {
		t.Errorf("dead letter is %q with headers %v", l.Body, l.Headers)
	}
	r.ack(l)
}

// TestArguments pins what keeps messages from being lost.
func TestArguments(t *testing.T) {
	t.Parallel()
	topo := newTopology(Config{}.WithDefaults())
	main := topo.mainArgs("q")
	for name, want := range map[string]any{
		"x-queue-type": "quorum", "x-delivery-limit": int64(1000), "x-dead-letter-strategy": "at-least-once",
		"x-overflow": "reject-publish", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "cs1.q.dlq",
	} {
		if main[name] != want {
			t.Errorf("main queue: %s is %v, want %v", name, main[name], want)
		}
	}
	delay := topo.delayArgs(time.Second)
	if delay["x-dead-letter-strategy"] != "at-least-once" || delay["x-overflow"] != "reject-publish" || delay["x-message-ttl"] != int64(1000) {
		t.Errorf("delay queue: %v", delay)
	}
	for what, args := range map[string]amqp.Table{"main": main, "delay": delay, "dead-letter": topo.keepArgs()} {
		if args["x-expires"] != nil || args["x-queue-type"] != "quorum" || what != "delay" && args["x-message-ttl"] != nil {
			t.Errorf("%s queue: %v", what, args)
		}
		if limit, ok := args["x-delivery-limit"].(int64); ok && limit < 1 || !ok && what != "delay" {
			t.Errorf("%s queue: delivery limit %v, want a positive one", what, args["x-delivery-limit"])
		}
	}
}

// TestUnroutable publishes to a queue that is missing, and deletes one while its message is delayed.
func TestUnroutable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.name("gone")
	for what, delay := range map[string]time.Duration{"at once": 0, "delayed": time.Second} {
		pub := text("x")
		pub.Delay = delay
		if err := b.Publish(t.Context(), name, []queue.Publication{pub})[0].Err; !errors.Is(err, queue.ErrQueueNotFound) {
			t.Errorf("publish %s to a missing queue: error %v, want ErrQueueNotFound", what, err)
		}
	}
	if err := b.CreateQueue(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	pub := text("on its way when the queue went")
	pub.Delay = 8 * time.Second // the queue is gone by then: what the broker hands to a queue that goes at that moment it repeats after 3 minutes only
	r.publish(b, name, pub)
	r.deleteQueues()
	r.raw(func(ch *amqp.Channel) {
		r.eventually(func() error {
			d, ok, err := ch.Get(testPrefix+"unroutable", true) // of any test that was cut short as well
			if err != nil {
				return err
			}
			if !ok || string(d.Body) != string(pub.Body) {
				return errors.New("not there yet")
			}
			if d.RoutingKey != testPrefix+name {
				t.Errorf("routing key %q does not tell the queue", d.RoutingKey)
			}
			return nil
		})
	})
}

// TestSameID publishes two messages of one id, which other programs may well give: the broker's answer to the one is not the other's.
func TestSameID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "same-id")
	for range 20 {
		msg := amqp.Publishing{MessageId: "same", DeliveryMode: amqp.Persistent}
		out := []outgoing{b.outgoing(testPrefix+name, msg), b.outgoing(testPrefix+"test-nowhere", msg)}
		b.pub.publish(t.Context(), out)
		if out[0].err != nil || !errors.Is(out[1].err, queue.ErrQueueNotFound) {
			t.Fatalf("errors %v and %v, want none and ErrQueueNotFound", out[0].err, out[1].err)
		}
	}
}

// TestLongDelay needs more than one step: nobody sees them.
func TestLongDelay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "long")
	o := b.delay("x", 25*time.Hour, amqp.Publishing{})
	due := time.UnixMilli(headerInt(o.msg.Headers, headerDue))
	if left := time.Until(due); o.exchange != testPrefix+"delay.8192000" || left > 27*time.Hour+30*time.Minute || left < 25*time.Hour-time.Minute {
		t.Errorf("a delay of 25h goes to %q and is due in %v", o.exchange, left)
	}
	// What comes out of a delay and is not due yet.
	due = time.Now().Add(1500 * time.Millisecond)
	r.rawPublish(name, amqp.Publishing{Body: []byte("later"), Headers: amqp.Table{headerDue: due.UnixMilli(), headerAttempts: int32(3), "n": int16(1)}})
	l := r.receive(r.subscribe(b, name, 30*time.Second, 1))
	if early := time.Until(due); early > 0 {
		t.Errorf("handed out %v too early", early)
	}
	if l.Attempts != 4 || l.DeliveryCount != 1 || l.Headers["n"] != "1" {
		t.Errorf("after a hop: attempts %d, deliveries %d, headers %v; want 4, 1, n", l.Attempts, l.DeliveryCount, l.Headers)
	}
	r.ack(l)
}

// TestChangedArguments explains what differs, and is permanent.
func TestChangedArguments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "changed")
	cfg := r.config()
	cfg.DeliveryLimit = 7
	other := r.open(cfg)
	err := other.CreateQueue(t.Context(), name)
	var differs *DifferentError
	if !errors.As(err, &differs) || differs.Name != testPrefix+name || errors.Is(err, queue.ErrUnavailable) {
		t.Fatalf("CreateQueue with other arguments: error %v, want a *DifferentError", err)
	}
	for _, want := range []string{"x-delivery-limit", "'7'", "'1000'", "prefix", "delete"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not mention %s", err, want)
		}
	}
}
