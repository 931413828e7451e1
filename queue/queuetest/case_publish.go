package queuetest

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/queue"
)

// longDelay is a delay that does not end during a case.
func (e *env) longDelay() time.Duration {
	delay := e.h.Hold
	for _, most := range []time.Duration{e.h.Want.MaxDelay, e.h.Want.MaxRetryDelay} {
		if most > 0 {
			delay = min(delay, most)
		}
	}
	return delay
}

func caseBytesUnchanged(e *env) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	big := make([]byte, e.h.BigBody)
	for i := range big {
		big[i] = byte(i * i >> 3)
	}
	bodies := map[string][]byte{
		"empty":         {},
		"every byte":    all,
		"invalid UTF-8": []byte("caf\xe9 \xff\xfe \xed\xa0\x80 \xc0\xaf"),
		"big":           big,
		"line ends":     []byte("a\r\nb\rc\nd\x00"),
		"JSON":          []byte(`{ "b":"a&b<c>", "a":1.0, "z":"` + "\u2028" + `" } `),
		"base64":        []byte("aGVsbG8="),
		"emoji":         []byte("sent \U0001f680 \U00024b62"),
		"white space":   []byte(" \t\n"),
	}
	for name, body := range bodies {
		e.publish(queue.Publication{Message: queue.Message{Body: body, Headers: map[string]string{"name": name}}, Group: name})
	}
	sub := e.subscribe(e.h.Hold, len(bodies))
	for _, l := range e.collect(sub, len(bodies), 0) {
		name := l.Headers["name"]
		want, ok := bodies[name]
		if !ok {
			e.Fatalf("received an unknown message %q", name)
		}
		if !bytes.Equal(want, l.Body) {
			e.Errorf("body %q changed: sent %d bytes %.60q, got %d bytes %.60q", name, len(want), want, len(l.Body), l.Body)
		}
		delete(bodies, name)
		e.ack(l)
	}
}

