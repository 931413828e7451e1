package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// waiting starts a call of Receive that lasts through interruptions. The function it returns publishes messages and waits for one.
func (r *rig) waiting(b *Broker, sub *subscription, name string) func() {
	r.Helper()
	got := make(chan *queue.Lease, 1)
	go func() {
		for {
			leases, err := sub.Receive(r.Context(), 1)
			if len(leases) == 1 {
				got <- leases[0]
				return
			}
			if !errors.Is(err, queue.ErrUnavailable) {
				close(got)
				return
			}
		}
	}()
	return func() {
		r.Helper()
		start := time.Now()
		var l *queue.Lease
		r.eventually(func() error {
			err := b.Publish(r.Context(), name, []queue.Publication{text("after")})[0].Err
			select {
			case l = <-got:
				return nil
			case <-time.After(200 * time.Millisecond):
				return errors.Join(errors.New("nothing received"), err)
			}
		})
		if l == nil {
			r.Fatal("Receive failed")
		}
		r.ack(l)
		if took := time.Since(start); took > 10*time.Second {
			r.Errorf("consuming again after %v, want 10s at most", took)
		}
		r.eventually(sub.Healthy)
	}
}

// TestQueueDeleted deletes the queue under its consumer: the broker cancels it. Case I2.
func TestQueueDeleted(t *testing.T) {
	t.Parallel()
	for _, remade := range []bool{false, true} {
		t.Run(fmt.Sprintf("remade=%v", remade), func(t *testing.T) {
			r := newRig(t)
			b := r.open(r.config())
			name := r.queue(b, "deleted")
			sub := r.subscribe(b, name, 30*time.Second, 2)
			r.publish(b, name, text("held"))
			held := r.receive(sub)
			again := r.waiting(b, sub, name)
			r.raw(func(ch *amqp.Channel) {
				if _, err := ch.QueueDelete(testPrefix+name, false, false, false); err != nil {
					t.Fatal(err)
				}
			})
			if remade { // in the same instant: the broker does not cancel the consumer
				if err := b.CreateQueue(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			again()
			if remade {
				return // the channel that brought the lease may live, and take its ack for nothing
			}
			if err := held.Ack(t.Context()); !errors.Is(err, queue.ErrLeaseLost) {
				t.Errorf("ack of a message whose queue was deleted: error %v, want ErrLeaseLost", err)
			}
		})
	}
}

// TestQueueMadeByOthers has somebody make the queue anew without what belongs to it: delayed messages must find it all the same. Case I2.
func TestQueueMadeByOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.ownPrefix()
	prefix := cfg.Prefix
	b := r.open(cfg)
	const name = "q"
	if err := b.CreateQueue(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	sub := r.subscribe(b, name, 30*time.Second, 2)
	r.raw(func(ch *amqp.Channel) {
		if _, err := ch.QueueDelete(prefix+name, false, false, false); err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDeclare(prefix+name, true, false, false, false, b.topology.mainArgs(name)); err != nil {
			t.Fatal(err)
		}
	})
	arrived := make(chan *queue.Lease, 1)
	go func() {
		leases, _ := sub.Receive(t.Context(), 1)
		for _, l := range leases {
			arrived <- l
		}
	}()
	r.eventually(func() error {
		out := []outgoing{{exchange: b.topology.deliver(), key: prefix + name, msg: amqp.Publishing{MessageId: "delayed"}}}
		b.pub.publish(t.Context(), out) // as the end of a delay does
		select {
		case l := <-arrived:
			return l.Ack(t.Context())
		case <-time.After(200 * time.Millisecond):
			return errors.Join(errors.New("nothing has come"), out[0].err)
		}
	})
}

// TestStopChargesNothing gives jobs back after the end of the subscription, over and over. The other way round RabbitMQ may deliver the copy to
// the consumer that is ending, and count that. Case E1.
func TestStopChargesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "stops")
	r.publish(b, name, text("a"))
	for stop := range 30 {
		sub := r.subscribe(b, name, 30*time.Second, 1)
		l := r.receive(sub)
		if l.Attempts != 1 {
			t.Fatalf("attempt %d after %d stops", l.Attempts, stop)
		}
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServerClosesChannel has the broker close the channel with 406, as it does after consumer_timeout. Case I2.
func TestServerClosesChannel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "closed")
	sub := r.subscribe(b, name, 30*time.Second, 2)
	r.publish(b, name, text("held"))
	held := r.receive(sub)
	again := r.waiting(b, sub, name)
	if err := sub.current().ch.Ack(999_999, false); err != nil { // a tag that it does not know
		t.Fatal(err)
	}
	again()
	if err := held.Ack(t.Context()); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("ack on the closed channel: error %v, want ErrLeaseLost", err)
	}
}

