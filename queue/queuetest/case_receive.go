package queuetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/caisson-go/caisson/queue"
)

func caseReceiveTakesNoMoreThanAsked(e *env) {
	e.publish(numbered(5)...)
	busy := e.receive(e.subscribe(e.h.Hold, 1), 0)
	idle := e.subscribe(e.h.Hold, 4)
	e.ack(e.collect(idle, 4, 0)...) // none of them waits behind the busy subscription
	e.ack(busy)
}

func caseSlotsBoundWhatIsHeld(e *env) {
	e.publish(numbered(5)...)
	sub := e.subscribe(e.h.Hold, 2)
	ctx, cancel := e.waitCtx(0)
	defer cancel()
	var held []*queue.Lease
	for len(held) < 2 {
		leases, err := receiveSome(ctx, sub, 5)
		if err != nil {
			e.Fatalf("Receive: %v", err)
		}
		held = append(held, leases...)
	}
	if len(held) > 2 {
		e.Fatalf("a subscription with 2 slots holds %d messages", len(held))
	}
	e.nothing(sub, e.h.Quiet)
	e.ack(held[0]) // a settlement frees its slot
	e.ack(held[1], e.receive(sub, 0))
	e.ack(e.collect(sub, 2, 0)...)
}

func caseReceiveWaitsForPublish(e *env) {
	sub := e.subscribe(e.h.Hold, 1)
	ctx, cancel := e.waitCtx(e.h.Delay)
	defer cancel()
	got := make(chan error, 1)
	go func() {
		_, err := receiveSome(ctx, sub, 1)
		got <- err
	}()
	pubs := numbered(1)
	if !e.h.Want.FIFO {
		pubs[0].Delay = e.h.Delay // so that Receive is surely waiting when the message becomes visible
	}
	e.publish(pubs...)
	if err := <-got; err != nil {
		e.Errorf("Receive that waited for a message: %v", err)
	}
}

func caseCancelledReceive(e *env) {
	e.publish(numbered(1)...)
	sub := e.subscribe(e.h.Hold, 1)
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	leases, err := sub.Receive(ctx, 1)
	switch {
	case len(leases) == 1 && err == nil: // it was there at once; allowed
		e.ack(leases[0])
	case len(leases) == 0 && errors.Is(err, context.Canceled):
		e.ack(e.receive(sub, 0))
	default:
		e.Errorf("Receive with a cancelled context returned %d leases and error %v", len(leases), err)
	}
	if err := sub.Healthy(); err != nil {
		e.Errorf("a cancelled Receive left the subscription unhealthy: %v", err)
	}
}

// caseCancelledReceiveLosesNothing cancels receives at the moment in which messages arrive. What such a receive had
// leased must be returned by it or given back at once: the lease is longer than the case waits.
func caseCancelledReceiveLosesNothing(e *env) {
	const rounds = 150
	sub := e.subscribe(e.h.Hold, rounds)
	seen := newTally()
	pubs := numbered(rounds)
	for i, pub := range pubs {
		ctx, cancel := context.WithTimeout(e.Context(), e.h.Wait)
		var wg sync.WaitGroup
		wg.Go(func() {
			leases, err := sub.Receive(ctx, 1)
			if err == nil {
				err = seen.ack(context.WithoutCancel(ctx), leases)
			} else if len(leases) > 0 {
				err = fmt.Errorf("%d leases were returned with error %w and would be dropped", len(leases), err)
			} else if errors.Is(err, context.Canceled) {
				err = nil
			}
			if err != nil {
				e.Errorf("cancelled Receive: %v", err)
			}
		})
		wg.Go(func() {
			time.Sleep(rand.N(2 * time.Millisecond)) // so that most receives wait already
			var cancelled sync.WaitGroup
			if i%2 == 0 {
				cancelled.Go(func() { // at any moment of the publish
					time.Sleep(rand.N(time.Millisecond))
					cancel()
				})
			}
			if err := publishAll(e.Context(), e.broker, e.queue, []queue.Publication{pub}); err != nil {
				e.Error(err)
			}
			if i%2 == 1 {
				cancel() // at the moment of the confirmation
			}
			cancelled.Wait()
		})
		wg.Wait()
		cancel()
	}
	ctx, cancel := e.waitCtx(0)
	defer cancel()
	for seen.count() < rounds {
		leases, err := receiveSome(ctx, sub, rounds)
		if err != nil {
			e.Fatalf("%d of %d messages came back after cancelled receives: %v", seen.count(), rounds, err)
		}
		if err := seen.ack(e.Context(), leases); err != nil {
			e.Fatal(err)
		}
	}
	seen.check(e, rounds)
}

func caseOrder(e *env) {
	const n = 60
	pubs := numbered(n)
	for i := range pubs {
		pubs[i].Group = "one"
	}
	e.publish(pubs[:40]...)
	e.publish(pubs[40:]...)
	sub := e.subscribe(e.h.Hold, 10)
	next := 0
	for next < n {
		most := 1 + next%7
		for _, l := range e.collect(sub, min(most, n-next), 0) {
			if got, want := l.Headers[headerNumber], fmt.Sprint(next); got != want {
				e.Fatalf("received message %s where %s was due", got, want)
			}
			next++
			e.ack(l)
		}
	}
}

func caseReceiversNeverShare(e *env) {
	const n, receivers = 120, 6
	e.publish(numbered(n)...)
	ctx, cancel := e.waitCtx(0)
	defer cancel()
	held := newTally()
	var wg sync.WaitGroup
	for range receivers {
		sub := e.subscribe(e.h.Hold, n)
		wg.Go(func() {
			for held.count() < n {
				leases, err := receiveSome(ctx, sub, 5)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						e.Errorf("Receive: %v", err)
					}
					return
				}
				held.add(leases)
				if held.count() >= n {
					cancel() // the others wait for messages that do not come
				}
			}
		})
	}
	wg.Wait()
	held.check(e, n) // all are held at the same time, each by one receiver
	e.nothing(e.subscribe(e.h.Hold, 1), e.h.Quiet)
}

func caseTenThousandMessages(e *env) {
	const receivers, batch = 8, 250
	n := e.h.Many
	done := newTally()
	ctx, cancel := context.WithTimeout(e.Context(), 12*e.h.Wait)
	defer cancel()
	var wg sync.WaitGroup
	for range receivers {
		sub := e.subscribe(e.h.Hold, 10)
		wg.Go(func() {
			if err := drain(ctx, cancel, sub, done, n); err != nil {
				e.Errorf("receiver: %v", err)
				cancel()
			}
		})
	}
	for pubs := range slices.Chunk(numbered(n), batch) {
		if err := publishAll(ctx, e.broker, e.queue, pubs); err != nil {
			e.Error(err)
			cancel()
			break
		}
	}
	wg.Wait()
	done.check(e, n)
	e.nothing(e.subscribe(e.h.Hold, 1), e.h.Quiet)
}

// drain receives and acks until done counts n messages, then stops the other receivers.
func drain(ctx context.Context, stop context.CancelFunc, sub queue.Subscription, done *tally, n int) error {
	for {
		leases, err := receiveSome(ctx, sub, 10)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		// Settled apart from ctx: another receiver may end it between this one's receive and ack.
		if err := done.ack(context.WithoutCancel(ctx), leases); err != nil {
			return err
		}
		if done.count() >= n {
			stop()
		}
	}
}
