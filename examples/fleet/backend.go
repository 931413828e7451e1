package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/caisson-go/caisson/dlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/idempotency"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
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
	file    *sqlitefile.File // of claims and dead letters, if the broker has none of its own
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
	l := &backend{broker: broker}
	if err := l.openStores(ctx, p); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if err := broker.CreateQueue(ctx, queueName); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *backend) openStores(ctx context.Context, p plan) error {
	file, err := l.storeFile(ctx, p)
	if err != nil {
		return err
	}
	claims, err := claimsqlite.New(ctx, file)
	if err != nil {
		return err
	}
	letters, err := dlqsqlite.New(ctx, file)
	if err != nil {
		return err
	}
	l.claims, l.letters = claims, letters
	return nil
}

// storeFile is the queue's own file or, with a broker, one beside it.
func (l *backend) storeFile(ctx context.Context, p plan) (*sqlitefile.File, error) {
	if b, ok := l.broker.(*embedded.Broker); ok {
		return b.File(), nil
	}
	// Full: the broker forgets a message once it is acked, so that its claim or dead letter must outlive a power cut.
	file, err := sqlitefile.Open(ctx, sqlitefile.Config{Path: filepath.Join(p.Dir, "claims.db"), Sync: sqlitefile.Full})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	l.file = file
	return file, nil
}

func (l *backend) close() error {
	err := l.broker.Close()
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}
