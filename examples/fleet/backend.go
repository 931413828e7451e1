package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/caisson-go/caisson/dlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/idempotency"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/queue/rabbitmq"
)

const (
	brokerEmbedded = "embedded"
	brokerRabbitMQ = "rabbitmq"
	queueName      = "webhooks"
)

// backend is where jobs, claims and dead letters live.
type backend struct {
	broker  queue.Broker
	claims  idempotency.Store
	letters dlq.Store
	closers []func() error
}

// openBroker opens the queue alone, which is all that a sender needs.
func openBroker(ctx context.Context, p plan) (queue.Broker, error) {
	if p.Broker == brokerRabbitMQ {
		return rabbitmq.Open(ctx, rabbitConfig(p))
	}
	return embedded.Open(ctx, embedded.Config{Path: filepath.Join(p.Dir, "caisson.db")})
}

func rabbitConfig(p plan) rabbitmq.Config {
	return rabbitmq.Config{URLs: []string{p.URL}, Prefix: p.Prefix, Logger: slog.New(slog.DiscardHandler)}
}

// openBackend opens everything that a worker needs.
func openBackend(ctx context.Context, p plan) (*backend, error) {
	broker, err := openBroker(ctx, p)
	if err != nil {
		return nil, err
	}
	l := &backend{broker: broker, closers: []func() error{broker.Close}}
	if err := l.openStores(ctx, p); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if err := broker.CreateQueue(ctx, queueName); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *backend) openStores(ctx context.Context, p plan) error {
	path, sync := l.storeFile(p)
	claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: path, Sync: sync})
	if err != nil {
		return err
	}
	l.closers = append(l.closers, claims.Close)
	letters, err := dlqsqlite.Open(ctx, dlqsqlite.Config{Path: path, Sync: sync})
	if err != nil {
		return err
	}
	l.closers = append(l.closers, letters.Close)
	l.claims, l.letters = claims, letters
	return nil
}

// storeFile is the queue's own file or, with a broker, one beside it.
func (l *backend) storeFile(p plan) (path, sync string) {
	if b, ok := l.broker.(*embedded.Broker); ok {
		return b.Path(), ""
	}
	// Full: the broker forgets a message once it is acked, so that its claim or dead letter must outlive a power cut.
	return filepath.Join(p.Dir, "claims.db"), "full"
}

func (l *backend) close() error {
	var errs []error
	for _, c := range l.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