// TestSlowJobHoldsNoOthers: two processes with one slot each, one slow job. Case C1.
func TestSlowJobHoldsNoOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	brokers := []*Broker{r.open(r.config()), r.open(r.config())}
	name := r.queue(brokers[0], "slow")
	subs := []*subscription{r.subscribe(brokers[0], name, 30*time.Second, 1), r.subscribe(brokers[1], name, 30*time.Second, 1)}
	pubs := make([]queue.Publication, 10)
	for i := range pubs {
		pubs[i] = text(fmt.Sprint(i))
	}
	r.publish(brokers[0], name, pubs[0])
	slow := r.receive(subs[0]) // and works on it to the end of the test
	r.publish(brokers[0], name, pubs[1:]...)
	start := time.Now()
	for range 9 {
		r.ack(r.receive(subs[1]))
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("nine quick jobs took %v beside a slow one", took)
	}
	r.ack(slow)
}

// TestUnaskedGoesBack: what was prefetched for a subscription that does not receive is given to others, with nothing charged.
func TestUnaskedGoesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "unasked")
	lazy := r.subscribe(b, name, 30*time.Second, 10)
	for i := range 5 {
		r.publish(b, name, text(fmt.Sprint(i)))
	}
	first := r.receive(lazy) // the rest is prefetched
	other := r.subscribe(b, name, 30*time.Second, 10)
	for range 4 {
		l := r.receive(other)
		if l.Attempts != 1 || l.DeliveryCount != 1 {
			t.Errorf("a message that nobody saw has attempts %d and deliveries %d, want 1 and 1", l.Attempts, l.DeliveryCount)
		}
		r.ack(l)
	}
	if err := lazy.Healthy(); err != nil {
		t.Errorf("a parked subscription is not healthy: %v", err)
	}
	r.ack(first)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	r.publish(b, name, text("again"))
	r.ack(r.receive(lazy)) // which consumes again when it is asked
}

// TestSettlementsInAnyOrder settles in random order from many goroutines; acks are written together where they can be.
func TestSettlementsInAnyOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "order")
	const n = 400
	pubs := make([]queue.Publication, n)
	for i := range pubs {
		pubs[i] = text(fmt.Sprint(i))
	}
	r.publish(b, name, pubs...)
	sub := r.subscribe(b, name, 30*time.Second, 50)
	var mu sync.Mutex
	acked := map[string]int{}
	var wg sync.WaitGroup
	for total := 0; total < n; {
		leases, err := sub.Receive(t.Context(), 50)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			if l.DeliveryCount == 1 && rand.IntN(4) == 0 { // once around
				wg.Go(func() {
					s := queue.Settlement{Action: queue.ActionRelease, Uncharged: rand.IntN(2) == 0}
					if err := l.Settle(t.Context(), s); err != nil {
						t.Error(err)
					}
				})
				continue
			}
			total++
			wg.Go(func() {
				time.Sleep(rand.N(3 * time.Millisecond)) // another order
				if err := l.Ack(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				acked[string(l.Body)]++
			})
		}
	}
	wg.Wait()
	if err := b.Close(); err != nil { // straight after the last ack: case B1
		t.Fatal(err)
	}
	if len(acked) != n {
		t.Errorf("%d of %d messages acked", len(acked), n)
	}
	depth, err := r.open(r.config()).Depth(t.Context(), name)
	if err != nil || depth.Ready.N != 0 {
		t.Errorf("after all acks and Close: depth %v, error %v", depth.Ready, err)
	}
}

