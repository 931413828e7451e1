package endpoints_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/signature"
)

func TestRotateSecret(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, open(t), ring(t, endpoints.NewKey()))
		first := add(t, r, endpoint("a")).Secrets[0]
		rotated := must(t)(r.RotateSecret(t.Context(), "a", signature.Secret{}, time.Hour))
		second := rotated.Secrets[0]
		if len(rotated.Secrets) != 1 || second.Equal(first) || len(rotated.Retiring) != 1 || !rotated.Retiring[0].Secret.Equal(first) ||
			!rotated.Retiring[0].Until.Equal(time.Now().Add(time.Hour)) {
			t.Fatalf("rotated to %d secrets, %d retire", len(rotated.Secrets), len(rotated.Retiring))
		}
		for _, own := range []signature.Secret{first, second} {
			if _, err := r.RotateSecret(t.Context(), "a", own, time.Hour); err == nil {
				t.Error("rotated to a secret that it has")
			}
			thief := endpoint("thief")
			thief.Secrets = []signature.Secret{own}
			if _, err := r.Add(t.Context(), thief); !errors.Is(err, endpoints.ErrSecretInUse) {
				t.Errorf("a secret in its window was given to another: %v", err)
			}
		}
		time.Sleep(30 * time.Minute)
		given := signature.NewSecret()
		rotated = must(t)(r.RotateSecret(t.Context(), "a", given, time.Hour))
		if !rotated.Secrets[0].Equal(given) || len(rotated.Retiring) != 2 {
			t.Fatalf("rotated to %d secrets, %d retire", len(rotated.Secrets), len(rotated.Retiring))
		}

		time.Sleep(30 * time.Minute) // the first one's window is over; the next write leaves it out
		edited := must(t)(r.Edit(t.Context(), "a", 0, func(e *webhook.Endpoint) error { e.Rate = 1; return nil }))
		if len(edited.Retiring) != 1 || !edited.Retiring[0].Secret.Equal(second) {
			t.Errorf("%d secrets retire after the first one's window", len(edited.Retiring))
		}
		heir := endpoint("heir")
		heir.Secrets = []signature.Secret{first}
		add(t, r, heir) // nobody has it any more

		rotated = must(t)(r.RotateSecret(t.Context(), "a", signature.Secret{}, 0))
		if len(rotated.Secrets) != 1 || len(rotated.Retiring) != 0 {
			t.Errorf("without a window %d secrets retire", len(rotated.Retiring))
		}
		if _, err := r.RotateSecret(t.Context(), "a", first, time.Hour); !errors.Is(err, endpoints.ErrSecretInUse) {
			t.Errorf("rotated to the secret of another: %v", err)
		}
		if _, err := r.RotateSecret(t.Context(), "a", signature.Secret{}, -1); err == nil {
			t.Error("a negative window is taken")
		}
	})
}

// TestMoreRotationsThanHeadersHold: what no receiver could be sent is refused, with a way out.
func TestMoreRotationsThanHeadersHold(t *testing.T) {
	t.Parallel()
	r := registry(t, open(t), ring(t, endpoints.NewKey()))
	add(t, r, endpoint("a"))
	var err error
	for range 10 {
		_, err = r.RotateSecret(t.Context(), "a", signature.Secret{}, time.Hour)
	}
	if err == nil || !strings.Contains(err.Error(), "let some retire") {
		t.Errorf("the tenth rotation: %v", err)
	}
	must(t)(r.RotateSecret(t.Context(), "a", signature.Secret{}, 0))
}

// TestReplaceAKey goes the whole way from one key to the next.
func TestReplaceAKey(t *testing.T) {
	t.Parallel()
	store := open(t)
	oldKey, newKey := endpoints.NewKey(), endpoints.NewKey()
	before, both, after := registry(t, store, ring(t, oldKey)), registry(t, store, ring(t, newKey, oldKey)), registry(t, store, ring(t, newKey))
	const n = 230 // several pages
	secrets := map[string]signature.Secret{}
	for i := range n {
		e := add(t, before, endpoint(fmt.Sprintf("e%03d", i)))
		secrets[e.ID] = e.Secrets[0]
	}
	if _, err := after.Get(t.Context(), "e000"); !errors.Is(err, endpoints.ErrNoKey) {
		t.Errorf("read without the key: %v", err)
	}
	list, err := after.List(t.Context(), endpoints.Filter{}, "e001", 2)
	if !errors.Is(err, endpoints.ErrNoKey) || len(list) != 2 || list[0].ID != "e002" || list[0].URL != "" {
		t.Errorf("list without the key: %v, %v", list, err)
	}
	twin := endpoint("twin")
	twin.Secrets = []signature.Secret{secrets["e000"]}
	if _, err := both.Add(t.Context(), twin); !errors.Is(err, endpoints.ErrSecretInUse) {
		t.Errorf("a secret that was kept under the old key is free under the new one: %v", err)
	}
	if done, err := after.Reseal(t.Context()); !errors.Is(err, endpoints.ErrNoKey) || done != 0 {
		t.Errorf("sealed %d anew without the key: %v", done, err)
	}
	if done, err := both.Reseal(t.Context()); err != nil || done != n {
		t.Errorf("sealed %d of %d anew: %v", done, n, err)
	}
	if done, err := both.Reseal(t.Context()); err != nil || done != 0 {
		t.Errorf("sealed %d anew again: %v", done, err)
	}
	for id, secret := range secrets {
		if e := must(t)(after.Get(t.Context(), id)); !e.Secrets[0].Equal(secret) || e.URL != "https://example.com/hooks/"+id {
			t.Fatalf("%s has changed", id)
		}
	}
	if _, err := before.Get(t.Context(), "e000"); !errors.Is(err, endpoints.ErrNoKey) {
		t.Errorf("the old key still opens: %v", err)
	}
	if _, err := after.Add(t.Context(), twin); !errors.Is(err, endpoints.ErrSecretInUse) {
		t.Errorf("a secret is free after its key was replaced: %v", err)
	}
}
