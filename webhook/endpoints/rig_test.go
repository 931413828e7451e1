package endpoints_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/endpoints/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a store in memory.
func open(t testing.TB) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func ring(t testing.TB, keys ...string) *endpoints.Keyring {
	t.Helper()
	k, err := endpoints.ParseKeyring(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func registry(t testing.TB, store endpoints.Store, keys *endpoints.Keyring) *endpoints.Registry {
	t.Helper()
	r, err := endpoints.NewRegistry(endpoints.RegistryConfig{Store: store, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// endpoint is a valid one.
func endpoint(id string, events ...string) webhook.Endpoint {
	return webhook.Endpoint{ID: id, URL: "https://example.com/hooks/" + id, Events: events}
}

func add(t testing.TB, r *endpoints.Registry, e webhook.Endpoint) endpoints.Entry {
	t.Helper()
	entry, err := r.Add(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

// must returns an entry that was changed without an error.
func must(t testing.TB) func(e endpoints.Entry, err error) endpoints.Entry {
	return func(e endpoints.Entry, err error) endpoints.Entry {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

// laxGuard allows what the default one does not.
func laxGuard(t testing.TB) *webhook.Guard {
	t.Helper()
	g, err := webhook.NewGuard(webhook.GuardConfig{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// faulty is a store that can be away.
type faulty struct {
	endpoints.Store

	mu   sync.Mutex
	away bool
	// before is called with the id ahead of each update.
	before func(id string)
	asked  []int64 // revisions that changes were asked for
}

func (f *faulty) setAway(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
}

func (f *faulty) failing() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return fmt.Errorf("%w: %w", endpoints.ErrUnavailable, errors.New("out for lunch"))
	}
	return nil
}

func (f *faulty) Changes(ctx context.Context, since int64, limit int) ([]endpoints.Record, error) {
	if err := f.failing(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.asked = append(f.asked, since)
	f.mu.Unlock()
	return f.Store.Changes(ctx, since, limit)
}

func (f *faulty) Update(ctx context.Context, r endpoints.Record) (endpoints.Record, error) {
	if err := f.failing(); err != nil {
		return endpoints.Record{}, err
	}
	if f.before != nil {
		f.before(r.ID)
	}
	return f.Store.Update(ctx, r)
}
