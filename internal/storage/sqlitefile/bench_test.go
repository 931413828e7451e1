package sqlitefile

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkWrite shows what sharing commits gains: durable inserts of 1 KB by callers that each wait for their own.
func BenchmarkWrite(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 256} {
		for _, durable := range []bool{true, false} {
			b.Run(fmt.Sprintf("callers=%d/durable=%t", callers, durable), func(b *testing.B) {
				f := open(b, Config{})
				data := make([]byte, 1024)
				b.ReportAllocs()
				b.ResetTimer()
				var next atomic.Int64
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for next.Add(1) <= int64(b.N) {
							err := f.Write(b.Context(), durable, func(tx *Tx) error {
								_, err := tx.Exec(`INSERT INTO item (data) VALUES (?)`, data)
								return err
							})
							if err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			})
		}
	}
}
