package rabbitmq

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

var _ inspect.Gauges = (*Broker)(nil)

// Gauges implements [inspect.Gauges].
func (b *Broker) Gauges() []inspect.Gauge {
	var connections, connects int64
	for _, l := range []*link{b.sending, b.consume} {
		if s, _, _ := l.state(); s != nil {
			connections++
		}
		connects += l.connects.Load()
	}
	blocked := 0.0
	if why, _ := b.blocking(); why != "" {
		blocked = 1
	}
	gauges := []inspect.Gauge{
		{Name: "blocked", Help: "1 while the broker takes no messages (memory or disk alarm)", Value: blocked},
		{Name: "connections", Help: "Connections that are up, of 2", Value: float64(connections)},
		{Name: "reconnects", Help: "Connections made after the first two", Value: float64(max(connects-2, 0))},
		{Name: "unconfirmed", Help: "Messages sent and not confirmed yet", Value: float64(b.pub.unconfirmed.Load())},
		{Name: "subscriptions_down", Help: "Subscriptions that cannot receive now", Value: float64(b.unhealthy())},
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.stuck)) {
		gauges = append(gauges, inspect.Gauge{
			Name: "messages_dlx", Help: "Messages that are stuck on the way to the dead-letter queue",
			Queue: name, Value: float64(b.stuck[name]),
		})
	}
	return gauges
}

func (b *Broker) unhealthy() int {
	b.mu.Lock()
	subs := slices.Collect(maps.Keys(b.all))
	b.mu.Unlock()
	n := 0
	for _, s := range subs {
		if !s.isClosed() && s.Healthy() != nil {
			n++
		}
	}
	return n
}

func (s *subscription) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// pollEvery is how often the management API is asked for what gauges show.
const pollEvery = 15 * time.Second

// poll keeps what the management API knows about this process's queues, until ctx is done.
func (b *Broker) poll(ctx context.Context) {
	defer b.management.close()
	for ctx.Err() == nil {
		queues, err := b.management.queues(ctx, b.cfg.Prefix)
		if err != nil && ctx.Err() == nil {
			b.cfg.Logger.WarnContext(ctx, "the management API does not answer: messages stuck in dead-lettering are not seen", "error", err.Error())
		}
		b.setStuck(queues)
		pause.For(ctx, pollEvery)
	}
}

func (b *Broker) setStuck(queues []managedQueue) {
	stuck := map[string]int64{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range queues {
		name := strings.TrimPrefix(q.Name, b.cfg.Prefix)
		if _, ok := b.known[name]; ok && !queue.IsDLQ(name) {
			stuck[name] = q.Stuck
		}
	}
	b.stuck = stuck
}
