package endpoints_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/worker"
)

// A mirror that looks once an hour knows what was changed before Renew.
func TestRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, open(t), ring(t, endpoints.NewKey()))
		add(t, r, endpoint("a"))
		m := mirror(t, endpoints.MirrorConfig{Registry: r, Interval: time.Hour})
		<-m.Loaded()
		for _, id := range []string{"b", "c", "d"} {
			add(t, r, endpoint(id))
			var callers sync.WaitGroup
			for range 5 {
				callers.Go(func() {
					if err := m.Renew(t.Context()); err != nil {
						t.Error(err)
					}
					if _, err := m.Get(t.Context(), id); err != nil {
						t.Error(err)
					}
				})
			}
			callers.Wait()
		}
	})
}

// Without a store nothing is confirmed, and without a running mirror nobody waits longer than his context.
func TestRenewFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &refusing{Store: open(t)}
		r := registry(t, store, ring(t, endpoints.NewKey()))
		add(t, r, endpoint("a"))
		m := mirror(t, endpoints.MirrorConfig{Registry: r, Interval: time.Hour})
		<-m.Loaded()
		store.refuse(errors.New("away"))
		if err := m.Renew(t.Context()); err == nil {
			t.Error("renewed without a store")
		}
		store.refuse(nil)
		if err := m.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		idle, err := endpoints.NewMirror(endpoints.MirrorConfig{Registry: r})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := idle.Renew(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a mirror that does not run: %v", err)
		}
	})
}

// refusing is a store that can be made to answer with an error only.
type refusing struct {
	endpoints.Store
	mu  sync.Mutex
	err error
}

func (s *refusing) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *refusing) Changes(ctx context.Context, since int64, limit int) ([]endpoints.Record, error) {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.Store.Changes(ctx, since, limit)
}

// What is enqueued right after an endpoint was enabled is delivered, although the worker still takes the endpoint for gone.
func TestEnabledAMomentAgo(t *testing.T) {
	t.Parallel()
	p := newPlantOn(t, open(t), time.Hour, func(*endpoints.AutoDisablerConfig) {})
	p.status.Store(http.StatusGone)
	p.deliver("evt_1", ended(worker.SettlementDeadLetter))
	p.disabled() // by the disabler
	must(t)(p.registry.Enable(t.Context(), "shop"))
	p.status.Store(http.StatusOK)
	p.deliver("evt_2", func(s worker.Settled) bool {
		if s.Settlement == worker.SettlementDeadLetter {
			t.Fatalf("dead of %s: %v", s.Cause, s.Err)
		}
		return s.Settlement == worker.SettlementAck
	})
}

// disabled waits until the registry says so.
func (p *plant) disabled() {
	p.t.Helper()
	for limit := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		entry, err := p.registry.Get(p.t.Context(), "shop")
		check(p.t, err)
		if entry.State == webhook.StateDisabled {
			return
		}
		if time.Now().After(limit) {
			p.t.Fatal("nobody has disabled the endpoint")
		}
	}
}
