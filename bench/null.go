package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/prom"
)

// noDeadLetters is a store for runs in which nothing dies.
type noDeadLetters struct{ dlq.Store }

func (noDeadLetters) Depth(context.Context) (dlq.Depth, error) { return dlq.Depth{}, nil }

func (noDeadLetters) Expire(context.Context, time.Duration, int) (int, error) { return 0, nil }

// promObserver returns the observer that the binary has by default.
func promObserver() (worker.Observer, error) {
	return prom.New(prom.Config{Registerer: prometheus.NewRegistry()})
}
