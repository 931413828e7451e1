package idempotency_test

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/idempotency"
)

func TestResultIsKeptUpToTheCapAndDescribedBeyond(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, idempotency.MaxResult, idempotency.MaxResult + 1, 10 << 20} {
		data := bytes.Repeat([]byte{0xff}, size)
		r := idempotency.NewResult(data)
		if omitted := size > idempotency.MaxResult; r.Omitted != omitted || r.Size != int64(size) {
			t.Errorf("%d bytes: omitted %t, size %d", size, r.Omitted, r.Size)
		}
		if r.Omitted && (r.Data != nil || r.SHA256 != sha256.Sum256(data)) {
			t.Errorf("%d bytes: a result that is left out is told by its hash alone", size)
		}
		if !r.Omitted && !bytes.Equal(r.Data, data) {
			t.Errorf("%d bytes: data changed", size)
		}
	}
}

func TestRequestsThatNoStoreCanAnswer(t *testing.T) {
	t.Parallel()
	good := idempotency.Request{Key: idempotency.Key{Scope: "k", Value: "v"}, Job: "j", Lease: 1}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*idempotency.Request){
		"without a job": func(r *idempotency.Request) { r.Job = "" },
		"run -1":        func(r *idempotency.Request) { r.Run = -1 },
		"base -1":       func(r *idempotency.Request) { r.AttemptBase = -1 },
		"lease 0s":      func(r *idempotency.Request) { r.Lease = 0 },
		"owner of 201":  func(r *idempotency.Request) { r.Owner = strings.Repeat("o", 201) },
	} {
		r := good
		change(&r)
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