// TestCeiling bounds leases by the broker's consumer_timeout.
func TestCeiling(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.config()
	cfg.ConsumerTimeout = new(2 * time.Minute)
	b := r.open(cfg)
	name := r.queue(b, "ceiling")
	most := b.Capabilities(name).MaxLease
	if most <= time.Minute || most >= *cfg.ConsumerTimeout {
		t.Errorf("MaxLease is %v with a consumer timeout of %v", most, *cfg.ConsumerTimeout)
	}
	r.publish(b, name, text("x"))
	before := time.Now()
	l := r.receive(r.subscribe(b, name, most, 1))
	if l.Ceiling.Before(before) || l.Ceiling.After(time.Now().Add(most)) || l.Deadline().After(l.Ceiling) {
		t.Errorf("ceiling is in %v, deadline in %v; want both within %v", time.Until(l.Ceiling), time.Until(l.Deadline()), most)
	}
	if err := l.Extend(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if l.Deadline().After(l.Ceiling) {
		t.Error("extended beyond the ceiling")
	}
	r.ack(l)
	cfg.ConsumerTimeout = new(time.Duration(0))
	if c := cfg.Capabilities(name); c.MaxLease != 0 {
		t.Errorf("MaxLease is %v without a consumer timeout", c.MaxLease)
	}
}

// TestOversize receives more than MaxBody: the message is handed out, and the connection kept. Case D3.
func TestOversize(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.config()
	cfg.MaxBody = 1 << 20
	b := r.open(cfg)
	name := r.queue(b, "oversize")
	sub := r.subscribe(b, name, 30*time.Second, 1)
	r.rawPublish(name, amqp.Publishing{Body: make([]byte, 20<<20)})
	channel := sub.current()
	l := r.receive(sub)
	if len(l.Body) != 20<<20 {
		t.Fatalf("received %d bytes", len(l.Body))
	}
	// Set aside: the limit does not hold for the dead-letter queue.
	aside := []queue.Publication{{Message: l.Message}}
	if err := b.Publish(t.Context(), name, aside)[0].Err; !errors.Is(err, queue.ErrTooLarge) {
		t.Errorf("publish above MaxBody: error %v, want ErrTooLarge", err)
	}
	r.publish(b, queue.DLQ(name), aside...)
	if c := b.Capabilities(queue.DLQ(name)); c.MaxBody != 0 {
		t.Errorf("MaxBody of a dead-letter queue is %d, want none", c.MaxBody)
	}
	r.ack(l)
	r.publish(b, name, text("good"))
	if l := r.receive(sub); string(l.Body) != "good" {
		t.Errorf("received %d bytes after the oversize message was acked", len(l.Body))
	} else {
		r.ack(l)
	}
	if sub.current() != channel || gauge(b, "reconnects") != 0 {
		t.Error("the connection or channel was not kept")
	}
}

// TestRetryUnderDeadContext keeps the lease when a settlement could not be carried out.
func TestRetryUnderDeadContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "dead")
	r.publish(b, name, text("x"))
	l := r.receive(r.subscribe(b, name, 30*time.Second, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Retry(ctx, time.Second, false); !errors.Is(err, context.Canceled) {
		t.Fatalf("Retry with a done context: error %v", err)
	}
	r.ack(l)
}

// TestQuietConsumerIsReplaced: the leases of the old channel can still be settled.
func TestQuietConsumerIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "quiet")
	sub := r.subscribe(b, name, 30*time.Second, 2)
	r.publish(b, name, text("held"))
	l, old := r.receive(sub), sub.current()
	again := r.waiting(b, sub, name)
	r.eventually(func() error {
		if sub.current() == old {
			return errors.New("still the same channel")
		}
		return sub.Healthy()
	})
	r.ack(l)
	again()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	depth, err := r.open(r.config()).Depth(t.Context(), name)
	if err != nil || depth.Ready.N > 1 { // one more may have been published in the end
		t.Errorf("depth %v, error %v: the ack on the replaced channel did not arrive", depth.Ready, err)
	}
}
