package brokerdlq_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/testkit/brokerdlqtest"
	"github.com/caisson-go/caisson/queue"
)

// awkward is a broker that promises no more than the port: ids change with each delivery, few messages come at once, nothing can be
// counted or listed. With groups it is FIFO: of a group one message is out at a time.
type awkward struct {
	queue.Broker
	groups bool

	mu   sync.Mutex
	busy map[string]bool
}

const groupHeader = "test-group"

func (a *awkward) Capabilities(name string) queue.Capabilities {
	c := a.Broker.Capabilities(name)
	c.Depth, c.Ordered, c.CountsAttempts, c.FIFO = 0, false, false, a.groups
	c.MaxLease = 20 * time.Second
	return c
}

func (a *awkward) Depth(ctx context.Context, name string) (queue.Depth, error) {
	_, err := a.Broker.Depth(ctx, name)
	return queue.Depth{}, err
}

func (*awkward) Queues(context.Context) ([]queue.QueueInfo, error) { return nil, nil }

func (a *awkward) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	grouped := make([]queue.Publication, len(pubs))
	for i, p := range pubs {
		p.Headers = maps.Clone(p.Headers)
		if p.Headers == nil {
			p.Headers = map[string]string{}
		}
		p.Headers[groupHeader] = p.Group
		grouped[i] = p
	}
	return a.Broker.Publish(ctx, name, grouped)
}

func (a *awkward) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	if cfg.Lease > 20*time.Second {
		return nil, fmt.Errorf("lease %v is too long", cfg.Lease)
	}
	sub, err := a.Broker.Subscribe(ctx, name, cfg)
	return awkwardSubscription{sub, a}, err
}

type awkwardSubscription struct {
	queue.Subscription
	a *awkward
}

func (s awkwardSubscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	for {
		leases, err := s.Subscription.Receive(ctx, min(most, 3))
		var free []*queue.Lease
		for _, l := range leases {
			l.ID = rand.Text()
			group := l.Queue + " " + l.Headers[groupHeader]
			if s.a.groups {
				if !s.a.enter(group) {
					if err := l.Retry(context.WithoutCancel(ctx), 100*time.Millisecond, true); err != nil {
						return free, err
					}
					continue
				}
				l.Group = l.Headers[groupHeader]
				l.Decorate(func(h queue.Handle) queue.Handle { return groupHandle{h, s.a, group} })
			}
			if delete(l.Headers, groupHeader); len(l.Headers) == 0 {
				l.Headers = nil
			}
			free = append(free, l)
		}
		if len(free) > 0 || err != nil {
			return free, err
		}
	}
}

func (a *awkward) enter(group string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy[group] {
		return false
	}
	a.busy[group] = true
	return true
}

type groupHandle struct {
	queue.Handle
	a     *awkward
	group string
}

func (h groupHandle) Settle(ctx context.Context, s queue.Settlement) error {
	err := h.Handle.Settle(ctx, s)
	if err == nil {
		h.a.mu.Lock()
		defer h.a.mu.Unlock()
		delete(h.a.busy, h.group)
	}
	return err
}

func TestAwkwardBrokers(t *testing.T) {
	t.Parallel()
	for name, groups := range map[string]bool{"standard": false, "FIFO": true} {
		t.Run(name, func(t *testing.T) {
			brokerdlqtest.Run(t, brokerdlqtest.Harness{
				Broker: func(t *testing.T) queue.Broker {
					return &awkward{Broker: inMemory(t), groups: groups, busy: map[string]bool{}}
				},
				Store:  newStore,
				Bubble: true,
			})
		})
	}
}

// Messages of one group that the broker has moved come one after the other, each when the one before it is settled. All are replayed.
func TestReplayOfAGroupThatTheBrokerMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, letters := setUp(t, func(b queue.Broker) queue.Broker {
			return &awkward{Broker: b, groups: true, busy: map[string]bool{}}
		}, brokerdlq.Config{})
		if err := b.CreateQueue(t.Context(), queue.DLQ("q")); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, e := range jobs(t, 10) {
			if r := b.Publish(t.Context(), queue.DLQ("q"), []queue.Publication{{Message: e.Message, Group: "order 7"}}); r[0].Err != nil {
				t.Fatal(r[0].Err)
			}
			want = append(want, e.Job)
		}
		time.Sleep(time.Second)
		report, scanned, err := letters.Replay(t.Context(), replay.Config{Filter: dlq.Filter{Queue: "q"}})
		if err != nil || report.Replayed != 10 || scanned.Incomplete {
			t.Errorf("report %+v, %+v, %v", report, scanned, err)
		}
		var got []string
		for _, m := range takeAll(t, b, "q") {
			env, err := m.Envelope()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, env.ID)
		}
		slices.Sort(got) // this broker hides the next one for a while, so that their order is left to chance
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("replayed (-want +got):\n%s", diff)
		}
	})
}
