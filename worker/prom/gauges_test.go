package prom

import (
	"context"
	"fmt"
	"testing"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

// ownFigures is a broker with figures of its own and dead-letter queues.
type ownFigures struct {
	queue.Broker
	list []inspect.Gauge
}

func (b ownFigures) Gauges() []inspect.Gauge { return b.list }

func (b ownFigures) Depth(_ context.Context, name string) (queue.Depth, error) {
	switch name {
	case "a":
		return queue.Depth{Ready: queue.CountOf(5)}, nil
	case "a.dlq":
		return queue.Depth{Ready: queue.CountOf(3), InFlight: queue.CountOf(1)}, nil
	}
	return queue.Depth{}, queue.ErrQueueNotFound
}

func TestFiguresOfTheBroker(t *testing.T) {
	t.Parallel()
	list := []inspect.Gauge{
		{Name: "blocked", Help: "1 while blocked", Value: 1},
		{Name: "hops_total", Help: "Hops", Queue: "a", Value: 2},
		{Name: "hops_total", Help: "Hops", Queue: "b", Value: 3},
		{Name: "no name", Help: "x"},
	}
	for i := range 3 * MaxLabelValues {
		list = append(list, inspect.Gauge{Name: "per_queue", Help: "y", Queue: fmt.Sprintf("q%d", i), Value: 1})
		list = append(list, inspect.Gauge{Name: fmt.Sprintf("made_up_%d", i), Help: "z"})
	}
	_, reg := newObserver(t, Config{Broker: ownFigures{list: list}})
	s := gather(t, reg)
	s.expect(t, series{
		`caisson_broker_blocked{queue=""}`: 1, `caisson_broker_hops_total{queue="a"}`: 2, `caisson_broker_hops_total{queue="b"}`: 3,
	})
	if n := len(s.with("caisson_broker_per_queue")); n > MaxLabelValues+1 {
		t.Errorf("%d series of one figure", n)
	}
	if n := len(s); n > MaxLabelValues+100 {
		t.Errorf("%d series in all", n)
	}
}

// What lies in the broker's dead-letter queues is part of the depth that alerts watch.
func TestDepthOfDeadLetterQueues(t *testing.T) {
	t.Parallel()
	_, reg := newObserver(t, Config{Broker: ownFigures{}, Queues: []string{"a", "none"}, DeadLetterQueues: true})
	gather(t, reg).expect(t, series{`caisson_dlq_depth{cause="broker",queue="a"}`: 4, `caisson_queue_depth{queue="a",state="ready"}`: 5})
	_, reg = newObserver(t, Config{Broker: ownFigures{}, Queues: []string{"a"}})
	if names := gather(t, reg).with("caisson_dlq_depth"); len(names) != 0 {
		t.Errorf("not asked for: %v", names)
	}
}
