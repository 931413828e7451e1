package outbox

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
)

func benchJobs(q string, n int) []Job {
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i].Queue = q
		jobs[i].Body = make([]byte, 1024)
		jobs[i].Headers = map[string]string{queue.HeaderEnvelope: `{"v":1,"id":"0198c6a2-7b1e-7d6e-9f0a-3f5c8b2d4e6f","kind":"email.send"}`}
	}
	return jobs
}

// BenchmarkEnqueue commits transactions that do nothing else, with jobs of 1 KB. With told=true they notify, as while relays are idle.
func BenchmarkEnqueue(b *testing.B) {
	for _, told := range []bool{true, false} {
		for _, c := range []struct{ writers, jobs int }{{1, 1}, {16, 1}, {1, 100}, {4, 1000}} {
			b.Run(fmt.Sprintf("told=%t/writers=%d/jobs=%d", told, c.writers, c.jobs), func(b *testing.B) {
				r := newRig(b, pgdb.Config{MaxConns: c.writers})
				if told {
					if _, err := r.pool.Exec(b.Context(), "SELECT setval($1::text::regclass, 1e12::bigint)", r.box.sql.told); err != nil {
						b.Fatal(err)
					}
				}
				jobs := benchJobs("jobs", c.jobs)
				b.ResetTimer()
				var next atomic.Int64
				var wg sync.WaitGroup
				for range c.writers {
					wg.Go(func() {
						for next.Add(1) <= int64(b.N) {
							r.enqueue(jobs...)
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N*c.jobs)/b.Elapsed().Seconds(), "jobs/s")
			})
		}
	}
}

// benchDrained waits for as long as it takes.
func benchDrained(r *rig) {
	for r.stats().Pending() > 0 {
		time.Sleep(5 * time.Millisecond)
	}
}

// BenchmarkRelay publishes b.N jobs of 1 KB to an embedded queue on the disk.
func BenchmarkRelay(b *testing.B) {
	for _, c := range []struct {
		parallel int
		keys     int
	}{{1, 0}, {4, 0}, {4, 1000}, {4, 1}} {
		b.Run(fmt.Sprintf("parallel=%d/keys=%d", c.parallel, c.keys), func(b *testing.B) {
			r := newEmbedded(b)
			r.queue("jobs")
			for left := b.N; left > 0; left -= 1000 {
				jobs := benchJobs("jobs", min(left, 1000))
				for i := range jobs {
					if c.keys > 0 {
						jobs[i].OrderingKey = fmt.Sprint(i % c.keys)
					}
				}
				r.enqueue(jobs...)
			}
			b.ResetTimer()
			stop := r.relay(RelayConfig{Parallel: c.parallel})
			benchDrained(r)
			b.StopTimer()
			stop()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkFlow enqueues batches of 10 in 8 writers while a relay publishes, and reports how large the tables have become. With held=true
// another transaction keeps its snapshot open all the while, as a long report does.
func BenchmarkFlow(b *testing.B) {
	for _, held := range []bool{false, true} {
		b.Run(fmt.Sprintf("held=%t", held), func(b *testing.B) {
			r := newRig(b, pgdb.Config{MaxConns: 20})
			r.broker = openEmbedded(b, b.TempDir()+"/queue.db")
			r.queue("jobs")
			if held {
				tx, err := r.pool.BeginTx(b.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = tx.Rollback(context.Background()) }()
				if _, err := tx.Exec(b.Context(), "SELECT count(*) FROM pg_class"); err != nil {
					b.Fatal(err)
				}
			}
			jobs := benchJobs("jobs", 10)
			b.ResetTimer()
			stop := r.relay(RelayConfig{DirectURL: testserver.Postgres(b)})
			var next atomic.Int64
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for next.Add(10) <= int64(b.N)+9 {
						r.enqueue(jobs...)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(r.stats().Pending()), "behind")
			benchDrained(r)
			b.StopTimer()
			stop()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			var size int64
			table := func(n string) string { return pgx.Identifier{r.schema, n}.Sanitize() }
			if err := r.pool.QueryRow(context.Background(), "SELECT pg_total_relation_size($1::text::regclass) + pg_total_relation_size($2::text::regclass)",
				table("outbox_0"), table("outbox_1")).Scan(&size); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(size)/(1<<20), "MB")
		})
	}
}
