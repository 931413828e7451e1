package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestShares(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 100), 1, 12).Draw(t, "weights")
		total := rapid.IntRange(len(weights), 600).Draw(t, "total")
		sum, weight := 0, 0
		for _, w := range weights {
			weight += w
		}
		got := shares(total, weights)
		for i, n := range got {
			sum += n
			if n < 1 {
				t.Fatalf("queue %d got %d slots of %d for weights %v", i, n, total, weights)
			}
			if exact := float64(total*weights[i]) / float64(weight); float64(n) > exact+1 && n > 1 {
				t.Fatalf("queue %d got %d slots, its exact share is %.2f", i, n, exact)
			}
		}
		if sum != total {
			t.Fatalf("shares %v sum up to %d, not %d", got, sum, total)
		}
	})
}

func TestSlotsNeverExceedTheirSize(t *testing.T) {
	t.Parallel()
	s := newSlots(5)
	var held, peak atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 300 {
				n := s.take(t.Context(), 3)
				now := held.Add(int64(n))
				for p := peak.Load(); now > p && !peak.CompareAndSwap(p, now); p = peak.Load() {
				}
				held.Add(-int64(n))
				got := n / 2
				s.received(n, got)
				s.put(got)
			}
		})
	}
	wg.Wait()
	if peak.Load() > 5 || s.inUse() != 0 {
		t.Errorf("peak %d of 5, %d in use at the end", peak.Load(), s.inUse())
	}
}

// An idle worker waits in Receive with all its slots taken: none of them is in use.
func TestSlotsOfAWaitingReceiveAreNotInUse(t *testing.T) {
	t.Parallel()
	s := newSlots(5)
	if n := s.take(t.Context(), 64); n != 5 || s.inUse() != 0 {
		t.Errorf("took %d of 5, %d in use", n, s.inUse())
	}
	s.received(5, 2)
	if s.inUse() != 2 {
		t.Errorf("%d in use after two jobs were received", s.inUse())
	}
	s.put(2)
	if s.inUse() != 0 {
		t.Errorf("%d in use after they ended", s.inUse())
	}
}

func TestSlotsTakeWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		if n := s.take(t.Context(), 9); n != 1 {
			t.Fatalf("took %d slots, want the only one", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n := s.take(ctx, 1); n != 0 {
			t.Fatalf("took %d slots from none", n)
		}
		go func() {
			time.Sleep(time.Minute)
			s.put(1)
		}()
		if n := s.take(t.Context(), 1); n != 1 {
			t.Fatalf("took %d slots after one was put back", n)
		}
	})
}
