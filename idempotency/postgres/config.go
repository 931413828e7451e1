package postgres

import (
	"cmp"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/migrations"
)

// Config says where claims lie and how they are batched.
type Config struct {
	// Schema holds the tables. Default [migrations.DefaultSchema].
	Schema string
	// Generation is how long a partition takes new rows. Shorter ones give space back sooner, but each claim looks into all that are
	// kept. Default 24 h, at least 1 ms.
	Generation time.Duration
	// Keep is how long a partition is kept after it stopped to take new rows: the usual retention of keys. Rows that must be remembered for
	// longer are moved. Default [idempotency.DefaultRetention].
	Keep time.Duration
	// MaxBatch is the most items that concurrent calls send together. Default 256.
	MaxBatch int
	// CallTimeout ends a batch whose answer does not come. Callers bound their own waiting by their contexts. Default 15 s.
	CallTimeout time.Duration
	// Transactions is the most handlers that have a transaction at once; others wait in [TxFrom]. Default the pool's MaxConns less four,
	// or less half of a small pool: those are left for claims, heartbeats and completions, without which no handler would end. Use the pool for
	// nothing else.
	Transactions int
	// TxOptions are those of handlers' transactions. Default PostgreSQL's, read committed. From repeatable read on, a transaction fails
	// when its claim was extended after its first statement: choose a worker's Heartbeat longer than such handlers run.
	TxOptions pgx.TxOptions

	clock string // an SQL expression; tests move it
}

func (c Config) withDefaults() Config {
	c.Schema = cmp.Or(c.Schema, migrations.DefaultSchema)
	c.Generation = cmp.Or(c.Generation, 24*time.Hour)
	c.Keep = cmp.Or(c.Keep, idempotency.DefaultRetention)
	c.MaxBatch = cmp.Or(c.MaxBatch, 256)
	c.CallTimeout = cmp.Or(c.CallTimeout, 15*time.Second)
	c.clock = cmp.Or(c.clock, "clock_timestamp()")
	return c
}

func (c Config) validate() error {
	switch {
	case c.Generation < time.Millisecond:
		return fmt.Errorf("idempotency: Generation of %v must be at least 1ms", c.Generation)
	case c.Keep < 0:
		return fmt.Errorf("idempotency: Keep of %v must not be negative", c.Keep)
	case c.MaxBatch < 1:
		return fmt.Errorf("idempotency: MaxBatch of %d must be positive", c.MaxBatch)
	case c.CallTimeout <= 0:
		return fmt.Errorf("idempotency: CallTimeout of %v must be positive", c.CallTimeout)
	}
	return nil
}
