package pools

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/pools/budget"
)

// replica answers each call after its own time; a cancelled call ends at once.
type replica struct {
	takes     []time.Duration
	errs      []error
	calls     atomic.Int32
	cancelled atomic.Int32
	ended     atomic.Int32
}

func (r *replica) call(ctx context.Context) (string, error) {
	i := int(r.calls.Add(1)) - 1
	defer r.ended.Add(1)
	if !pause.For(ctx, r.takes[i]) {
		r.cancelled.Add(1)
		return "", ctx.Err()
	}
	if i < len(r.errs) && r.errs[i] != nil {
		return "", r.errs[i]
	}
	return []string{"first", "second"}[i], nil
}

func TestHedge(t *testing.T) {
	t.Parallel()
	s := time.Second
	for _, tt := range []struct {
		name       string
		takes      []time.Duration
		errs       []error
		want       string
		wantErr    error
		took       time.Duration
		calls, won int
		cancelled  int
	}{
		{name: "fast enough", takes: []time.Duration{s}, want: "first", took: s, calls: 1},
		{name: "the hedge wins", takes: []time.Duration{9 * s, s}, want: "second", took: 3 * s, calls: 2, won: 1, cancelled: 1},
		{name: "the first wins", takes: []time.Duration{3 * s, 9 * s}, want: "first", took: 3 * s, calls: 2, cancelled: 1},
		{
			name: "a failure does not win", takes: []time.Duration{5 * s, s}, errs: []error{nil, errDown},
			want: "first", took: 5 * s, calls: 2,
		},
		{
			name: "nor does the first failure", takes: []time.Duration{3 * s, 4 * s}, errs: []error{errDown},
			want: "second", took: 6 * s, calls: 2, won: 1,
		},
		{
			name: "both fail", takes: []time.Duration{3 * s, 4 * s}, errs: []error{errDown, errInput},
			wantErr: errDown, took: 6 * s, calls: 2,
		},
		{name: "an early failure is no case for a hedge", takes: []time.Duration{s}, errs: []error{errDown}, wantErr: errDown, took: s, calls: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := policy(t, CallConfig[string]{Idempotent: true, HedgeAfter: 2 * s, Timeout: time.Minute})
				dep := &replica{takes: tt.takes, errs: tt.errs}
				start := time.Now()
				got, err := Call(t.Context(), p, dep.call)
				if got != tt.want || !errors.Is(err, tt.wantErr) || time.Since(start) != tt.took {
					t.Errorf("%q, %v after %v", got, err, time.Since(start))
				}
				if n := int(dep.calls.Load()); n != tt.calls || int(dep.ended.Load()) != n {
					t.Errorf("%d calls, %d of them joined", n, dep.ended.Load())
				}
				if n := int(dep.cancelled.Load()); n != tt.cancelled {
					t.Errorf("%d cancelled, want %d", n, tt.cancelled)
				}
				if s := p.Snapshot(); int(s.HedgeWon) != tt.won || int(s.Hedged) != tt.calls-1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestHedgeSpendsTheRetryBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, DestinationsConfig{Default: DestinationConfig{Budget: budget.Config{Form: budget.FormAWS, Tokens: 14}}})
		p := policy(t, CallConfig[string]{Idempotent: true, HedgeAfter: time.Second, Admit: r.For("mail")})
		for _, want := range []int32{2, 1} { // the second call finds an empty budget
			dep := &replica{takes: []time.Duration{5 * time.Second, 5 * time.Second}}
			if _, err := Call(t.Context(), p, dep.call); err != nil || dep.calls.Load() != want {
				t.Errorf("%v after %d calls, want %d", err, dep.calls.Load(), want)
			}
		}
		if s := p.Snapshot(); s.Hedged != 1 || s.RetryRefused != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestHedgePanicOfTheLoserIsNotHidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := policy(t, CallConfig[string]{Idempotent: true, HedgeAfter: time.Second})
		var calls atomic.Int32
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, err := Call(t.Context(), p, func(ctx context.Context) (string, error) {
			if calls.Add(1) == 2 {
				return "second", nil
			}
			<-ctx.Done()
			panic("boom")
		})
		t.Errorf("returned %v", err)
	})
}

func TestHedgeGoexitEndsTheCallersGoroutine(t *testing.T) {
	t.Parallel()
	p := policy(t, CallConfig[string]{Idempotent: true, HedgeAfter: time.Hour})
	returned, ended := false, make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = Call(context.Background(), p, func(context.Context) (string, error) { runtime.Goexit(); return "", nil })
		returned = true
	}()
	<-ended
	if returned {
		t.Error("Call returned as if fn had")
	}
}
