package backends

import (
	"context"
	"errors"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue"
)

// offlineBroker knows what a broker could do. Nothing else of it may be called.
type offlineBroker struct {
	queue.Broker
	capabilities func(name string) queue.Capabilities
}

// Capabilities implements [queue.Broker].
func (b offlineBroker) Capabilities(name string) queue.Capabilities { return b.capabilities(name) }

// offlineSink stands for dead-letter queues. Nothing of it may be called.
type offlineSink struct{ dlq.Sink }

// offline is a networked broker's set with its stores in memory.
func offline(ctx context.Context, cfg *config.Config, capabilities func(name string) queue.Capabilities) (*Set, error) {
	s := &Set{Broker: offlineBroker{capabilities: capabilities}}
	var err error
	if cfg.ClaimStore() == config.StorePostgres {
		err = s.offlinePostgres(ctx, cfg)
	} else {
		err = s.keepInMemory(ctx, cfg)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.DeadLetters == nil {
		s.DeadLetters = offlineSink{}
	}
	return s, nil
}