func caseHeadersKept(e *env) {
	headers := []map[string]string{
		nil,
		{queue.HeaderEnvelope: `{"v":1,"id":"j-1","kind":"a.b","key":"K\u00fc\u4e2d"}`},
		{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b,c=d"},
		{"Case": "upper", "case": "lower", "x-empty": "", "x-spaces": "  two  ", "x-punctuation": `"\{}[]:;,=%&<>'`},
	}
	for i, h := range headers {
		e.publish(queue.Publication{Message: queue.Message{Body: []byte{byte(i)}, Headers: h}, Group: string(rune('a' + i))})
	}
	sub := e.subscribe(e.h.Hold, len(headers))
	for _, l := range e.collect(sub, len(headers), 0) {
		if diff := cmp.Diff(headers[l.Body[0]], l.Headers, cmpopts.EquateEmpty()); diff != "" {
			e.Errorf("headers of message %d changed (-sent +received):\n%s", l.Body[0], diff)
		}
		e.ack(l)
	}
}

func caseLeaseFields(e *env) {
	before := time.Now()
	pubs := numbered(1)
	e.publish(pubs...)
	published := time.Now()
	l := e.receive(e.subscribe(e.h.Hold, 1), 0)
	if most := time.Now().Add(e.h.Hold); l.Deadline().After(most) {
		e.Errorf("lease of %v ends %v too late", e.h.Hold, l.Deadline().Sub(most))
	}
	if l.Queue != e.queue {
		e.Errorf("Lease.Queue is %q, want %q", l.Queue, e.queue)
	}
	if l.ID == "" {
		e.Error("Lease.ID is empty")
	}
	group := ""
	if e.h.Want.FIFO {
		group = pubs[0].Group
	}
	if l.Group != group {
		e.Errorf("Lease.Group is %q, want %q", l.Group, group)
	}
	switch {
	case !e.h.StampsEnqueued && !l.EnqueuedAt.IsZero():
		e.Errorf("Lease.EnqueuedAt is %v, want zero as pinned", l.EnqueuedAt)
	case e.h.StampsEnqueued:
		// The stamp is the broker's clock, which may be coarse and a little off.
		const skew = 2 * time.Second
		if l.EnqueuedAt.Before(before.Add(-skew)) || l.EnqueuedAt.After(published.Add(skew)) {
			e.Errorf("Lease.EnqueuedAt is %v, want between %v and %v", l.EnqueuedAt, before, published)
		}
	}
}

func casePublishNothing(e *env) {
	if results := e.broker.Publish(e.Context(), e.queue, nil); len(results) != 0 {
		e.Errorf("Publish of nothing returned %d results", len(results))
	}
}

// casePublishResultsInOrder publishes a batch larger than any broker's own batch and matches ids to messages.
func casePublishResultsInOrder(e *env) {
	const n = 57
	pubs := numbered(n)
	results := e.broker.Publish(e.Context(), e.queue, pubs)
	if len(results) != n {
		e.Fatalf("Publish of %d messages returned %d results", n, len(results))
	}
	numberOf := map[string]string{}
	for i, r := range results {
		if r.Err != nil {
			e.Fatalf("message %d: %v", i, r.Err)
		}
		if r.ID == "" {
			e.Fatalf("message %d: the result has no id", i)
		}
		numberOf[r.ID] = pubs[i].Headers[headerNumber]
	}
	if len(numberOf) != n {
		e.Fatalf("%d messages have %d ids", n, len(numberOf))
	}
	for _, l := range e.collect(e.subscribe(e.h.Hold, n), n, 0) {
		if got := l.Headers[headerNumber]; numberOf[l.ID] != got {
			e.Errorf("id %q is message %q by its publish result and %q by its lease", l.ID, numberOf[l.ID], got)
		}
		e.ack(l)
	}
}

func casePublishDoneContext(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	results := e.broker.Publish(ctx, e.queue, numbered(3))
	if len(results) != 3 {
		e.Fatalf("Publish of 3 messages returned %d results", len(results))
	}
	for i, r := range results {
		e.wantErr("Publish with a done context, result "+string(rune('0'+i)), r.Err, context.Canceled)
	}
}

func casePublishTooLarge(e *env) {
	pubs := numbered(3)
	pubs[1].Body = make([]byte, e.h.Want.MaxBody+1)
	results := e.broker.Publish(e.Context(), e.queue, pubs)
	if len(results) != len(pubs) {
		e.Fatalf("Publish of %d messages returned %d results", len(pubs), len(results))
	}
	for _, i := range []int{0, 2} {
		if err := results[i].Err; err != nil {
			e.Errorf("message %d beside one that is too large: %v", i, err)
		}
	}
	err := results[1].Err
	e.wantErr("Publish of a message above MaxBody", err, queue.ErrTooLarge)
	var large *queue.TooLargeError
	if !errors.As(err, &large) {
		e.Fatalf("error %v is no *TooLargeError", err)
	}
	if large.Limit != e.h.Want.MaxBody || large.Size <= large.Limit {
		e.Errorf("TooLargeError says size %d and limit %d, want a size of at least %d and limit %d",
			large.Size, large.Limit, len(pubs[1].Body), e.h.Want.MaxBody)
	}
	sub := e.subscribe(e.h.Hold, 3)
	for _, l := range e.collect(sub, 2, 0) {
		if got := l.Headers[headerNumber]; got != "0" && got != "2" {
			e.Errorf("received message %q", got)
		}
		e.ack(l)
	}
	e.nothing(sub, e.h.Quiet)
}

func casePublishDelayed(e *env) {
	pubs := numbered(2)
	pubs[0].Delay = e.h.Delay
	sub := e.subscribe(e.h.Hold, 2)
	start := time.Now()
	e.publish(pubs...)
	now := e.receive(sub, 0) // the later message overtakes the delayed one
	later := e.receive(sub, e.h.Delay)
	e.notBefore("a delayed message", start.Add(e.h.Delay))
	if a, b := now.Headers[headerNumber], later.Headers[headerNumber]; a != "1" || b != "0" {
		e.Errorf("received message %s, then %s; want 1, then 0 whose delay is %v", a, b, e.h.Delay)
	}
	e.ack(now, later)
}

func casePublishNegativeDelay(e *env) {
	pubs := numbered(1)
	pubs[0].Delay = -time.Hour
	e.publish(pubs...)
	e.ack(e.receive(e.subscribe(e.h.Hold, 1), 0))
}

func casePublishDelayTooLong(e *env) {
	pubs := numbered(3)
	pubs[1].Delay = e.h.Want.MaxDelay + time.Second
	results := e.broker.Publish(e.Context(), e.queue, pubs)
	if len(results) != len(pubs) {
		e.Fatalf("Publish of %d messages returned %d results", len(pubs), len(results))
	}
	e.wantErr("Publish with a delay above MaxDelay", results[1].Err, queue.ErrDelayTooLong)
	for _, i := range []int{0, 2} {
		if err := results[i].Err; err != nil {
			e.Errorf("message %d beside one whose delay is too long: %v", i, err)
		}
	}
	pubs = numbered(1)
	pubs[0].Delay = e.h.Want.MaxDelay
	e.publish(pubs...) // the longest delay itself is taken
}
