package breaker_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/breakermodel"
)

func TestBreakerMatchesTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := breaker.Config{
			FailurePercent: new(rapid.IntRange(1, 100).Draw(t, "failure percent")),
			SlowPercent:    new(rapid.IntRange(1, 100).Draw(t, "slow percent")),
			SlowAfter:      new(time.Duration(rapid.IntRange(0, 3).Draw(t, "slow after")) * time.Second),
			Window:         time.Duration(rapid.IntRange(1, 30).Draw(t, "window")) * time.Second,
			MinimumCalls:   rapid.SampledFrom([]int{1, 3, 8, 30}).Draw(t, "minimum"),
			HungAfter:      new(time.Duration(0)),
			OpenFor:        5 * time.Second, OpenGrowth: 2, OpenMax: 17 * time.Second, OpenJitter: new(0.0),
			Probes:     rapid.IntRange(1, 4).Draw(t, "probes"),
			ProbeLease: time.Duration(rapid.IntRange(1, 10).Draw(t, "lease")) * time.Second,
		}
		cfg.ProbesToClose = rapid.IntRange(1, cfg.Probes).Draw(t, "to close")
		b, err := breaker.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		m := breakermodel.New(cfg)
		m.Places = rapid.SampledFrom([]int{0, 1, 2, 4, 5, 20}).Draw(t, "places")
		b.SetPlaces(time.Time{}, m.Places)
		sick := false
		permits, next, now := map[int]*breaker.Permit{}, 0, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		ids := func() []int {
			list := []int{}
			for id := range next {
				if permits[id] != nil {
					list = append(list, id)
				}
			}
			return list
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "quarter seconds")) * 250 * time.Millisecond)
			},
			"turn": func(t *rapid.T) { sick = rapid.Bool().Draw(t, "sick") },
			"admit": func(t *rapid.T) {
				peek := b.Peek(now)
				p, v := b.Admit(now)
				if want := m.Admit(next, now); v > 0 != want || peek != v {
					t.Fatalf("Admit = %v, Peek = %v, want a refusal: %t", v, peek, want)
				}
				if v == 0 {
					permits[next] = &p
				}
				next++
			},
			"done": func(t *rapid.T) { // permits stay in the map, so that some are completed twice
				if list := ids(); len(list) > 0 {
					id := rapid.SampledFrom(list).Draw(t, "permit")
					o := rapid.SampledFrom(breakermodel.Outcomes(sick)).Draw(t, "outcome")
					permits[id].Done(now, o)
					m.Done(id, now, o)
				}
			},
			"force": func(t *rapid.T) {
				m.Override = rapid.SampledFrom([]breaker.Override{breaker.OverrideNone, breaker.OverrideNone, breaker.OverrideOpen, breaker.OverrideClosed}).Draw(t, "override")
				b.Force(now, m.Override)
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					b.Reset(now)
					m.Reset(now)
				}
			},
			"": func(t *rapid.T) {
				if got := b.State(); got != m.State {
					t.Fatalf("state %v, want %v", got, m.State)
				}
				if got := b.Snapshot(now).InUse; got != m.Out() {
					t.Fatalf("%d permits out, want %d", got, m.Out())
				}
			},
		})
	})
}
