package prom

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caisson-go/caisson/queue"
)

// depths is what the broker told of its queues.
type depths struct {
	queues map[string]queue.Depth
	dead   map[string]queue.Depth // of dead-letter queues, by the queue that they belong to
}

// causeBroker stands for the cause of dead letters in the broker's own dead-letter queues: it counts them and knows no more.
const causeBroker = "broker"

// askDepths asks for each queue. A queue that does not exist yet has no depth.
func (s *scrape) askDepths(ctx context.Context) (depths, error) {
	names := slices.Clone(s.o.cfg.Queues)
	if w := s.o.worker.Load(); w != nil {
		for _, q := range w.Snapshot().Queues {
			names = append(names, q.Name)
		}
	}
	d := depths{queues: make(map[string]queue.Depth, len(names)), dead: make(map[string]queue.Depth)}
	for _, name := range names {
		if _, known := d.queues[name]; known {
			continue
		}
		if err := s.askDepth(ctx, name, name, d.queues); err != nil {
			return d, err
		}
		if !s.o.cfg.DeadLetterQueues || queue.IsDLQ(name) {
			continue
		}
		if err := s.askDepth(ctx, queue.DLQ(name), name, d.dead); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (s *scrape) askDepth(ctx context.Context, name, as string, to map[string]queue.Depth) error {
	d, err := s.o.cfg.Broker.Depth(ctx, name)
	switch {
	case errors.Is(err, queue.ErrQueueNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("depth of queue %q: %w", name, err)
	}
	to[as] = d
	return nil
}

func (o *Observer) collectDepths(s out) {
	d, err := o.state.depths.get()
	s.gauge(metricStoreUp, oneIf(err == nil), "broker")
	if err != nil {
		return
	}
	for name, depth := range d.queues {
		for _, field := range []struct {
			state string
			count queue.Count
		}{{"ready", depth.Ready}, {"delayed", depth.Delayed}, {"in_flight", depth.InFlight}} {
			if field.count.Known {
				s.gauge(metricQueueDepth, float64(field.count.N), name, field.state)
			}
		}
	}
	for name, depth := range d.dead {
		// What a tool has in hand is still there: in flight, and delayed where a broker puts messages back that way.
		s.gauge(metricDLQDepth, float64(depth.Ready.N+depth.Delayed.N+depth.InFlight.N), name, causeBroker)
	}
}
