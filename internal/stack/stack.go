package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/config"
	"github.com/caisson-go/caisson/queue"
)

// Stack is an open broker with the stores beside it. It is safe for concurrent use.
type Stack struct {
	Broker queue.Broker
	// Claims is nil where the configuration has no claim store.
	Claims      idempotency.Store
	DeadLetters dlq.Store

	closers []func() error // in the order of opening
}

// Mode says whether what is missing is made.
type Mode uint8

// The modes.
const (
	// Create makes the embedded file if there is none.
	Create Mode = iota
	// Existing refuses to: for tools, which would only find it empty.
	Existing
)

// driver opens the stack of one kind of broker.
type driver func(ctx context.Context, cfg *config.Config, mode Mode) (*Stack, error)

// drivers holds the kinds of broker by the name that the configuration gives them.
var drivers = map[string]driver{
	"embedded": openEmbedded,
}

// Open opens what cfg names.
func Open(ctx context.Context, cfg *config.Config, mode Mode) (*Stack, error) {
	open, ok := drivers[cfg.Broker]
	if !ok {
		return nil, fmt.Errorf("broker %q is not built into this program", cfg.Broker)
	}
	return open(ctx, cfg, mode)
}

// Close closes everything in the reverse order of opening. A second call is a no-op.
func (s *Stack) Close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c())
	}
	s.closers = nil
	return errors.Join(errs...)
}
