package endpoints_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// TestStateBindsWithoutTheKey: a worker that cannot read a change holds the endpoint's jobs as it says, and calls the old URL no more.
func TestStateBindsWithoutTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := open(t)
		oldKey, newKey := endpoints.NewKey(), endpoints.NewKey()
		r, ahead := registry(t, store, ring(t, oldKey)), registry(t, store, ring(t, newKey, oldKey))
		add(t, r, endpoint("a"))
		m := mirror(t, endpoints.MirrorConfig{Registry: r})
		m.wantTold("+a")
		want := func(state webhook.State, reason string) {
			t.Helper()
			m.next()
			m.wantTold("+a")
			e, err := m.Get(t.Context(), "a")
			if err != nil || e.State != state || e.Reason != reason || e.Since.IsZero() || e.URL != "" || len(e.Secrets) > 0 {
				t.Errorf("%s %s is %s %s of %s, %v", state, reason, e.State, e.Reason, e, err)
			}
		}
		must(t)(ahead.Pause(t.Context(), "a", "leaking"))
		want(webhook.StatePaused, "leaking")
		if _, _, err := ahead.Disable(t.Context(), "a", "moved away"); err != nil {
			t.Fatal(err)
		}
		want(webhook.StateDisabled, "moved away")

		must(t)(ahead.Enable(t.Context(), "a"))
		m.next()
		m.wantTold("+a")
		if e, err := m.Get(t.Context(), "a"); !errors.Is(err, endpoints.ErrUnavailable) {
			t.Errorf("enabled and not readable: %v, %v", e, err)
		}
		behind := registry(t, store, ring(t, oldKey, newKey)) // seals it with a key that the worker has
		must(t)(behind.Edit(t.Context(), "a", 0, func(e *webhook.Endpoint) error { e.URL = "https://example.org/"; return nil }))
		m.next()
		if e, err := m.Get(t.Context(), "a"); err != nil || e.URL != "https://example.org/" {
			t.Errorf("readable again: %v, %v", e, err)
		}
	})
}

// TestStateBindsWhereTheURLIsRefused: another program allows more than this one.
func TestStateBindsWhereTheURLIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, keys := open(t), ring(t, endpoints.NewKey())
		r := registry(t, store, keys)
		add(t, r, endpoint("a"))
		m := mirror(t, endpoints.MirrorConfig{Registry: r})
		lax, err := endpoints.NewRegistry(endpoints.RegistryConfig{Store: store, Keys: keys, Guard: laxGuard(t)})
		if err != nil {
			t.Fatal(err)
		}
		must(t)(lax.Edit(t.Context(), "a", 0, func(e *webhook.Endpoint) error { e.URL = "https://example.com:9999/"; return nil }))
		m.next()
		if e, err := m.Get(t.Context(), "a"); !errors.Is(err, endpoints.ErrUnavailable) {
			t.Errorf("with a port that is refused: %v, %v", e, err)
		}
		must(t)(lax.Pause(t.Context(), "a", "stop"))
		m.next()
		if e, err := m.Get(t.Context(), "a"); err != nil || e.State != webhook.StatePaused {
			t.Errorf("paused: %v, %v", e.State, err)
		}
	})
}

// TestPublishWithoutTheKey: who wants an event is known without it, and also where a newer program wrote the endpoint.
func TestPublishWithoutTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := open(t)
		there := registry(t, store, ring(t, endpoints.NewKey()))
		ordered := endpoint("ordered", "a.*")
		ordered.Ordered, ordered.Tenant = true, "x"
		add(t, there, ordered)
		newer := add(t, there, endpoint("newer", "b"))
		record, err := store.Get(t.Context(), newer.ID)
		if err != nil {
			t.Fatal(err)
		}
		record.Settings = []byte(`{"version":2,"events":["b","c"],"rate":{"per":"second"}}`)
		if _, err := store.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		m := mirror(t, endpoints.MirrorConfig{Registry: registry(t, store, ring(t, endpoints.NewKey()))})
		for _, c := range []struct {
			tenant, eventType string
			want              []string
		}{{"x", "a.b", []string{"ordered"}}, {"x", "b", nil}, {"", "a.b", nil}, {"", "c", []string{"newer"}}, {"", "d", nil}} {
			found, err := m.Matching(c.tenant, c.eventType)
			var ids []string
			for _, e := range found {
				ids = append(ids, e.ID)
				if e.Ordered != (e.ID == "ordered") {
					t.Errorf("%s is ordered: %v", e.ID, e.Ordered)
				}
			}
			if err != nil || !slices.Equal(ids, c.want) {
				t.Errorf("%s of %q goes to %v, %v; want %v", c.eventType, c.tenant, ids, err, c.want)
			}
		}
	})
}
