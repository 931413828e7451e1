package queuetest

import (
	"sync"

	"github.com/caisson-go/caisson/queue"
)

// blockedReceives starts receives that wait for ever and returns a function that fetches their errors.
func (e *env) blockedReceives(sub queue.Subscription, n int) func() []error {
	ctx, cancel := e.waitCtx(0)
	errs := make([]error, n)
	var started, wg sync.WaitGroup
	started.Add(n)
	for i := range errs {
		wg.Go(func() {
			started.Done()
			_, errs[i] = receiveSome(ctx, sub, 1)
		})
	}
	started.Wait()
	e.nothing(sub, e.h.Quiet) // while the others wait beside it
	return func() []error {
		wg.Wait()
		cancel()
		return errs
	}
}

func caseCloseSubscription(e *env) {
	sub := e.subscribe(e.h.Hold, 4)
	if err := sub.Healthy(); err != nil {
		e.Errorf("a fresh subscription is not healthy: %v", err)
	}
	wait := e.blockedReceives(sub, 3)
	if err := sub.Close(); err != nil {
		e.Fatalf("Close: %v", err)
	}
	for _, err := range wait() {
		e.wantErr("Receive that Close unblocked", err, queue.ErrClosed)
	}
	_, err := sub.Receive(e.Context(), 1)
	e.wantErr("Receive after Close", err, queue.ErrClosed)
	if sub.Healthy() == nil {
		e.Error("a closed subscription says that it is healthy")
	}
	if err := sub.Close(); err != nil {
		e.Errorf("second Close: %v", err)
	}
	e.publish(numbered(1)...) // the broker works on, and the closed subscription takes nothing
	e.ack(e.receive(e.subscribe(e.h.Hold, 1), 0))
}

func caseCloseBroker(e *env) {
	sub := e.subscribe(e.h.Hold, 4)
	wait := e.blockedReceives(sub, 3)
	if err := e.broker.Close(); err != nil {
		e.Fatalf("Close: %v", err)
	}
	for _, err := range wait() {
		e.wantErr("Receive that Close of the broker unblocked", err, queue.ErrClosed)
	}
	ctx := e.Context()
	_, err := sub.Receive(ctx, 1)
	e.wantErr("Receive after Close of the broker", err, queue.ErrClosed)
	if sub.Healthy() == nil {
		e.Error("a subscription of a closed broker says that it is healthy")
	}
	results := e.broker.Publish(ctx, e.queue, numbered(2))
	if len(results) != 2 {
		e.Errorf("Publish of 2 messages after Close returned %d results", len(results))
	}
	for _, r := range results {
		e.wantErr("Publish after Close", r.Err, queue.ErrClosed)
	}
	_, err = e.broker.Subscribe(ctx, e.queue, queue.SubscribeConfig{})
	e.wantErr("Subscribe after Close", err, queue.ErrClosed)
	_, err = e.broker.Depth(ctx, e.queue)
	e.wantErr("Depth after Close", err, queue.ErrClosed)
	_, err = e.broker.Queues(ctx)
	e.wantErr("Queues after Close", err, queue.ErrClosed)
	e.wantErr("CreateQueue after Close", e.broker.CreateQueue(ctx, e.queue), queue.ErrClosed)
	if err := e.broker.Close(); err != nil {
		e.Errorf("second Close: %v", err)
	}
}

func caseLeasesOutliveSubscription(e *env) {
	e.publish(numbered(3)...)
	sub := e.subscribe(e.h.Hold, 3)
	leases := e.collect(sub, 3, 0)
	if err := sub.Close(); err != nil {
		e.Fatalf("Close: %v", err)
	}
	other := e.subscribe(e.h.Hold, 3)
	e.nothing(other, e.h.Quiet) // still leased
	if err := leases[0].Extend(e.Context(), e.h.Hold); err != nil {
		e.Fatalf("Extend after Close of the subscription: %v", err)
	}
	e.ack(leases[0], leases[1])
	if err := leases[2].Release(e.Context()); err != nil {
		e.Fatalf("Release after Close of the subscription: %v", err)
	}
	e.ack(e.receive(other, 0))
	e.nothing(other, e.h.Quiet)
}

func caseDurableAcrossReopen(e *env) {
	pubs := numbered(5)
	if !e.h.Want.FIFO {
		pubs[4].Delay = e.h.Delay
	}
	e.publish(pubs...)
	sub := e.subscribe(e.h.Hold, 1)
	gone := e.collect(sub, 1, 0)
	e.ack(gone...)
	if err := sub.Close(); err != nil {
		e.Fatalf("Close of the subscription: %v", err)
	}
	e.receive(e.subscribe(e.h.Lease, 1), 0) // left unsettled
	if err := e.broker.Close(); err != nil {
		e.Fatalf("Close: %v", err)
	}
	e.broker = e.openBroker()
	sub = e.subscribe(e.h.Hold, 5)
	seen := newTally()
	seen.add(gone)
	if err := seen.ack(e.Context(), e.collect(sub, 4, e.h.Lease+e.h.Delay)); err != nil {
		e.Fatal(err)
	}
	seen.check(e, 5)
	e.nothing(sub, e.h.Quiet)
}

func caseLeasesOutliveClose(e *env) {
	e.publish(numbered(1)...)
	l := e.receive(e.subscribe(e.h.Lease, 1), 0)
	if err := e.broker.Close(); err != nil {
		e.Fatalf("Close: %v", err)
	}
	e.broker = e.openBroker()
	again := e.receive(e.subscribe(e.h.Hold, 1), e.h.Lease)
	e.notBefore("a message that was leased at Close", l.Deadline())
	e.ack(again)
}

func caseTwoBrokersShareQueues(e *env) {
	second := e.openBroker()
	subs := []queue.Subscription{
		e.subscribe(e.h.Hold, 20),
		e.subscribeTo(second, e.queue, e.h.Hold, 20),
	}
	held := newTally()
	pubs := numbered(20)
	e.publish(pubs[:10]...)
	if err := publishAll(e.Context(), second, e.queue, pubs[10:]); err != nil {
		e.Fatal(err)
	}
	held.add(e.collect(subs[1], 10, 0))
	held.add(e.collect(subs[0], 10, 0))
	held.check(e, 20)
	if err := second.Close(); err != nil {
		e.Fatalf("Close of the second broker: %v", err)
	}
	e.publish(numbered(1)...) // the first works on
	e.ack(e.receive(subs[0], 0))
}
