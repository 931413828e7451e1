package queuetest

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/queue"
)

func caseCapabilities(e *env) {
	for range 2 { // the answer never changes
		if diff := cmp.Diff(e.h.Want, e.broker.Capabilities(e.queue)); diff != "" {
			e.Fatalf("Capabilities differ from what the harness pins (-want +got):\n%s", diff)
		}
		e.publish(numbered(1)...)
	}
}

func caseCreateQueueAgain(e *env) {
	e.publish(numbered(1)...)
	if err := e.broker.CreateQueue(e.Context(), e.queue); err != nil {
		e.Fatalf("CreateQueue of a queue that is there: %v", err)
	}
	e.ack(e.receive(e.subscribe(e.h.Hold, 1), 0)) // and its messages are still there
}

func caseQueuesAreListed(e *env) {
	want := []string{e.queue, e.newQueue("zulu"), e.newQueue("alpha")}
	slices.Sort(want)
	e.eventually(func() error {
		infos, err := e.broker.Queues(e.Context())
		if err != nil {
			return err
		}
		var got []string
		for _, info := range infos {
			if slices.Contains(want, info.Name) {
				got = append(got, info.Name)
			}
			if extra := depthFields(info.Depth) &^ e.h.Want.Depth; extra != 0 {
				e.Fatalf("Queues: depth of %q has fields %03b that the broker cannot know", info.Name, extra)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("queues differ or are not sorted (-want +got):\n%s", diff)
		}
		return nil
	})
}

func caseUnknownQueue(e *env) {
	name, ctx := e.name("missing"), e.Context()
	for i, r := range e.broker.Publish(ctx, name, numbered(2)) {
		e.wantErr(fmt.Sprintf("Publish to an unknown queue, result %d", i), r.Err, queue.ErrQueueNotFound)
	}
	_, err := e.broker.Subscribe(ctx, name, queue.SubscribeConfig{})
	e.wantErr("Subscribe to an unknown queue", err, queue.ErrQueueNotFound)
	_, err = e.broker.Depth(ctx, name)
	e.wantErr("Depth of an unknown queue", err, queue.ErrQueueNotFound)
	e.publish(numbered(1)...) // and the broker works on
}

// depthFields tells which fields of d are known.
func depthFields(d queue.Depth) queue.DepthFields {
	var f queue.DepthFields
	for _, field := range depthParts(&d) {
		if field.count.Known {
			f |= field.flag
		}
	}
	return f
}

type depthPart struct {
	flag  queue.DepthFields
	count *queue.Count
}

func depthParts(d *queue.Depth) []depthPart {
	return []depthPart{
		{queue.DepthFieldReady, &d.Ready},
		{queue.DepthFieldDelayed, &d.Delayed},
		{queue.DepthFieldInFlight, &d.InFlight},
	}
}

func caseDepth(e *env) {
	expect := func(ready, delayed, inFlight int64) {
		e.Helper()
		want := queue.Depth{Ready: queue.CountOf(ready), Delayed: queue.CountOf(delayed), InFlight: queue.CountOf(inFlight)}
		for _, part := range depthParts(&want) {
			if e.h.Want.Depth&part.flag == 0 {
				*part.count = queue.Count{}
			}
		}
		e.eventually(func() error {
			got, err := e.broker.Depth(e.Context(), e.queue)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("depth differs (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	expect(0, 0, 0)
	delay, late := e.longDelay(), int64(0)
	e.publish(numbered(3)...)
	if !e.h.Want.FIFO {
		pubs := numbered(2)
		pubs[0].Delay, pubs[1].Delay = delay, delay
		e.publish(pubs...)
		late = 2
	}
	expect(3, late, 0)

	sub := e.subscribe(e.h.Hold, 2)
	leases := e.collect(sub, 2, 0)
	expect(1, late, 2)
	e.ack(leases[0])
	expect(1, late, 1)
	if err := leases[1].Retry(e.Context(), delay, false); err != nil {
		e.Fatal(err)
	}
	hidden := int64(0) // by its lease
	if e.h.HidesInFlight {
		hidden = 1
	}
	expect(1, late+1-hidden, hidden)
	e.ack(e.receive(sub, 0))
	expect(0, late+1-hidden, hidden)
}
