package pools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func bulkhead(t testing.TB, size, waiting int) *Bulkhead {
	t.Helper()
	b, err := NewBulkhead(BulkheadConfig{Size: size, Waiting: waiting})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBulkheadRefusesAtOnceWhenTheRoomIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bulkhead(t, 1, 1)
		if !b.TryAcquire() || b.TryAcquire() || b.Free() || !b.Available(0) {
			t.Fatal("one permit, one place to wait")
		}
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error)
		go func() { waited <- b.Acquire(ctx, 0) }()
		synctest.Wait()
		if b.Available(0) {
			t.Error("room is free")
		}
		if err := b.Acquire(t.Context(), 0); !errors.Is(err, ErrFull) {
			t.Errorf("got %v", err)
		}
		if got, want := b.Snapshot(), (BulkheadSnapshot{Size: 1, InUse: 1, QueueSize: 1, Waiting: 1, Rejected: 2}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		b.Release()
		if err := b.Acquire(ctx, 0); !errors.Is(err, context.Canceled) || !b.Free() {
			t.Errorf("a done context got %v", err)
		}
	})
}

func TestBulkheadIsFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bulkhead(t, 1, 10)
		b.TryAcquire()
		served := make(chan int, 10)
		for i := range 10 {
			go func() {
				if b.Acquire(t.Context(), 0) == nil {
					served <- i
				}
			}()
			synctest.Wait()
		}
		for i := range 10 {
			b.Release()
			if got := <-served; got != i {
				t.Fatalf("served %d, want %d", got, i)
			}
			if b.TryAcquire() {
				t.Fatal("somebody overtook those who wait")
			}
		}
	})
}

func TestBulkheadReleaseWithoutPermitPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	bulkhead(t, 1, 0).Release()
}

// TestBulkheadHandsOnThePermitOfACancelledWait lets grant and cancellation come at once, in any order.
func TestBulkheadHandsOnThePermitOfACancelledWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bulkhead(t, 1, 1)
		for i := range 200 {
			if !b.TryAcquire() {
				t.Fatalf("permit lost in round %d", i)
			}
			ctx, cancel := context.WithCancel(t.Context())
			waited := make(chan error)
			go func() { waited <- b.Acquire(ctx, 0) }()
			synctest.Wait()
			b.mu.Lock() // neither can act before both have happened
			cancel()
			b.inUse--
			b.grant()
			b.mu.Unlock()
			if <-waited == nil {
				b.Release()
			}
		}
	})
}

// TestBulkheadLosesNoPermit cancels waits while permits are handed over and sizes change.
func TestBulkheadLosesNoPermit(t *testing.T) {
	t.Parallel()
	const size = 3
	b := bulkhead(t, size, 8)
	var running, most atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 300 {
				ctx, cancel := context.WithCancel(context.Background())
				if (i+n)%3 == 0 {
					go cancel() // races with the hand-over
				}
				if b.Acquire(ctx, 0) == nil {
					if now := running.Add(1); now > most.Load() {
						most.Store(now)
					}
					running.Add(-1)
					b.Release()
				}
				cancel()
				if i == 0 {
					_ = b.Resize(BulkheadConfig{Size: 1 + n%size, Waiting: 8})
				}
			}
		})
	}
	wg.Wait()
	if most.Load() > size {
		t.Errorf("%d at once, size never above %d", most.Load(), size)
	}
	_ = b.Resize(BulkheadConfig{Size: size, Waiting: 0})
	for i := range size {
		if !b.TryAcquire() {
			t.Fatalf("only %d of %d permits left", i, size)
		}
	}
	if b.TryAcquire() {
		t.Error("a permit too many")
	}
}

func TestBulkheadMatchesTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) { bulkheadModel(rt) })
	})
}

// bulkheadModel compares with two lists: who runs and who waits.
func bulkheadModel(t *rapid.T) {
	size, room := rapid.IntRange(1, 4).Draw(t, "size"), rapid.IntRange(0, 4).Draw(t, "room")
	b, err := NewBulkhead(BulkheadConfig{Size: size, Waiting: room})
	if err != nil {
		t.Fatal(err)
	}
	var running, waiting []int
	var mu sync.Mutex
	var got []int // who holds a permit by its own account
	cancels, next := map[int]context.CancelFunc{}, 0
	admit := func() {
		for len(waiting) > 0 && len(running) < size {
			running, waiting = append(running, waiting[0]), waiting[1:]
		}
	}
	defer func() {
		for _, cancel := range cancels {
			cancel()
		}
	}()
	t.Repeat(map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			id := next
			next++
			ctx, cancel := context.WithCancel(context.Background())
			cancels[id] = cancel
			full := len(waiting) >= room && (len(running) >= size || len(waiting) > 0)
			if b.Available(0) == full {
				t.Fatalf("RoomFree = %v", !full)
			}
			go func() {
				if b.Acquire(ctx, 0) == nil {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, id)
				}
			}()
			synctest.Wait()
			if !full {
				waiting = append(waiting, id)
				admit()
			}
		},
		"try": func(t *rapid.T) {
			want := len(running) < size && len(waiting) == 0
			if b.Free() != want || b.TryAcquire() != want {
				t.Fatalf("TryAcquire = %v", !want)
			}
			if want {
				running, got = append(running, next), append(got, next)
				next++
			}
		},
		"release": func(t *rapid.T) {
			if len(running) > 0 {
				id := running[0]
				running = running[1:]
				mu.Lock()
				got = slices.DeleteFunc(got, func(g int) bool { return g == id })
				mu.Unlock()
				b.Release()
				admit()
			}
		},
		"cancel": func(t *rapid.T) {
			if len(waiting) > 0 {
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "who")
				cancels[waiting[i]]()
				waiting = slices.Delete(waiting, i, i+1)
			}
		},
		"resize": func(t *rapid.T) {
			size, room = rapid.IntRange(1, 4).Draw(t, "size"), rapid.IntRange(0, 4).Draw(t, "room")
			if err := b.Resize(BulkheadConfig{Size: size, Waiting: room}); err != nil {
				t.Fatal(err)
			}
			admit()
		},
		"": func(t *rapid.T) {
			synctest.Wait()
			s := b.Snapshot()
			if s.InUse != len(running) || s.Waiting != len(waiting) || s.Size != size || s.QueueSize != room {
				t.Fatalf("%+v, want %d running and %d waiting of %d and %d", s, len(running), len(waiting), size, room)
			}
			mu.Lock()
			defer mu.Unlock()
			if a, b := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(running)); !slices.Equal(a, b) {
				t.Fatalf("%v hold a permit, want %v", a, b)
			}
		},
	})
}

func TestBulkheadConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, cfg := range []BulkheadConfig{{}, {Size: -1}, {Size: 1, Waiting: -1}} {
		if _, err := NewBulkhead(cfg); err == nil {
			t.Errorf("accepted %+v", cfg)
		}
		if err := bulkhead(t, 1, 0).Resize(cfg); err == nil {
			t.Errorf("resized to %+v", cfg)
		}
	}
}

func ExampleBulkheadSize() {
	fmt.Println(BulkheadSize(100, 300*time.Millisecond, 2))
	// Output: 60
}
