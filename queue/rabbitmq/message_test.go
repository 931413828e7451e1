package rabbitmq

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// TestCountHeaderTypes reads the count in each type that a client may write. Case E2.
func TestCountHeaderTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "types")
	sub := r.subscribe(b, name, 30*time.Second, 1)
	for _, value := range []any{int16(4), int32(4), int64(4), int8(4), byte(4), uint16(4), uint32(4), "4", []byte("4")} {
		r.rawPublish(name, amqp.Publishing{Headers: amqp.Table{headerAttempts: value, headerDeliveries: value}})
		l := r.receive(sub)
		if l.Attempts != 5 || l.DeliveryCount != 5 || len(l.Headers) != 0 {
			t.Errorf("count as %T: attempts %d, deliveries %d, headers %v; want 5, 5, none", value, l.Attempts, l.DeliveryCount, l.Headers)
		}
		r.ack(l)
	}
	for _, value := range []any{nil, "four", -3, 1.5, true, int64(math.MinInt64), amqp.Table{}} {
		if got := headerCount(amqp.Table{headerAttempts: value}, headerAttempts); got != 0 {
			t.Errorf("count %v of %T is read as %d, want 0", value, value, got)
		}
	}
	if got := headerCount(amqp.Table{headerAttempts: uint64(math.MaxUint64)}, headerAttempts); got != math.MaxInt32 {
		t.Errorf("a huge count is read as %d", got)
	}
}

// TestForeignMessages keeps what another program's message carries, through a retry: properties, and headers in their own types.
func TestForeignMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "foreign")
	when := time.Unix(1_700_000_000, 0)
	headers := amqp.Table{
		"text": "t", "small": int16(-7), "big": int64(1 << 40), "flag": true, "none": nil, "bytes": []byte{0xff, 0},
		"when": when, "list": []any{"a", int32(1)}, "object": amqp.Table{"k": 1.5}, "price": amqp.Decimal{Scale: 2, Value: 1999}, "x-own": "kept",
	}
	sent := amqp.Publishing{
		Headers: headers, ContentType: "application/x-thing", ContentEncoding: "gzip", CorrelationId: "c-1", ReplyTo: "r-1", Priority: 3,
		Type: "thing.done", AppId: "other", Timestamp: when, UserId: "guest", Expiration: "3600000", Body: []byte{0, 1, 2},
	}
	r.rawPublish(name, sent)
	sub := r.subscribe(b, name, 30*time.Second, 1)
	l := r.receive(sub)
	want := map[string]string{
		"text": "t", "small": "-7", "big": "1099511627776", "flag": "true", "none": "", "bytes": "\xff\x00", "when": "2023-11-14T22:13:20Z",
		"list": `["a",1]`, "object": `{"k":1.5}`, "price": "19.99", "x-own": "kept",
	}
	if diff := cmp.Diff(want, l.Headers); diff != "" {
		t.Errorf("headers as text (-want +got):\n%s", diff)
	}
	if l.ID == "" || !l.EnqueuedAt.Equal(when) {
		t.Errorf("id %q, enqueued at %v", l.ID, l.EnqueuedAt)
	}
	if err := l.Retry(t.Context(), time.Second, true); err != nil {
		t.Fatal(err)
	}
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	var got amqp.Delivery
	r.raw(func(ch *amqp.Channel) {
		r.eventually(func() error {
			d, ok, err := ch.Get(testPrefix+name, true)
			if err == nil && !ok {
				err = errors.New("not back yet")
			}
			got = d
			return err
		})
	})
	again := amqp.Publishing{
		Headers: amqp.Table{}, ContentType: got.ContentType, ContentEncoding: got.ContentEncoding, CorrelationId: got.CorrelationId,
		ReplyTo: got.ReplyTo, Priority: got.Priority, Type: got.Type, AppId: got.AppId, Timestamp: got.Timestamp, Body: got.Body,
	}
	for key, value := range got.Headers {
		if !brokerHeader(key) && !driverHeader(key) {
			again.Headers[key] = value
		}
	}
	sent.UserId, sent.Expiration = "", "" // see copyOf
	if diff := cmp.Diff(sent, again); diff != "" {
		t.Errorf("the copy differs (-sent +copy):\n%s", diff)
	}
}

// TestReservedHeaders: a producer's headers that mean something to the broker or the driver arrive, and mean nothing to them.
func TestReservedHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "reserved")
	sub := r.subscribe(b, name, 30*time.Second, 1)
	headers := map[string]string{
		"CC": "elsewhere", "BCC": "elsewhere", "x-death": "d", "x-delivery-count": "9", "x-first-death-queue": "q", headerAttempts: "9",
		headerDue: "99999999999999", headerEscape + "CC": "twice", "cc": "lower",
	}
	r.publish(b, name, queue.Publication{Message: queue.Message{Headers: headers}})
	for range 2 {
		l := r.receive(sub)
		if diff := cmp.Diff(headers, l.Headers); diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
		if l.Attempts > 2 {
			t.Errorf("attempts %d", l.Attempts)
		}
		if l.Attempts == 2 {
			r.ack(l)
		} else if err := l.Retry(t.Context(), 0, false); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHeadersTooLarge refuses what would cost the connection. Case G1.
func TestHeadersTooLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "headers")
	for what, headers := range map[string]map[string]string{
		"value":        {"error": strings.Repeat("\u00fc", 150_000)},
		"name":         {strings.Repeat("n", 256): "v"},
		"many":         manyHeaders(3000),
		"just too big": {"error": strings.Repeat("x", 131_072-frameRoom)},
	} {
		err := b.Publish(t.Context(), name, []queue.Publication{{Message: queue.Message{Headers: headers}}})[0].Err
		if err == nil || errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("%s: error %v, want a refusal", what, err)
		}
	}
	r.publish(b, name, queue.Publication{Message: queue.Message{Headers: map[string]string{"error": strings.Repeat("x", 131_072-frameRoom-20)}}})
	if gauge(b, "reconnects") != 0 {
		t.Error("the connection was lost")
	}
	sub := r.subscribe(b, name, 30*time.Second, 1)
	l := r.receive(sub)
	if err := l.Retry(t.Context(), 0, true); err != nil { // the driver's own headers fit as well
		t.Errorf("retry of a message with large headers: %v", err)
	}
	r.ack(r.receive(sub))
}

