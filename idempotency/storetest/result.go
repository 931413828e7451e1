package storetest

import (
	"bytes"
	"crypto/sha256"

	"github.com/caisson-go/caisson/idempotency"
)

func resultTests() []testCase {
	return []testCase{
		{"Result/bytes come back unchanged", testResultBytes},
		{"Result/too large is replaced by size and hash", testResultTooLarge},
		{"Result/exactly the cap is kept", testResultAtCap},
	}
}

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func testResultBytes(e *env) {
	for _, data := range [][]byte{nil, {}, {0}, []byte("{}"), allBytes()} {
		r := e.request()
		e.complete(e.acquire(r, 1), string(data), nil)
		got := e.wants(r, idempotency.StatusCompleted).Result
		if !bytes.Equal(got.Data, data) || got.Omitted || got.Size != int64(len(data)) {
			e.Errorf("result % x came back as % x, omitted %v, size %d", data, got.Data, got.Omitted, got.Size)
		}
	}
}

// Field case H4: the work is done though its result cannot be kept. The key is completed, and duplicates get the marker.
func testResultTooLarge(e *env) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
	for name, result := range map[string]idempotency.Result{
		"cut by the caller": idempotency.NewResult(data),
		"cut by the store":  {Data: data, Size: int64(len(data))},
	} {
		r := e.request()
		c := idempotency.Completion{Handle: e.acquire(r, 1), Result: result}
		e.answered("complete", e.store.Complete(e.Context(), []idempotency.Completion{c}), nil)
		for _, got := range []idempotency.Result{e.wants(r, idempotency.StatusCompleted).Result, e.get(r.Key).Result} {
			if !got.Omitted || got.Data != nil || got.Size != 10<<20 || got.SHA256 != sha256.Sum256(data) {
				e.Errorf("%s: kept %d bytes, omitted %v, size %d, hash %x", name, len(got.Data), got.Omitted, got.Size, got.SHA256)
			}
		}
	}
}

func testResultAtCap(e *env) {
	data := bytes.Repeat([]byte{0xff}, idempotency.MaxResult)
	r := e.request()
	e.complete(e.acquire(r, 1), string(data), nil)
	if got := e.wants(r, idempotency.StatusCompleted).Result; !bytes.Equal(got.Data, data) || got.Omitted {
		e.Errorf("kept %d bytes, omitted %v", len(got.Data), got.Omitted)
	}
}
