package queue_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/caisson-go/caisson/queue"
)

// FuzzDecodeEnvelope compares the decoder with encoding/json: what it takes, encoding/json reads the same way, and
// what is no JSON it refuses.
func FuzzDecodeEnvelope(f *testing.F) {
	v := readVectors(f)
	for _, c := range v.Valid {
		f.Add(c.Header)
	}
	for _, c := range v.Invalid {
		f.Add(c.Header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got, err := queue.DecodeEnvelope(header)
		if err != nil {
			if !errors.Is(err, queue.ErrBadEnvelope) {
				t.Fatalf("error %v is not ErrBadEnvelope", err)
			}
			return
		}
		var oracle wireEnvelope
		if err := json.Unmarshal([]byte(header), &oracle); err != nil {
			t.Fatalf("encoding/json refuses what was taken: %v", err)
		}
		if diff := diffEnvelopes(queue.Envelope(oracle), got); diff != "" {
			t.Fatalf("encoding/json reads it otherwise (-want +got)\n%s", diff)
		}
		encoded, err := got.Encode()
		if err != nil {
			t.Fatalf("what was decoded does not encode: %v", err)
		}
		again, err := queue.DecodeEnvelope(encoded)
		if err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		if diff := diffEnvelopes(got, again); diff != "" {
			t.Fatalf("the second decoding differs (-first +second)\n%s", diff)
		}
	})
}
