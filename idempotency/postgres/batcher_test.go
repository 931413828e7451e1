package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/caisson-go/caisson/idempotency"
)

// port is a batcher whose batches wait for a word.
type port struct {
	batcher[int]
	flights [][]int
	land    chan struct{}
}

func newPort(crowd int) *port {
	p := &port{land: make(chan struct{})}
	p.batcher = batcher[int]{max: 10, crowd: crowd, answer: func(items []int) {
		p.flights = append(p.flights, items)
		<-p.land
	}}
	return p
}

func TestLaneJoinsWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPort(100)
		go p.do(t.Context(), []int{1}) //nolint:errcheck // it is answered below
		synctest.Wait()
		if len(p.flights) != 1 {
			t.Fatal("a lone call does not leave at once")
		}
		for i := range 14 {
			go p.do(t.Context(), []int{i}) //nolint:errcheck // see above
		}
		synctest.Wait()
		if len(p.flights) != 1 {
			t.Fatalf("%d flights at once", len(p.flights))
		}
		for range 3 {
			p.land <- struct{}{}
			synctest.Wait()
		}
		if len(p.flights) != 3 || len(p.flights[1]) != 10 || len(p.flights[2]) != 4 {
			t.Errorf("flights %v, want 1, 10 and 4 items", p.flights)
		}
		p.close()
	})
}

func TestCrowdStartsASecondBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPort(3)
		for i := range 8 {
			go p.do(t.Context(), []int{i}) //nolint:errcheck // it is answered below
			synctest.Wait()
		}
		if len(p.flights) != 2 || len(p.flights[1]) != 3 {
			t.Errorf("flights %v, want one call alone and three together", p.flights)
		}
		close(p.land)
		p.close()
	})
}

func TestLaneLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPort(100)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() { errs <- p.do(ctx, []int{1}) }() // under way when it gives up
		synctest.Wait()
		go func() { errs <- p.do(ctx, []int{2}) }() // waiting when it gives up
		go p.do(t.Context(), []int{3})              //nolint:errcheck // it is answered below
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-errs; !errors.Is(err, context.Canceled) || !errors.Is(err, idempotency.ErrUnavailable) {
				t.Errorf("a call that gave up answers %v", err)
			}
		}
		close(p.land)
		p.close()
		if len(p.flights) != 2 || !slices.Equal(p.flights[1], []int{3}) {
			t.Errorf("flights %v, want the one that gave up left out", p.flights)
		}
		if err := p.do(t.Context(), []int{4}); !errors.Is(err, idempotency.ErrUnavailable) {
			t.Errorf("a closed lane answers %v", err)
		}
	})
}
