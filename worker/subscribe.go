package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// subscribe makes the queues and starts a subscription to each. It waits for a broker that is not there yet; all other errors are final.
func (w *Worker) subscribe(ctx context.Context) error {
	weights := make([]int, len(w.cfg.Queues))
	for i, q := range w.cfg.Queues {
		weights[i] = q.Weight
	}
	for i, share := range shares(w.cfg.Concurrency, weights) {
		q := w.cfg.Queues[i]
		var sub queue.Subscription
		err := w.whileUnavailable(ctx, q.Name, func() (err error) {
			sub, err = w.subscribeTo(ctx, q.Name, share)
			return err
		})
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.runners = append(w.runners, &queueRunner{w: w, cfg: q, limits: w.cfg.Broker.Capabilities(q.Name), slots: newSlots(share), sub: sub, jobs: make(chan *attempt, share)})
		w.mu.Unlock()
	}
	return nil
}

func (w *Worker) subscribeTo(ctx context.Context, name string, slots int) (queue.Subscription, error) {
	if err := w.cfg.Broker.CreateQueue(ctx, name); err != nil {
		return nil, fmt.Errorf("queue %q: %w", name, err)
	}
	sub, err := w.cfg.Broker.Subscribe(ctx, name, queue.SubscribeConfig{Lease: w.cfg.Lease, Slots: slots})
	if err != nil {
		return nil, fmt.Errorf("subscribe to queue %q: %w", name, err)
	}
	return sub, nil
}

// whileUnavailable repeats call until the broker can be asked or ctx is done. It reports the first failure, and the recovery.
func (w *Worker) whileUnavailable(ctx context.Context, name string, call func() error) error {
	paused := false
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 5*time.Second) {
		err := call()
		if errors.Is(err, queue.ErrUnavailable) && ctx.Err() == nil {
			if !paused {
				paused = true
				w.observe(&Paused{What: name, Err: err})
			}
			w.setUnavailable(err)
			if pause.For(ctx, jitter(delay)) {
				continue
			}
		}
		if paused {
			w.setUnavailable(nil)
		}
		if err == nil && paused {
			w.observe(&Paused{What: name})
		}
		return err
	}
}

func (w *Worker) setUnavailable(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unavailable = err
}
