package faults_test

import (
	"log/slog"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/rabbitmq"
)

// faultRig is a node of the test's own behind a proxy.
type faultRig struct {
	node  *testserver.RabbitMQ
	proxy *testserver.Proxy
}

// TestFaults breaks the network, the broker and the queue under a working worker. See [faultlab.Matrix] for what must hold.
func TestFaults(t *testing.T) {
	// A message may be held for two seconds, but the node looks only once a minute, or when it is told to.
	node := testserver.StartRabbitMQWith(t, testserver.RabbitMQConfig{Conf: []string{"consumer_timeout = 2000"}})
	t.Run("reconnects", func(t *testing.T) { reconnects(t, node) })
	r := &faultRig{node: node, proxy: testserver.StartProxy(t, node.Addr())}
	faultlab.Matrix(t, faultlab.Rig{
		Open:        func(t testing.TB) queue.Broker { return r.open(t, r.proxy.URL(node.URL())) },
		Connections: func(testing.TB) int { return r.proxy.Connections() },
		Lease:       2 * time.Second,
	}, []faultlab.Fault{
		{Name: "TCP cut", Inject: r.cut},
		{Name: "latency", Inject: r.latency},
		{Name: "half-open", Inject: r.halfOpen},
		{Name: "broker restart", Inject: func(t testing.TB, _ string) { node.Restart(t) }},
		{Name: "broker kill -9", Inject: func(t testing.TB, _ string) { node.Kill(t); node.Start(t) }},
		{Name: "queue deleted", Inject: r.deleteQueue, Destroys: true},
		{Name: "channel closed", Inject: r.closeChannel},
		{Name: "memory alarm", Inject: r.memoryAlarm},
	})
}

// heartbeat finds a dead connection soon enough for a test.
const heartbeat = time.Second

func (r *faultRig) open(t testing.TB, url string) queue.Broker {
	t.Helper()
	b, err := rabbitmq.Open(t.Context(), rabbitmq.Config{
		URLs: []string{url}, Heartbeat: heartbeat, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// beside opens the node past the proxy, as an operator would.
func (r *faultRig) beside(t testing.TB, do func(b queue.Broker)) {
	t.Helper()
	b := r.open(t, r.node.URL())
	do(b)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func wait(t testing.TB, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// cut breaks all connections a few times at once, then keeps everybody out for a while.
func (r *faultRig) cut(t testing.TB, _ string) {
	for range 3 {
		r.proxy.Drop()
		wait(t, 200*time.Millisecond)
	}
	r.proxy.Cut()
	wait(t, time.Second)
	r.proxy.Restore()
}

func (r *faultRig) latency(t testing.TB, _ string) {
	r.proxy.Latency(250 * time.Millisecond) // each way
	wait(t, 2*time.Second)
	r.proxy.Latency(0)
}

// halfOpen swallows all packets until each side must have given the other up.
func (r *faultRig) halfOpen(t testing.TB, _ string) {
	r.proxy.Blackhole(true)
	wait(t, 4*heartbeat)
	r.proxy.Blackhole(false)
}

func (r *faultRig) deleteQueue(t testing.TB, name string) {
	conn, err := amqp.Dial(r.node.URL())
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDelete("cs1."+name, false, false, false); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	wait(t, time.Second)
	r.beside(t, func(b queue.Broker) {
		if err := b.CreateQueue(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	})
}

// closeChannel has the node close the channel of a message that is held for longer than consumer_timeout.
func (r *faultRig) closeChannel(t testing.TB, name string) {
	r.beside(t, func(b queue.Broker) {
		if err := faultlab.EnqueueSlow(t.Context(), b, name, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	})
	wait(t, 3*time.Second)
	const tick = "length([P ! tick || P <- rabbit_channel:list()])."
	if n := r.node.Ctl(t, "eval", tick); n == "0" {
		t.Errorf("the node has no channels to look at: %s", n)
	}
}

func (r *faultRig) memoryAlarm(t testing.TB, _ string) {
	r.node.MemoryAlarm(t, true)
	wait(t, 3*time.Second)
	r.node.MemoryAlarm(t, false)
}
