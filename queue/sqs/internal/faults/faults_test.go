package faults

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

// TestFaults breaks the calls between a working worker and a real server. See [faultlab.Matrix] for what must hold.
func TestFaults(t *testing.T) {
	t.Parallel()
	matrix(t, faultlab.Rig{Lease: 2 * time.Second}, []strike{
		{name: "throttling", plan: every(2, sqstest.Throttled)},
		{name: "OverLimit", plan: every(1, sqstest.OverLimit, "ReceiveMessage")},
		{name: "partial batch failure", plan: func(c sqstest.Call) sqstest.Fault {
			if c.Entries == 0 {
				return sqstest.Fault{}
			}
			return sqstest.FailEntries(c.Number%c.Entries, (c.Number+1)%c.Entries)
		}},
		{name: "lost response", plan: every(3, sqstest.Fault{Lose: true})},
		{name: "duplicate delivery", plan: doubles()},
		{name: "expired handle", plan: every(2, sqstest.Fault{FailEntries: []int{0}, EntryCode: "ReceiptHandleIsInvalid", SenderFault: true},
			"DeleteMessageBatch", "ChangeMessageVisibilityBatch")},
		{name: "500s", plan: func(c sqstest.Call) sqstest.Fault {
			return []sqstest.Fault{{}, sqstest.ServerError, sqstest.Unavailable}[c.Number%3]
		}},
		// The half-open connection of HTTP. Who waits on it cannot tell it from an empty queue until the poll's time and a margin are over.
		{name: "calls that hang", plan: every(4, sqstest.Fault{Hang: true}), recover: 20 * time.Second},
	})
}

// strike is a fault of the wire.
type strike struct {
	name    string
	plan    plan
	recover time.Duration // zero means what the lab says
}

// atOnce bounds the trials that go on together: a machine that is busy with others' loads loses leases that no fault took.
var atOnce = make(chan struct{}, 4)

// matrix tries each fault in a trial of its own, with a wire and queues of its own, some at the same time.
func matrix(t *testing.T, rig faultlab.Rig, strikes []strike) {
	t.Helper()
	for _, s := range strikes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			cfg := ownConfig(t) // whose queues are deleted at the end
			w := &wire{}
			rig := rig
			rig.Open = func(t testing.TB) queue.Broker { return w.open(t, cfg) }
			rig.Connections = func(testing.TB) int { return int(w.connections.Load()) }
			f := w.during(s.name, s.plan)
			f.Recover = s.recover
			faultlab.Trial(t, rig, f)
		})
	}
}

// TestFaultsFIFO loses leases and doubles deliveries of a FIFO queue: besides all else, the order of each group must hold.
func TestFaultsFIFO(t *testing.T) {
	t.Parallel()
	expired := sqstest.Fault{FailEntries: []int{0}, EntryCode: "ReceiptHandleIsInvalid", SenderFault: true}
	jobs := 100
	if os.Getenv("SOAK") != "" {
		jobs = 2000
	}
	matrix(t, faultlab.Rig{
		QueueName: func(name string) string { return name + ".fifo" },
		Lease:     2 * time.Second,
		Jobs:      jobs, Groups: 20,
	}, []strike{
		{name: "FIFO: duplicate delivery", plan: doubles()},
		{name: "FIFO: expired handle", plan: every(3, expired, "DeleteMessageBatch", "ChangeMessageVisibilityBatch")},
		{name: "FIFO: lost response", plan: every(3, sqstest.Fault{Lose: true}, "ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")},
	})
}

type plan = func(sqstest.Call) sqstest.Fault

// every strikes each nth call of the actions, or of all.
func every(n int, f sqstest.Fault, actions ...string) plan {
	return func(c sqstest.Call) sqstest.Fault {
		if c.Number%n == 0 && (len(actions) == 0 || slices.Contains(actions, c.Action)) {
			return f
		}
		return sqstest.Fault{}
	}
}

// doubles doubles the messages of some receives: the doubles come with later answers, and have to be through before the trial ends.
func doubles() plan {
	left := 40
	return func(c sqstest.Call) sqstest.Fault {
		if c.Action != "ReceiveMessage" || left == 0 {
			return sqstest.Fault{}
		}
		left--
		return sqstest.Fault{Double: true}
	}
}

// wire carries requests to the server, with faults that can be changed meanwhile.
type wire struct {
	plan        atomic.Pointer[plan]
	struck      atomic.Int64
	connections atomic.Int64
}

// during puts p in force for a while.
func (w *wire) during(name string, p plan) faultlab.Fault {
	return faultlab.Fault{Name: name, Inject: func(t testing.TB, _ string) {
		before := w.struck.Load()
		w.plan.Store(&p)
		select {
		case <-time.After(2 * time.Second):
		case <-t.Context().Done():
		}
		w.plan.Store(nil)
		if w.struck.Load() == before {
			t.Error("the fault struck nothing")
		}
	}}
}

func (w *wire) decide(c sqstest.Call) sqstest.Fault {
	p := w.plan.Load()
	if p == nil {
		return sqstest.Fault{}
	}
	f := (*p)(c)
	if f.Status != 0 || f.Hang || f.Lose || f.Double || len(f.FailEntries) > 0 {
		w.struck.Add(1)
	}
	return f
}

func (w *wire) open(t testing.TB, cfg sqs.Config) queue.Broker {
	t.Helper()
	transport := &http.Transport{DialContext: w.dial, MaxIdleConnsPerHost: 256, IdleConnTimeout: 300 * time.Millisecond} // so that only those in use are counted
	cfg.Transport = &sqstest.Faults{Next: transport, Plan: w.decide}
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	b, err := sqs.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return ownTransport{Broker: b, transport: transport}
}

// ownTransport is a broker that ends the connections of its transport with itself. The driver leaves those of a transport that it was given.
type ownTransport struct {
	queue.Broker
	transport *http.Transport
}

func (b ownTransport) Close() error {
	defer b.transport.CloseIdleConnections()
	return b.Broker.Close()
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.connections.Add(1)
	return &countedConn{Conn: conn, w: w}, nil
}

// countedConn is counted until it is closed.
type countedConn struct {
	net.Conn
	w      *wire
	closed atomic.Bool
}

func (c *countedConn) Close() error {
	if !c.closed.Swap(true) {
		c.w.connections.Add(-1)
	}
	return c.Conn.Close()
}
