package endpoints_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/endpoints/postgres"
)

// TestProcessesDisableOnce: two processes, each with connections of its own, see an endpoint fail for as long as the rule wants, find at once that it
// is due, and are about to write that at the same time. One of them disables it, says so, and enqueues the one notice.
func TestProcessesDisableOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool, schema := testserver.VirtualSchema(t)
		inOfficeOn(t, postgres.New(pool, postgres.Config{Schema: schema}), func(t *testing.T, o *office) {
			var writers atomic.Int32
			both := make(chan struct{})
			meet := func(string) {
				if writers.Add(1) == 2 {
					close(both)
				}
				select {
				case <-both:
				case <-time.After(time.Second):
				}
			}
			var all []process
			for range 2 {
				own, err := pgxpool.NewWithConfig(t.Context(), pool.Config())
				if err != nil {
					t.Fatal(err)
				}
				defer own.Close()
				p := o.start(func(cfg *endpoints.AutoDisablerConfig) {
					cfg.Registry = registry(t, &faulty{Store: postgres.New(own, postgres.Config{Schema: schema}), before: meet}, o.keys)
					cfg.Sweep = 24 * time.Hour // which enqueues copies
				})
				defer p.stop()
				all = append(all, p)
			}
			time.Sleep(everyTick / 2) // between two steps of the keepers
			for i := range 38 {       // it is due for the last two
				for j, p := range all {
					p.saw("a", fmt.Sprint(i, j), 500)
				}
				time.Sleep(10 * time.Minute)
			}
			o.want("a", "disabled failing", 1, 1)
			if writers.Load() != 2 || o.enqueued != 1 || o.log.count("was disabled") != 1 {
				t.Errorf("%d were about to, %d jobs enqueued, logged %d times", writers.Load(), o.enqueued, o.log.count("was disabled"))
			}
			h, err := o.registry.Health(t.Context(), "a")
			if err != nil || h.Failures != 2*38 {
				t.Errorf("%+v, %v", h, err)
			}
		}, "a")
	})
}