// TestCopyTooLarge retries and gives back a message whose headers leave no room for the driver's: the broker counts instead, and the
// connection that publishes is not lost for it.
func TestCopyTooLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "full")
	sub := r.subscribe(b, name, 30*time.Second, 1)
	r.rawPublish(name, amqp.Publishing{Headers: amqp.Table{"h": strings.Repeat("x", 131_072-60)}})
	for attempt := 1; attempt <= 3; attempt++ {
		l := r.receive(sub)
		if l.Attempts != attempt {
			t.Errorf("attempt %d is told as %d", attempt, l.Attempts)
		}
		if err := l.Retry(t.Context(), time.Second, false); err != nil {
			t.Fatal(err)
		}
	}
	r.ack(r.receive(sub))
	if gauge(b, "reconnects") != 0 {
		t.Error("the connection was lost")
	}
}

// TestStaleCount takes the count of another queue for none: a shovel and the management pages carry it on. Case E2.
func TestStaleCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "stale")
	sub := r.subscribe(b, name, 30*time.Second, 1)
	r.rawPublish(name, amqp.Publishing{Headers: amqp.Table{brokerDeliveries: int64(1000)}})
	for attempt := 1; attempt <= 2; attempt++ {
		l := r.receive(sub)
		if l.Attempts != attempt || l.DeliveryCount != attempt {
			t.Errorf("delivery %d: attempts %d, deliveries %d", attempt, l.Attempts, l.DeliveryCount)
		}
		if err := l.Settle(t.Context(), queue.Settlement{Action: queue.ActionRelease}); err != nil {
			t.Fatal(err)
		}
	}
	r.ack(r.receive(sub))
}

func manyHeaders(n int) map[string]string {
	headers := map[string]string{}
	for i := range n {
		headers[fmt.Sprintf("header-%d", i)] = strings.Repeat("v", 40)
	}
	return headers
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"PRECONDITION_FAILED - message size 2097152 is larger than configured max size 1048576": true,
		"PRECONDITION_FAILED - message size 2097152 is larger than max size 1048576":            true,
		"PRECONDITION_FAILED - message size 2097153 is larger than max size 1048576":            false, // another message
		"PRECONDITION_FAILED - unknown delivery tag 7":                                          false,
	} {
		var large *queue.TooLargeError
		err := tooLarge(&amqp.Error{Code: amqp.PreconditionFailed, Reason: text, Server: true}, 2_097_152)
		if got := errors.As(err, &large) && large.Limit == 1_048_576; got != want {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// FuzzHeaders reads headers of all types and sizes, and makes the copy's.
func FuzzHeaders(f *testing.F) {
	for kind := range uint8(14) {
		f.Add("x-death", kind, "12", int64(3), headerAttempts)
	}
	f.Fuzz(func(t *testing.T, name string, kind uint8, text string, number int64, other string) {
		value := anyHeader(kind, text, number)
		table := amqp.Table{name: value, other: []any{value, amqp.Table{name: value}}, brokerDeliveries: value}
		n := countsOf(&amqp.Delivery{Headers: table, Redelivered: true})
		if n.attempts < 1 || n.deliveries < 1 {
			t.Errorf("counts %+v of %v", n, table)
		}
		for key := range decodeHeaders(table) {
			if key != name && key != other && headerEscape+key != name && headerEscape+key != other {
				t.Errorf("header %q came from nowhere", key)
			}
		}
		msg := copyOf(&amqp.Delivery{Headers: table}, n)
		for key := range msg.Headers {
			if brokerHeader(key) || routingHeader(key) {
				t.Errorf("header %q goes to the broker again", key)
			}
		}
		if got := countsOf(&amqp.Delivery{Headers: msg.Headers}); got.attempts < n.attempts || got.deliveries < n.deliveries {
			t.Errorf("counts went from %+v to %+v", n, got)
		}
		if _, err := tableSize(msg.Headers); err != nil && len(name) <= maxShortText && len(other) <= maxShortText {
			t.Error(err)
		}
	})
}

func anyHeader(kind uint8, text string, number int64) any {
	switch kind % 14 {
	case 0:
		return text
	case 1:
		return number
	case 2:
		return int32(number)
	case 3:
		return int16(number)
	case 4:
		return byte(number)
	case 5:
		return []byte(text)
	case 6:
		return number%2 == 0
	case 7:
		return math.Float64frombits(uint64(number))
	case 8:
		return math.Float32frombits(uint32(number))
	case 9:
		return time.Unix(number%1e10, 0)
	case 10:
		return amqp.Decimal{Scale: uint8(number), Value: int32(number >> 8)}
	case 11:
		return []any{text, number, nil}
	case 12:
		return amqp.Table{text: math.NaN()}
	}
	return nil
}
