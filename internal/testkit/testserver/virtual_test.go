package testserver

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestVirtualSchemaHasTheBubblesClock lets a week pass.
func TestVirtualSchemaHasTheBubblesClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool, _ := VirtualSchema(t)
		for range 8 {
			var now, clock time.Time
			if err := pool.QueryRow(t.Context(), `SELECT now(), clock_timestamp()`).Scan(&now, &clock); err != nil {
				t.Fatal(err)
			}
			if !now.Equal(time.Now()) || !clock.Equal(time.Now()) {
				t.Errorf("it is %v and %v in the database, %v in the bubble", now, clock, time.Now())
			}
			time.Sleep(24 * time.Hour)
		}
	})
}
