package queue_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/queue"
)

func anyTime(required bool) *rapid.Generator[time.Time] {
	first, last := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
	return rapid.Custom(func(t *rapid.T) time.Time {
		if !required && rapid.Bool().Draw(t, "absent") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(first, last).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
	})
}

var anyEnvelope = rapid.Custom(func(t *rapid.T) queue.Envelope {
	count := rapid.IntRange(0, 1<<31-1)
	return queue.Envelope{
		ID:          rapid.StringMatching(`[ -~]{1,200}`).Draw(t, "id"),
		Kind:        rapid.StringMatching(`[!-~]{1,200}`).Draw(t, "kind"),
		Version:     count.Draw(t, "version"),
		Key:         rapid.StringN(-1, -1, 1000).Draw(t, "key"),
		Destination: rapid.StringN(-1, -1, 1000).Draw(t, "destination"),
		EnqueuedAt:  anyTime(true).Draw(t, "enqueued"),
		NotBefore:   anyTime(false).Draw(t, "not before"),
		Deadline:    anyTime(false).Draw(t, "deadline"),
		AttemptBase: count.Draw(t, "attempt base"),
		Run:         count.Draw(t, "run"),
		Headers: rapid.MapOfN(rapid.StringMatching(`[a-z0-9!#$%&'*+.^_|~"\\-]{1,20}`), rapid.StringN(-1, -1, 50), 0, 12).
			Draw(t, "headers"),
	}
})

func TestEnvelopeRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		env := anyEnvelope.Draw(t, "envelope")
		encoded, err := env.Encode()
		if err != nil {
			t.Fatal(err)
		}
		checkASCII(t, encoded)
		got, err := queue.DecodeEnvelope(encoded)
		if err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		if diff := diffEnvelopes(env, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		var oracle wireEnvelope
		if err := json.Unmarshal([]byte(encoded), &oracle); err != nil {
			t.Fatalf("encoding/json: %v", err)
		}
		if diff := diffEnvelopes(env, queue.Envelope(oracle)); diff != "" {
			t.Fatalf("encoding/json reads it otherwise (-want +got)\n%s", diff)
		}
		env.Headers = maps.Clone(env.Headers)
		if again, _ := env.Encode(); again != encoded {
			t.Fatalf("not canonical:\n%s\n%s", encoded, again)
		}
	})
}

func TestEncodeUsesUTC(t *testing.T) {
	t.Parallel()
	env := example()
	zone := time.FixedZone("", 3*3600)
	env.EnqueuedAt = time.Date(2026, 1, 2, 1, 0, 0, 0, zone)
	encoded, err := env.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if want := `"enqueued_at":"2026-01-01T22:00:00Z"`; !strings.Contains(encoded, want) {
		t.Errorf("%s does not contain %s", encoded, want)
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	headers := map[string]string{}
	for i := range 64 {
		headers[fmt.Sprint("h", i)] = strings.Repeat("x", 600)
	}
	for _, c := range []struct {
		field string
		spoil func(*queue.Envelope)
	}{
		{"id", func(e *queue.Envelope) { e.ID = "" }},
		{"id", func(e *queue.Envelope) { e.ID = "jö" }},
		{"kind", func(e *queue.Envelope) { e.Kind = "a b" }},
		{"kind_version", func(e *queue.Envelope) { e.Version = -1 }},
		{"key", func(e *queue.Envelope) { e.Key = "\xff" }},
		{"key", func(e *queue.Envelope) { e.Key = strings.Repeat("é", 501) }},
		{"destination", func(e *queue.Envelope) { e.Destination = "\xed\xa0\x80" }},
		{"enqueued_at", func(e *queue.Envelope) { e.EnqueuedAt = time.Time{} }},
		{"enqueued_at", func(e *queue.Envelope) { e.EnqueuedAt = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"deadline", func(e *queue.Envelope) { e.Deadline = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"not_before", func(e *queue.Envelope) { e.NotBefore = time.Unix(-1, 0) }},
		{"attempt_base", func(e *queue.Envelope) { e.AttemptBase = -1 }},
		{"run", func(e *queue.Envelope) { e.Run = 1 << 31 }},
		{"headers", func(e *queue.Envelope) { e.Headers = map[string]string{"a": "\xff"} }},
		{"headers", func(e *queue.Envelope) { e.Headers = map[string]string{"a": "", "A": ""} }},
		{"headers", func(e *queue.Envelope) { e.Headers = map[string]string{"": ""} }},
		{"", func(e *queue.Envelope) { e.Headers = headers }},
	} {
		env := example()
		c.spoil(&env)
		_, err := queue.NewMessage(env, nil)
		var bad *queue.EnvelopeError
		if !errors.As(err, &bad) || !errors.Is(err, queue.ErrBadEnvelope) || bad.Field != c.field {
			t.Errorf("error %v, want ErrBadEnvelope of field %q", err, c.field)
		}
	}
}

func TestMessageEnvelope(t *testing.T) {
	t.Parallel()
	payload := []byte("\x00\xff{")
	m, err := queue.NewMessage(example(), payload)
	if err != nil {
		t.Fatal(err)
	}
	if string(m.Body) != "\x00\xff{" || len(m.Headers) != 1 {
		t.Errorf("message %+v", m)
	}
	got, err := m.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffEnvelopes(example(), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	foreign := queue.Message{Body: payload, Headers: map[string]string{"Caisson": "{}"}}
	if _, err := foreign.Envelope(); !errors.Is(err, queue.ErrNoEnvelope) {
		t.Errorf("error %v, want ErrNoEnvelope", err)
	}
	broken := queue.Message{Headers: map[string]string{queue.HeaderEnvelope: ""}}
	if _, err := broken.Envelope(); !errors.Is(err, queue.ErrBadEnvelope) {
		t.Errorf("error %v, want ErrBadEnvelope", err)
	}
}

func example() queue.Envelope {
	at := time.Date(2026, 1, 2, 15, 4, 5, 123_456_000, time.UTC)
	return queue.Envelope{
		ID: "01941f2a-7c3e-7b1a-9d55-0c8f6f1f2a3b", Kind: "webhook.deliver", Version: 2, Key: "order-1234", Destination: "endpoint-42",
		EnqueuedAt: at, Deadline: at.Add(time.Hour),
		Headers: map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"},
	}
}

func BenchmarkEncodeEnvelope(b *testing.B) {
	env := example()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := env.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeEnvelope(b *testing.B) {
	header, err := example().Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := queue.DecodeEnvelope(header); err != nil {
			b.Fatal(err)
		}
	}
}
