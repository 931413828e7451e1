package backends

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/ordering"
)

// Set is an open broker with the stores beside it. It is safe for concurrent use.
type Set struct {
	Broker queue.Broker
	// Claims is nil where the configuration has no claim store.
	Claims idempotency.Store
	// DeadLetters takes what workers give up: Letters, or the broker's own dead-letter queues.
	DeadLetters dlq.Sink
	// Letters is nil where dead letters live in the broker.
	Letters dlq.Store
	// Postgres is the database of claims, dead letters, outbox and status store; nil with another store.
	Postgres *Postgres
	// Mirror is DeadLetters where they are also copied to the broker's own queues; else nil.
	Mirror *brokerdlq.Mirror
	// Sweeper reads what the broker itself dead-letters, to bring it into Letters; nil where it does not, or where dead letters live there.
	Sweeper *brokerdlq.Queues
	// BrokerDLQ is the broker's own dead-letter queues; nil where dead letters live in a store.
	BrokerDLQ *brokerdlq.Queues

	// Endpoints keeps the registry of webhook endpoints, Journal their events and attempts, and Lines what waits for those that ask for order.
	// All are nil without a store.
	Endpoints endpoints.Store
	Journal   journal.Store
	Queues    ordering.Queues

	// Statuses is where workers report to each other and to tools; nil where they share nothing but the broker.
	Statuses fleet.StatusStore

	closers []func() error // in the order of opening
}

// Mode says whether what is missing is made.
type Mode uint8

// The modes.
const (
	// Create makes the file of an embedded queue or a store if there is none.
	Create Mode = iota
	// Existing refuses to: for tools, which would only find it empty.
	Existing
)

// driver is one kind of broker.
type driver struct {
	// open opens the whole set.
	open func(ctx context.Context, cfg *config.Config, mode Mode, logger *slog.Logger) (*Set, error)
	// offline makes a set that touches neither file nor broker.
	offline func(ctx context.Context, cfg *config.Config) (*Set, error)
}

// drivers holds the kinds of broker by the name that the configuration gives them.
var drivers = map[string]driver{
	config.BrokerEmbedded: {openEmbedded, offlineEmbedded},
	config.BrokerRabbitMQ: {openRabbitMQ, offlineRabbitMQ},
	config.BrokerSQS:      {openSQS, offlineSQS},
}

func driverOf(cfg *config.Config) (driver, error) {
	d, ok := drivers[cfg.Broker]
	if !ok {
		return driver{}, fmt.Errorf("broker %q is not built into this program", cfg.Broker)
	}
	return d, nil
}

// Open opens what cfg names. It waits for a broker or database that cannot be reached until ctx is done, and refuses a database whose tables are
// of another version ([migrations.Refuses]). logger gets what the broker's driver has to tell an operator, and what is being waited for; nil
// means slog.Default().
func Open(ctx context.Context, cfg *config.Config, mode Mode, logger *slog.Logger) (*Set, error) {
	d, err := driverOf(cfg)
	if err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.Default()
	}
	return d.open(ctx, cfg, mode, logger)
}

// toolWait is how long a tool waits for a broker or a database.
const toolWait = 15 * time.Second

// OpenSoon is Open for tools, whose user waits for the answer: it gives up on a broker or a database that cannot be reached after 15 s, and
// is silent but for its error.
func OpenSoon(ctx context.Context, cfg *config.Config, mode Mode) (*Set, error) {
	return openWithin(ctx, cfg, mode, toolWait)
}

// OpenStoreSoon is OpenSoon without the broker, which may be away, or have no file yet: Broker is nil then. Where queue and store are one file it
// opens both.
func OpenStoreSoon(ctx context.Context, cfg *config.Config, mode Mode) (*Set, error) {
	if !cfg.Networked() && cfg.ClaimStore() != config.StorePostgres {
		return OpenSoon(ctx, cfg, mode)
	}
	return soon(ctx, cfg, toolWait, func(ctx context.Context) (*Set, error) {
		s := &Set{}
		if err := s.keepBeside(ctx, cfg, mode, slog.New(slog.DiscardHandler)); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	})
}

func openWithin(ctx context.Context, cfg *config.Config, mode Mode, wait time.Duration) (*Set, error) {
	return soon(ctx, cfg, wait, func(ctx context.Context) (*Set, error) {
		return Open(ctx, cfg, mode, slog.New(slog.DiscardHandler))
	})
}

// soon opens what open does, and gives up after wait.
func soon(ctx context.Context, cfg *config.Config, wait time.Duration, open func(context.Context) (*Set, error)) (*Set, error) {
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s, err := open(within)
	var away *awayError
	if errors.As(err, &away) && ctx.Err() == nil {
		return nil, fmt.Errorf("postgres at %s did not answer within %s: %w", away.at, wait, away.err)
	}
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%s at %s did not answer within %s: %w", cfg.Broker, Address(cfg), wait, err)
	}
	return s, err
}

// Offline returns a set that knows what the configured one could do, for checks: it touches neither file nor broker. Its
// broker answers Capabilities and nothing else.
func Offline(ctx context.Context, cfg *config.Config) (*Set, error) {
	d, err := driverOf(cfg)
	if err != nil {
		return nil, err
	}
	return d.offline(ctx, cfg)
}

// Close closes everything in the reverse order of opening. A second call is a no-op.
func (s *Set) Close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c())
	}
	s.closers = nil
	return errors.Join(errs...)
}
