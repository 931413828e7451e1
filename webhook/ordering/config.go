package ordering

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/caisson-go/caisson/worker"
)

// Config configures a [Dispatcher].
type Config struct {
	// Queues keeps what waits. Required.
	Queues Queues
	// Events has the bodies of what waits. Required.
	Events EventReader
	// Client enqueues the deliveries. Required.
	Client *worker.Client
	// Queue of the deliveries. Empty means the client's.
	Queue string
	// MaxAge is how long a delivery may be at the head of its queue. Then it is given up, as the job's deadline says, and the next one is sent. Zero
	// means 24 h; it should be the kind's.
	MaxAge time.Duration
	// Lost is how long after it was enqueued a head that is still there is enqueued again, since its job may be lost: a copy does no harm. Each
	// further time it is twice as long, up to an hour. Zero means 1 min.
	Lost time.Duration
	// Interval is how often such heads are looked for. Zero means 15 s.
	Interval time.Duration
	// Logger gets what an operator should know. Nil means slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.MaxAge = cmp.Or(c.MaxAge, 24*time.Hour)
	c.Lost = cmp.Or(c.Lost, time.Minute)
	c.Interval = cmp.Or(c.Interval, 15*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Queues == nil:
		return errors.New("queues: required")
	case c.Events == nil:
		return errors.New("events: required, as the queues hold no bodies")
	case c.Client == nil:
		return errors.New("client: required")
	case c.MaxAge < 0 || c.Lost < 0 || c.Interval < 0:
		return fmt.Errorf("max age %s, lost %s, interval %s: must be positive", c.MaxAge, c.Lost, c.Interval)
	}
	return nil
}
