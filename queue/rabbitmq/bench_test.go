package rabbitmq

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// Beside a plain loop over the client library that does the same durable work: 1 KB persistent messages on a quorum queue, mandatory and
// confirmed, the same window and prefetch.
const (
	benchBody   = 1024
	benchWindow = 256
)

func benchQueue(b *testing.B) (*rig, *Broker, string) {
	r := newRig(b)
	cfg := r.config()
	cfg.Window = benchWindow
	broker := r.open(cfg)
	return r, broker, r.queue(broker, "bench")
}

func BenchmarkPublishBare(b *testing.B) {
	r, _, name := benchQueue(b)
	body := bytes.Repeat([]byte("x"), benchBody)
	r.raw(func(ch *amqp.Channel) {
		bareConfirms(b, ch)
		b.ResetTimer()
		barePublish(b, ch, name, body, b.N)
		b.StopTimer()
	})
	rate(b)
}

func bareConfirms(b *testing.B, ch *amqp.Channel) {
	if err := ch.Confirm(false); err != nil {
		b.Fatal(err)
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, benchWindow))
	go func() {
		for range returns {
		}
	}()
}

func barePublish(b *testing.B, ch *amqp.Channel, name string, body []byte, n int) {
	flights := make(chan *amqp.DeferredConfirmation, benchWindow-1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for dc := range flights {
			if !dc.Wait() {
				b.Error("not confirmed")
			}
		}
	})
	for range n {
		dc, err := ch.PublishWithDeferredConfirm("", testPrefix+name, true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Headers: amqp.Table{"caisson": "envelope"}, Body: body,
		})
		if err != nil {
			b.Fatal(err)
		}
		flights <- dc
	}
	close(flights)
	wg.Wait()
}

func BenchmarkPublish(b *testing.B) {
	_, broker, name := benchQueue(b)
	pubs := make([]queue.Publication, 1000)
	for i := range pubs {
		pubs[i] = queue.Publication{Message: queue.Message{Body: bytes.Repeat([]byte("x"), benchBody), Headers: map[string]string{"caisson": "envelope"}}}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= len(pubs) {
		for _, res := range broker.Publish(context.Background(), name, pubs[:min(left, len(pubs))]) {
			if res.Err != nil {
				b.Fatal(res.Err)
			}
		}
	}
	b.StopTimer()
	rate(b)
}

func rate(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s") }

func fill(b *testing.B, broker *Broker, name string) {
	pubs := make([]queue.Publication, b.N)
	for i := range pubs {
		pubs[i] = queue.Publication{Message: queue.Message{Body: bytes.Repeat([]byte("x"), benchBody), Headers: map[string]string{"caisson": "envelope"}}}
	}
	for _, res := range broker.Publish(context.Background(), name, pubs) {
		if res.Err != nil {
			b.Fatal(res.Err)
		}
	}
}

const benchSlots = 50

func BenchmarkConsumeBare(b *testing.B) {
	r, broker, name := benchQueue(b)
	fill(b, broker, name)
	r.raw(func(ch *amqp.Channel) {
		if err := ch.Qos(benchSlots, 0, false); err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		deliveries, err := ch.Consume(testPrefix+name, "", false, false, false, false, nil)
		if err != nil {
			b.Fatal(err)
		}
		for range b.N {
			d := <-deliveries
			if err := d.Ack(false); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
	})
	rate(b)
}

func BenchmarkConsume(b *testing.B) {
	r, broker, name := benchQueue(b)
	fill(b, broker, name)
	sub := r.subscribe(broker, name, time.Minute, benchSlots)
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		leases, err := sub.Receive(ctx, benchSlots)
		if err != nil {
			b.Fatal(err)
		}
		for _, l := range leases {
			if err := l.Ack(ctx); err != nil {
				b.Fatal(err)
			}
		}
		n += len(leases)
	}
	b.StopTimer()
	rate(b)
}

// BenchmarkCycle publishes and consumes side by side, a goroutine for each message, as the worker does.
func BenchmarkCycle(b *testing.B) {
	r, broker, name := benchQueue(b)
	sub := r.subscribe(broker, name, time.Minute, benchSlots)
	ctx := context.Background()
	var acked atomic.Int64
	b.ResetTimer()
	var wg sync.WaitGroup
	wg.Go(func() { fill(b, broker, name) })
	for n := 0; n < b.N; {
		leases, err := sub.Receive(ctx, benchSlots)
		if err != nil {
			b.Fatal(err)
		}
		n += len(leases)
		for _, l := range leases {
			wg.Go(func() {
				if l.Ack(ctx) == nil {
					acked.Add(1)
				}
			})
		}
	}
	wg.Wait()
	b.StopTimer()
	if int(acked.Load()) != b.N {
		b.Fatalf("acked %d of %d", acked.Load(), b.N)
	}
	rate(b)
}

func BenchmarkCycleBare(b *testing.B) {
	r, _, name := benchQueue(b)
	body := bytes.Repeat([]byte("x"), benchBody)
	r.raw(func(pub *amqp.Channel) {
		r.raw(func(ch *amqp.Channel) {
			bareConfirms(b, pub)
			if err := ch.Qos(benchSlots, 0, false); err != nil {
				b.Fatal(err)
			}
			deliveries, err := ch.Consume(testPrefix+name, "", false, false, false, false, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			var wg sync.WaitGroup
			wg.Go(func() { barePublish(b, pub, name, body, b.N) })
			for range b.N {
				d := <-deliveries
				wg.Go(func() { _ = d.Ack(false) })
			}
			wg.Wait()
			b.StopTimer()
		})
	})
	rate(b)
}
