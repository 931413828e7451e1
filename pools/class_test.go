package pools

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
	"github.com/caisson-go/caisson/pools/limiter"
)

func TestClassesLeavePlacesToThoseBefore(t *testing.T) {
	t.Parallel()
	for n, want := range map[uint32][4]uint32{
		0: {0, 0, 0, 0}, 1: {1, 1, 1, 1}, 2: {2, 2, 1, 1}, 3: {3, 3, 2, 1}, 5: {5, 5, 4, 3}, 6: {6, 6, 4, 3}, 10: {10, 10, 8, 6},
		1_000_000: {1_000_000, 1_000_000, 800_000, 600_000},
	} {
		for i, want := range want {
			c := Class(i) + ClassCriticalPlus
			if got := c.of(n); got != want {
				t.Errorf("class %d may use %d of %d, want %d", c, got, n, want)
			}
		}
	}
}

func TestLowClassesLeavePermitsOfADestination(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Concurrency: new(5)}})
	take := func(class Class) (n int) {
		for {
			if p := r.Peek(t0, Request{Destination: "a", Class: class}); !p.OK() {
				_, v := r.Admit(t0, Request{Destination: "a", Class: class})
				if v != p || v.Reason != ReasonConcurrencyFull {
					t.Fatalf("Peek %+v, Admit %+v", p, v)
				}
				return n
			}
			if _, v := r.Admit(t0, Request{Destination: "a", Class: class}); !v.OK() {
				t.Fatal(v)
			}
			n++
		}
	}
	for _, tt := range []struct {
		class Class
		want  int
	}{{2, 3}, {100, 0}, {1, 1}, {0, 1}} {
		if got := take(tt.class); got != tt.want {
			t.Errorf("class %d got %d permits, want %d", tt.class, got, tt.want)
		}
	}
}

// A destination at its rate limit has a long line of low jobs. One of the first class waits for a token, not for them, and meanwhile they give way.
func TestLowClassesGiveWay(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Rate: limiter.Config{Rate: new(10.0)}}})
	send(t, r, "a", t0, breaker.OutcomeSuccess)
	var low, first time.Duration
	for range 100 {
		low = r.Defer(t0, Request{Destination: "a", Class: 1}, 100*time.Millisecond)
	}
	end := r.Defer(t0, Request{Destination: "a", Class: 2}, 0)
	first = r.Defer(t0, Request{Destination: "a", Class: 0}, 100*time.Millisecond)
	if s, _ := r.Lookup("a", t0); s.Waiting < 101 || end < 10*time.Second {
		t.Errorf("%d wait, the last one for %v: want all that were put back, of all classes", s.Waiting, end)
	}
	if low < 10*time.Second || first > 120*time.Millisecond {
		t.Errorf("the last low job waits for %v, the first of the class before it for %v", low, first)
	}
	now := at(150 * time.Millisecond)
	r.Defer(now, Request{Destination: "a", Class: 0}, time.Second)
	p, v := r.Admit(now, Request{Destination: "a"})
	if !v.OK() {
		t.Fatalf("%+v", v)
	}
	if v := r.Peek(now, Request{Destination: "a", Class: 1}); v.Reason != ReasonOutranked || v.Wait <= 0 || v.Wait > 5*time.Second {
		t.Errorf("low: %+v", v)
	}
	if v := r.Peek(at(4*time.Second), Request{Destination: "a", Class: 1}); !v.OK() {
		t.Errorf("nobody waits any more: %+v", v)
	}
	p.Done(now, breaker.OutcomeSuccess)
	if v := r.Peek(now.Add(100*time.Millisecond), Request{Destination: "a", Class: 1}); !v.OK() {
		t.Errorf("nothing runs, and there is a token: %+v", v)
	}
	// What was put back for long does not keep an idle destination idle.
	r.Defer(t0, Request{Destination: "b", Class: 0}, time.Hour)
	if v := r.Peek(t0, Request{Destination: "b", Class: 2}); !v.OK() {
		t.Errorf("%+v", v)
	}
}

func TestLinesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l, now, place := noBacklog, int64(0), int64(10)
		last := int64(1_000_000)
		for range rapid.IntRange(1, 50).Draw(t, "jobs") {
			c := Class(rapid.IntRange(-1, 2).Draw(t, "class"))
			before := l
			due := l.join(c, now, place, last)
			switch {
			case due < now || due > last:
				t.Fatalf("due at %d", due)
			case due < before.ahead(c), due < before[c.rank()]:
				t.Fatalf("class %d is due at %d, before %v", c, due, before)
			case l.end() < before.end():
				t.Fatalf("%v -> %v", before, l)
			}
			for i := range l {
				if l[i] < before[i] {
					t.Fatalf("%v -> %v", before, l)
				}
			}
			now += int64(rapid.IntRange(0, 30).Draw(t, "wait"))
		}
	})
}

func TestBulkheadServesClassesInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bulkhead(t, 5, 10)
		var mu sync.Mutex
		var served []Class
		var wg sync.WaitGroup
		want := func(class Class) {
			wg.Go(func() {
				if err := b.Acquire(t.Context(), class); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				served = append(served, class)
			})
			synctest.Wait()
		}
		for range 4 {
			want(2)
		}
		if s := b.Snapshot(); s.InUse != 3 || s.Waiting != 1 {
			t.Fatalf("class 2 has %d of 5, and %d wait", s.InUse, s.Waiting)
		}
		want(1)
		want(1)
		want(0)
		want(2)
		want(0)
		if s := b.Snapshot(); s.InUse != 5 || s.Waiting != 4 {
			t.Fatalf("%+v", s)
		}
		served = served[:0]
		for range 6 {
			b.Release()
			synctest.Wait()
		}
		if !slices.Equal(served, []Class{0, 1, 2, 2}) {
			t.Errorf("served %v", served)
		}
		wg.Wait()
		for range b.Snapshot().InUse {
			b.Release()
		}
	})
}

func TestBulkheadRoomIsKeptToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bulkhead(t, 1, 5)
		b.TryAcquire()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		got := 0
		for b.Available(1) {
			wg.Go(func() { _ = b.Acquire(ctx, 1) })
			synctest.Wait()
			got++
		}
		if err := b.Acquire(ctx, 1); got != 4 || !errors.Is(err, ErrFull) {
			t.Errorf("%d of class 1 wait in a room of 5, the next got %v", got, err)
		}
		if !b.Available(0) {
			t.Error("no room is left for class 0")
		}
		cancel()
		wg.Wait()
		b.Release()
		if s := b.Snapshot(); s.InUse != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestWhoComesBeforeMovesTheOthersOn(t *testing.T) {
	t.Parallel()
	l := noBacklog
	for i, tt := range []struct {
		class Class
		due   int64
		want  backlog
	}{
		{1, 0, backlog{stamp.Never, stamp.Never, 10, stamp.Never}},
		{1, 10, backlog{stamp.Never, stamp.Never, 20, stamp.Never}},
		{2, 20, backlog{stamp.Never, stamp.Never, 20, 30}},
		{0, 0, backlog{stamp.Never, 10, 30, 40}},
		{1, 30, backlog{stamp.Never, 10, 40, 50}},
	} {
		if due := l.join(tt.class, 0, 10, 1000); due != tt.due || l != tt.want {
			t.Errorf("%d: class %d is due at %d, lines %v; want %d, %v", i, tt.class, due, l, tt.due, tt.want)
		}
	}
}

func TestClassIsReadByName(t *testing.T) {
	t.Parallel()
	for _, want := range []Class{ClassCriticalPlus, ClassCritical, ClassSheddablePlus, ClassSheddable} {
		text, _ := want.MarshalText()
		var got Class
		if err := got.UnmarshalText(text); err != nil || got != want {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
	c := ClassSheddable
	if err := c.UnmarshalText([]byte("1")); err == nil || c != ClassSheddable {
		t.Errorf("a number is read as %v", c)
	}
}
