package queuetest

import (
	"fmt"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// inGroups makes one message for each group, in that order, with the numbers 0, 1, 2, ...
func inGroups(groups ...string) []queue.Publication {
	pubs := numbered(len(groups))
	for i := range pubs {
		pubs[i].Group = groups[i]
	}
	return pubs
}

// next receives one message and checks which it is.
func (e *env) next(sub queue.Subscription, extra time.Duration, number int) *queue.Lease {
	e.Helper()
	l := e.receive(sub, extra)
	if got, want := l.Headers[headerNumber], fmt.Sprint(number); got != want {
		e.Fatalf("received message %s where %s was due", got, want)
	}
	return l
}

// heads publishes a (0, 1, 3) and b (2), and receives both heads: the others have to wait.
func (e *env) heads(sub queue.Subscription) (a, b *queue.Lease) {
	e.Helper()
	e.publish(inGroups("a", "a", "b", "a")...)
	for _, l := range e.collect(sub, 2, 0) {
		switch l.Headers[headerNumber] + l.Group {
		case "0a":
			a = l
		case "2b":
			b = l
		default:
			e.Fatalf("received message %s of group %q before the heads 0 of a and 2 of b", l.Headers[headerNumber], l.Group)
		}
	}
	if a == nil || b == nil {
		e.Fatalf("a head came twice before the other came at all")
	}
	return a, b
}

func caseFIFOLeasedHead(e *env) {
	sub := e.subscribe(e.h.Hold, 4)
	other := e.subscribe(e.h.Hold, 4)
	a, b := e.heads(sub)
	e.nothing(sub, e.h.Quiet)
	e.nothing(other, e.h.Quiet)
	e.ack(b)
	e.nothing(other, e.h.Quiet) // the end of b's head is nothing to a
	e.ack(a)
	e.ack(e.next(other, 0, 1))
	e.ack(e.next(sub, 0, 3))
	e.nothing(sub, e.h.Quiet)
}

func caseFIFORetriedHead(e *env) {
	sub := e.subscribe(e.h.Hold, 4)
	a, b := e.heads(sub)
	e.ack(b)
	start := time.Now()
	if err := a.Retry(e.Context(), e.h.Delay, false); err != nil {
		e.Fatalf("Retry: %v", err)
	}
	e.publish(inGroups("c")...) // which flows while a waits
	var again []*queue.Lease
	for range 2 {
		l := e.next(sub, e.h.Delay, 0)
		if l.Group == "a" {
			e.notBefore("a retried head", start.Add(e.h.Delay))
		}
		again = append(again, l)
	}
	e.nothing(sub, e.h.Quiet)
	e.ack(again...)
	e.ack(e.next(sub, 0, 1))
	e.ack(e.next(sub, 0, 3))
}

func caseFIFOReleasedHead(e *env) {
	sub := e.subscribe(e.h.Hold, 4)
	a, b := e.heads(sub)
	if err := a.Release(e.Context()); err != nil {
		e.Fatalf("Release: %v", err)
	}
	e.ack(b)
	for _, number := range []int{0, 1, 3} {
		e.ack(e.next(sub, 0, number))
	}
}

func caseFIFOLostHead(e *env) {
	a, b := e.heads(e.subscribe(e.h.Lease, 2))
	sub := e.subscribe(e.h.Hold, 4)
	e.ack(b)
	again := e.next(sub, e.h.Lease, 0)
	e.notBefore("a head that was never settled", a.Deadline())
	e.nothing(sub, e.h.Quiet)
	e.ack(again)
	e.ack(e.next(sub, 0, 1))
	e.ack(e.next(sub, 0, 3))
}

// caseFIFOOrder settles a third of the deliveries with a retry or a release, which must not change the order.
func caseFIFOOrder(e *env) {
	const n = 60
	var groups []string
	for i := range n + n/3 {
		groups = append(groups, [...]string{"a", "a", "b", "a"}[i%4])
	}
	pubs := inGroups(groups...)
	due := map[string][]string{}
	for _, p := range pubs {
		due[p.Group] = append(due[p.Group], p.Headers[headerNumber])
	}
	e.publish(pubs[:40]...)
	e.publish(pubs[40:]...)
	subs := []queue.Subscription{e.subscribe(e.h.Hold, 10), e.subscribe(e.h.Hold, 10)}
	for turn := 0; len(due["a"])+len(due["b"]) > 0; turn++ {
		l := e.receive(subs[turn%2], 0)
		if number := l.Headers[headerNumber]; len(due[l.Group]) == 0 || due[l.Group][0] != number {
			e.Fatalf("received message %s of group %q where %.3q were due", number, l.Group, due[l.Group])
		}
		var err error
		switch turn % 6 {
		case 2:
			err = l.Retry(e.Context(), 0, false)
		case 5:
			err = l.Release(e.Context())
		default:
			due[l.Group] = due[l.Group][1:]
			err = l.Ack(e.Context())
		}
		if err != nil {
			e.Fatalf("settlement of message %s: %v", l.Headers[headerNumber], err)
		}
	}
	e.nothing(subs[0], e.h.Quiet)
}

// caseFIFODropsDuplicates repeats publications, as a producer that lost the confirmation does, and as a replay must be able to.
func caseFIFODropsDuplicates(e *env) {
	pubs := inGroups("a", "a")
	e.publish(pubs...)
	e.publish(pubs[0])
	sub := e.subscribe(e.h.Hold, 4)
	e.ack(e.next(sub, 0, 0))
	e.ack(e.next(sub, 0, 1))
	e.publish(pubs...) // the ids outlive their messages
	e.nothing(sub, e.h.Quiet)
	replayed := pubs[0]
	replayed.DedupID += "-again"
	e.publish(replayed) // in all else the same
	e.ack(e.next(sub, 0, 0))
	e.nothing(sub, e.h.Quiet)
}

func caseFIFORefusesDelay(e *env) {
	pubs := numbered(3)
	pubs[1].Delay = time.Second
	results := e.broker.Publish(e.Context(), e.queue, pubs)
	if len(results) != len(pubs) {
		e.Fatalf("Publish of %d messages returned %d results", len(pubs), len(results))
	}
	e.wantErr("Publish with a delay to a FIFO queue", results[1].Err, queue.ErrDelayTooLong)
	sub := e.subscribe(e.h.Hold, 3)
	for _, i := range []int{0, 2} {
		if err := results[i].Err; err != nil {
			e.Fatalf("message %d beside one with a delay: %v", i, err)
		}
		e.ack(e.receive(sub, 0))
	}
	e.nothing(sub, time.Second+e.h.Quiet)
}
