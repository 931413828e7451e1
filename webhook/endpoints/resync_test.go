package endpoints_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// TestMirrorAfterARestoredBackup: revisions begin again lower than what the mirror has seen, and some endpoints are gone without a word. It is seen at
// the next look.
func TestMirrorAfterARestoredBackup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys := ring(t, endpoints.NewKey())
		store := &faulty{Store: open(t)}
		r := registry(t, store, keys)
		add(t, r, endpoint("same"))
		add(t, r, endpoint("changed"))
		add(t, r, endpoint("gone"))
		for range 5 {
			must(t)(r.Edit(t.Context(), "changed", 0, func(e *webhook.Endpoint) error { e.Rate++; return nil }))
		}
		m := mirror(t, endpoints.MirrorConfig{Registry: r})
		m.wantTold("+same", "+gone", "+changed")

		backup := open(t)
		old := registry(t, backup, keys)
		add(t, old, endpoint("same"))
		add(t, old, endpoint("changed"))
		store.mu.Lock()
		store.Store = backup
		store.mu.Unlock()
		m.next()
		m.wantTold("+same", "+changed", "-gone")
		if e, err := m.Get(t.Context(), "changed"); err != nil || e.Rate != 0 {
			t.Errorf("after the resync: %v, %v", e, err)
		}
		m.wantUnknown("gone")
		add(t, old, endpoint("new"))
		m.next()
		m.wantTold("+new")
	})
}

// TestMirrorAfterARestoreThatCaughtUp: the restored registry was changed before the mirror looked, and has the same number of changes again.
func TestMirrorAfterARestoreThatCaughtUp(t *testing.T) {
	t.Parallel()
	for _, more := range []int{0, 1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			keys := ring(t, endpoints.NewKey())
			store, backup := &faulty{Store: open(t)}, open(t)
			r, restored := registry(t, store, keys), registry(t, backup, keys)
			edit := func(r *endpoints.Registry, id, path string) {
				must(t)(r.Edit(t.Context(), id, 0, func(e *webhook.Endpoint) error { e.URL = "https://example.com/" + path; return nil }))
			}
			for _, r := range []*endpoints.Registry{r, restored} {
				add(t, r, endpoint("a"))
				add(t, r, endpoint("b"))
			}
			edit(r, "a", "wrong")
			edit(r, "b", "wrong")
			m := mirror(t, endpoints.MirrorConfig{Registry: r})
			store.mu.Lock()
			store.Store = backup
			store.mu.Unlock()
			for range more {
				edit(restored, "b", "right")
			}
			if more == 3 { // what the mirror saw last is not there any more: it is found by comparing everything
				time.Sleep(time.Hour)
			}
			m.next()
			for _, id := range []string{"a", "b"} {
				want, err := restored.Get(t.Context(), id)
				got, err2 := m.Get(t.Context(), id)
				if err != nil || err2 != nil || got.URL != want.URL {
					t.Errorf("after %d changes %s is at %s, want %s; %v, %v", more, id, got.URL, want.URL, err, err2)
				}
			}
		})
	}
}

// TestMirrorHearsOnlyOnce: comparing everything again changes nothing where nothing has changed.
func TestMirrorHearsOnlyOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, open(t), ring(t, endpoints.NewKey()))
		add(t, r, endpoint("a"))
		m := mirror(t, endpoints.MirrorConfig{Registry: r})
		m.wantTold("+a")
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		m.wantTold()
	})
}

func TestNewMirrorRefuses(t *testing.T) {
	t.Parallel()
	if _, err := endpoints.NewMirror(endpoints.MirrorConfig{}); err == nil {
		t.Error("a mirror without a registry is made")
	}
	r := registry(t, open(t), ring(t, endpoints.NewKey()))
	if _, err := endpoints.NewMirror(endpoints.MirrorConfig{Registry: r, Interval: -time.Second}); err == nil {
		t.Error("a negative interval is taken")
	}
}

// TestMirrorAtWork reads while the registry changes; the race detector watches.
func TestMirrorAtWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, open(t), ring(t, endpoints.NewKey()))
		add(t, r, endpoint("a", "a.*"))
		m := mirror(t, endpoints.MirrorConfig{Registry: r})
		done := make(chan struct{})
		for range 4 {
			go func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(time.Millisecond):
					}
					e, err := m.Get(t.Context(), "a")
					found, err2 := m.Matching("", "a.b")
					if err != nil || err2 != nil || e.URL == "" || len(found) != 1 || m.Len() != 1 {
						t.Errorf("%v, %v, %v, %v", e, err, found, err2)
						return
					}
				}
			}()
		}
		for range 20 {
			must(t)(r.Edit(t.Context(), "a", 0, func(e *webhook.Endpoint) error { e.Rate++; return nil }))
			time.Sleep(700 * time.Millisecond)
		}
		close(done)
		m.next()
		if e, err := m.Get(t.Context(), "a"); err != nil || e.Rate != 20 {
			t.Errorf("ends with %v, %v", e.Rate, err)
		}
	})
}
