package endpoints_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/signature"
)

// watched is a mirror at work in a bubble, and what it told.
type watched struct {
	*endpoints.Mirror
	t    *testing.T
	logs *bytes.Buffer

	mu   sync.Mutex
	told []string
}

// mirror starts a mirror that ends with the test, and waits until it sleeps.
func mirror(t *testing.T, cfg endpoints.MirrorConfig) *watched {
	t.Helper()
	w := &watched{t: t, logs: &bytes.Buffer{}}
	cfg.Logger = slog.New(slog.NewTextHandler(w.logs, nil))
	cfg.OnChange = func(e webhook.Endpoint, deleted bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if deleted {
			w.told = append(w.told, "-"+e.ID)
			return
		}
		w.told = append(w.told, "+"+e.ID)
	}
	var err error
	if w.Mirror, err = endpoints.NewMirror(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	synctest.Wait()
	return w
}

// next lets the mirror look once more.
func (w *watched) next() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// wantTold compares what OnChange heard since the last call.
func (w *watched) wantTold(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.told; !slices.Equal(got, want) {
		w.t.Errorf("told %v, want %v", got, want)
	}
	w.told = nil
}

func (w *watched) wantMatching(tenant, eventType string, want ...string) {
	w.t.Helper()
	found, err := w.Matching(tenant, eventType)
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, e := range found {
		ids = append(ids, e.ID)
		if e.URL == "" || len(e.Secrets) == 0 || e.Concurrency == 0 {
			w.t.Errorf("%s is not complete", e)
		}
	}
	if !slices.Equal(ids, want) {
		w.t.Errorf("%s of %q goes to %v, want %v", eventType, tenant, ids, want)
	}
}

func (w *watched) wantUnknown(id string) {
	w.t.Helper()
	if _, err := w.Get(w.t.Context(), id); !errors.Is(err, webhook.ErrUnknownEndpoint) {
		w.t.Errorf("get of %q: %v", id, err)
	}
}

func TestMirrorFollows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, open(t), ring(t, endpoints.NewKey()))
		add(t, r, endpoint("b", "invoice.*"))
		add(t, r, endpoint("a"))
		m := mirror(t, endpoints.MirrorConfig{Registry: r})
		<-m.Loaded()
		m.wantTold("+b", "+a")
		m.wantMatching("", "invoice.paid", "a", "b")
		m.wantMatching("default", "user.created", "a")
		m.wantMatching("other", "user.created")
		m.wantUnknown("c")
		m.next()
		m.wantTold()

		other := endpoint("c", "user.created")
		other.Tenant = "other"
		add(t, r, other)
		must(t)(r.Pause(t.Context(), "a", "moving"))
		if err := r.Delete(t.Context(), "b", 0); err != nil { // and another tenant takes the id
			t.Fatal(err)
		}
		other = endpoint("b", "user.*")
		other.Tenant = "other"
		add(t, r, other)
		m.next()
		m.wantTold("+c", "+a", "+b")
		m.wantMatching("other", "user.created", "b", "c")
		m.wantMatching("", "invoice.paid", "a")
		if e, err := m.Get(t.Context(), "a"); err != nil || e.State != webhook.StatePaused || e.Reason != "moving" {
			t.Errorf("get of the paused one: %v, %v", e, err)
		}
		if err := r.Delete(t.Context(), "b", 0); err != nil {
			t.Fatal(err)
		}
		add(t, r, endpoint("d"))
		if err := r.Delete(t.Context(), "d", 0); err != nil { // nobody ever heard of it
			t.Fatal(err)
		}
		m.next()
		m.wantTold("-b")
		m.wantUnknown("b")
		m.wantMatching("other", "user.created", "c")
		if m.Len() != 2 {
			t.Errorf("%d endpoints, want 2", m.Len())
		}
		if m.logs.Len() > 0 {
			t.Errorf("logs: %s", m.logs)
		}
	})
}

func TestMirrorLoadsInPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: open(t)}
		r := registry(t, store, ring(t, endpoints.NewKey()))
		const n = 1203
		for i := range n {
			add(t, r, endpoint(fmt.Sprintf("e%04d", i)))
		}
		m := mirror(t, endpoints.MirrorConfig{Registry: r})
		if m.Len() != n || len(m.told) != n || !slices.Equal(store.asked, []int64{0, 500, 1000}) {
			t.Errorf("%d endpoints of %d, told %d, asked %v", m.Len(), n, len(m.told), store.asked)
		}
	})
}

