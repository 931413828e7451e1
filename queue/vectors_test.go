package queue_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/queue"
)

type vectors struct {
	Valid []struct {
		Name      string
		Header    string
		Envelope  wireEnvelope
		Canonical string
	}
	Invalid []struct {
		Name      string
		Header    string
		HeaderHex string `json:"header_hex"`
		Field     string
	}
}

// wireEnvelope is an envelope as encoding/json reads it: an oracle that shares no code with the decoder.
type wireEnvelope struct {
	ID          string            `json:"id"`
	Kind        string            `json:"kind"`
	Version     int               `json:"kind_version"`
	Key         string            `json:"key"`
	Destination string            `json:"destination"`
	EnqueuedAt  time.Time         `json:"enqueued_at"`
	NotBefore   time.Time         `json:"not_before"`
	Deadline    time.Time         `json:"deadline"`
	AttemptBase int               `json:"attempt_base"`
	Run         int               `json:"run"`
	Headers     map[string]string `json:"headers"`
}

func readVectors(t testing.TB) vectors {
	data, err := os.ReadFile("testdata/envelope-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Valid) < 15 || len(v.Invalid) < 90 {
		t.Fatalf("only %d valid and %d invalid vectors", len(v.Valid), len(v.Invalid))
	}
	for i, c := range v.Invalid {
		if c.HeaderHex == "" {
			continue
		}
		raw, err := hex.DecodeString(c.HeaderHex)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		v.Invalid[i].Header = string(raw)
	}
	return v
}

func diffEnvelopes(want, got queue.Envelope) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

func TestValidVectors(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Valid {
		t.Run(v.Name, func(t *testing.T) {
			got, err := queue.DecodeEnvelope(v.Header)
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffEnvelopes(queue.Envelope(v.Envelope), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			encoded, err := got.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if v.Canonical != "" && encoded != v.Canonical {
				t.Errorf("encoded:\n%s\nwant:\n%s", encoded, v.Canonical)
			}
			checkASCII(t, encoded)
		})
	}
}

func TestInvalidVectors(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Invalid {
		t.Run(v.Name, func(t *testing.T) {
			got, err := queue.DecodeEnvelope(v.Header)
			if !errors.Is(err, queue.ErrBadEnvelope) {
				t.Fatalf("error %v, want ErrBadEnvelope; envelope %+v", err, got)
			}
			if diff := diffEnvelopes(queue.Envelope{}, got); diff != "" {
				t.Errorf("an envelope came with the error:\n%s", diff)
			}
			var bad *queue.EnvelopeError
			if !errors.As(err, &bad) {
				t.Fatalf("error %v is no *EnvelopeError", err)
			}
			if bad.Field != v.Field {
				t.Errorf("field %q, want %q; %v", bad.Field, v.Field, err)
			}
			if len(bad.Value) > 70 || bad.Problem == "" {
				t.Errorf("error is too long or says nothing: %v", err)
			}
		})
	}
}

func checkASCII(t interface{ Errorf(string, ...any) }, s string) {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			t.Errorf("byte %d of %q is not printable ASCII", i, s)
			return
		}
	}
}
