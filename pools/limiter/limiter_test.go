package limiter

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func limiter(t testing.TB, cfg Config) *Limiter {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLimiterBurstThenRate(t *testing.T) {
	t.Parallel()
	l := limiter(t, Config{Rate: new(2.0), Burst: 3})
	for i := range 3 {
		if ok, _ := l.Allow(t0); !ok {
			t.Fatalf("call %d of the burst refused", i+1)
		}
	}
	for range 5 { // refusals burn nothing
		if ok, wait := l.Allow(t0); ok || wait != 500*time.Millisecond || l.Wait(t0) != wait {
			t.Fatalf("%v, %v", ok, wait)
		}
	}
	if ok, _ := l.Allow(at(500 * time.Millisecond)); !ok {
		t.Error("refused after the wait that it asked for")
	}
	l.Return()
	if ok, _ := l.Allow(at(500 * time.Millisecond)); !ok {
		t.Error("the token that came back is gone")
	}
	for i := range 4 { // an hour of silence earns one burst and no more
		if ok, _ := l.Allow(at(time.Hour)); ok != (i < 3) {
			t.Errorf("call %d after an hour: %v", i+1, ok)
		}
	}
}

func TestLimiterOnePerMinute(t *testing.T) {
	t.Parallel()
	l := limiter(t, Config{Rate: new(1.0 / 60)})
	if ok, _ := l.Allow(t0); !ok {
		t.Fatal("first call refused")
	}
	if ok, wait := l.Allow(t0); ok || wait != time.Minute {
		t.Errorf("%v, %v", ok, wait)
	}
}

func TestLimiterWithoutLimitAndAtTheExtremes(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{}, {Rate: new(0.0)}, {Rate: new(1e-6), Burst: math.MaxInt}} {
		l := limiter(t, cfg)
		for range 1000 {
			if ok, _ := l.Allow(t0); !ok {
				t.Fatalf("%+v refused", cfg)
			}
		}
	}
}

func TestLimiterConfigureKeepsWhatWasSpent(t *testing.T) {
	t.Parallel()
	l := limiter(t, Config{Rate: new(1.0), Burst: 1})
	l.Allow(t0)
	if err := l.Configure(Config{Rate: new(10.0), Burst: 1}); err != nil {
		t.Fatal(err)
	}
	if ok, wait := l.Allow(t0); ok || wait != time.Second {
		t.Errorf("%v, %v", ok, wait)
	}
	if err := l.Configure(Config{Rate: new(math.NaN())}); err == nil {
		t.Error("NaN accepted")
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{Rate: new(math.NaN())}, {Rate: new(math.Inf(1))}, {Rate: new(1e-9)}, {Rate: new(1.0), Burst: -1}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("accepted %+v", cfg)
		}
	}
}

// TestLimiterMatchesALeakyBucket compares with a bucket of water, in nanoseconds, that leaks one nanosecond each.
func TestLimiterMatchesALeakyBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.IntRange(1, 50).Draw(t, "rate")
		burst := rapid.IntRange(1, 10).Draw(t, "burst")
		l, err := New(Config{Rate: new(float64(perSecond)), Burst: burst})
		if err != nil {
			t.Fatal(err)
		}
		drop := time.Duration(math.Ceil(1e9 / float64(perSecond)))
		room := drop * time.Duration(burst)
		now, water := t0, time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			d := time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond
			now, water = now.Add(d), max(water-d, 0)
			if rapid.IntRange(0, 9).Draw(t, "give back") == 0 && water >= drop {
				l.Return()
				water -= drop
			}
			want := max(water+drop-room, 0)
			if got := l.Wait(now); got != want {
				t.Fatalf("Wait = %v, want %v", got, want)
			}
			ok, wait := l.Allow(now)
			if ok != (want == 0) || wait != want {
				t.Fatalf("Allow = %v, %v, want wait %v", ok, wait, want)
			}
			if ok {
				water += drop
			}
		}
	})
}