// TestMirrorWithoutAStore: nothing is known until the first load, and what is known stays.
func TestMirrorWithoutAStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: open(t), away: true}
		r := registry(t, store, ring(t, endpoints.NewKey()))
		m := mirror(t, endpoints.MirrorConfig{Registry: r})
		if _, err := m.Get(t.Context(), "a"); !errors.Is(err, endpoints.ErrUnavailable) || errors.Is(err, webhook.ErrUnknownEndpoint) {
			t.Errorf("get before the load: %v", err)
		}
		if _, err := m.Matching("", "a"); !errors.Is(err, endpoints.ErrUnavailable) {
			t.Errorf("matching before the load: %v", err)
		}
		select {
		case <-m.Loaded():
			t.Error("loaded from a store that is away")
		default:
		}
		store.setAway(false)
		add(t, r, endpoint("a"))
		m.next()
		<-m.Loaded()
		m.wantMatching("", "a", "a")
		store.setAway(true)
		for range 10 {
			m.next()
			m.wantMatching("", "a", "a")
		}
		store.setAway(false)
		add(t, r, endpoint("b"))
		m.next()
		m.wantMatching("", "a", "a", "b")
		m.next()
		logs := m.logs.String()
		if strings.Count(logs, "level=WARN") != 2 || strings.Count(logs, "level=INFO") != 2 || !strings.Contains(logs, "out for lunch") {
			t.Errorf("logs:\n%s", logs)
		}
	})
}

func TestMirrorWithAConfigurationFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fixed := func(id string) webhook.Endpoint {
			e := endpoint(id)
			e.Secrets, e.URL = []signature.Secret{signature.NewSecret()}, "https://example.net/"+id
			return e
		}
		static, err := webhook.NewStatic(nil, fixed("m"), fixed("both"))
		if err != nil {
			t.Fatal(err)
		}
		r := registry(t, open(t), ring(t, endpoints.NewKey()))
		add(t, r, endpoint("z"))
		add(t, r, endpoint("a"))
		add(t, r, endpoint("both", "invoice.*"))
		m := mirror(t, endpoints.MirrorConfig{Registry: r, Static: static})
		m.wantTold("+z", "+a", "+both")
		m.wantMatching("", "user.created", "a", "m", "z")
		m.wantMatching("", "invoice.paid", "a", "both", "m", "z")
		if e, err := m.Get(t.Context(), "both"); err != nil || e.URL != "https://example.com/hooks/both" {
			t.Errorf("get of what both have: %v, %v", e, err)
		}
		if e, err := m.Get(t.Context(), "m"); err != nil || e.URL != "https://example.net/m" || m.Len() != 4 {
			t.Errorf("get of what the file has: %v, %v; %d endpoints", e, err, m.Len())
		}
		m.wantUnknown("nobody")
		if err := r.Delete(t.Context(), "both", 0); err != nil {
			t.Fatal(err)
		}
		m.next()
		m.wantTold("+both")
		m.wantMatching("", "user.created", "a", "both", "m", "z")
		if e, err := m.Get(t.Context(), "both"); err != nil || e.URL != "https://example.net/both" {
			t.Errorf("get of what only the file has now: %v, %v", e, err)
		}
		if err := static.Replace(nil); err != nil {
			t.Fatal(err)
		}
		m.wantMatching("", "user.created", "a", "z")
	})
}

// TestMirrorOfWhatCannotBeRead: its jobs are made, by what lies in the clear, and wait.
func TestMirrorOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := open(t)
		oldKey, newKey := endpoints.NewKey(), endpoints.NewKey()
		r, both := registry(t, store, ring(t, oldKey)), registry(t, store, ring(t, newKey, oldKey))
		add(t, r, endpoint("known", "a.*"))
		m := mirror(t, endpoints.MirrorConfig{Registry: r})
		m.wantTold("+known")
		must(t)(both.Edit(t.Context(), "known", 0, func(e *webhook.Endpoint) error { e.URL, e.Events = "https://example.org/", nil; return nil }))
		told := []string{"+known"}
		for i := range 15 {
			id := fmt.Sprintf("new%02d", i)
			add(t, both, endpoint(id, "b"))
			told = append(told, "+"+id)
		}
		m.next()
		m.wantTold(told...)
		for eventType, want := range map[string]int{"a.b": 1, "b": 16} {
			found, err := m.Matching("", eventType)
			if err != nil || len(found) != want || found[0].ID != "known" || found[0].URL != "" {
				t.Errorf("%s goes to %v, %v", eventType, found, err)
			}
		}
		for _, id := range []string{"known", "new01"} { // what was known of the first may be wrong by now
			_, err := m.Get(t.Context(), id)
			if !errors.Is(err, endpoints.ErrUnavailable) || !errors.Is(err, endpoints.ErrNoKey) || errors.Is(err, webhook.ErrUnknownEndpoint) {
				t.Errorf("get of %s: %v", id, err)
			}
		}
		if logs := m.logs.String(); strings.Count(logs, "deliveries wait for a worker that can use it") != 10 || !strings.Contains(logs, "endpoints=16") {
			t.Errorf("logs:\n%s", logs)
		}
		m.next()
		if logs := m.logs.String(); strings.Count(logs, "level=ERROR") != 11 {
			t.Errorf("told again:\n%s", logs)
		}
		if err := both.Delete(t.Context(), "new01", 0); err != nil {
			t.Fatal(err)
		}
		m.next()
		m.wantUnknown("new01")
		m.wantTold("-new01")
	})
}
