package prom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue"
)

// Config tunes an observer. The zero value counts events and asks nobody for depths.
type Config struct {
	// Registerer that New registers the observer with. Nil registers nothing: the caller does, or collects it itself.
	Registerer prometheus.Registerer
	// Destinations that may be labels, at most [MaxDestinations]. All others count together as [Other]. Names are normalised as
	// breakers normalise them. Do not name customers' endpoints here.
	Destinations []string

	// Broker to ask for the depth of queues at each scrape. Nil leaves the depths out. One that implements Gauges of package queue/inspect has its own figures
	// shown as caisson_broker_<name>, if there is a Registerer.
	Broker queue.Broker
	// Queues to ask for beside those of the attached worker.
	Queues []string
	// DeadLetters to ask for the depth of dead letters and held jobs, usually a [dlq.Store]. Nil leaves them out.
	DeadLetters interface {
		Depth(ctx context.Context) (dlq.Depth, error)
	}
	// DeadLetterQueues asks for the depth of each queue's own dead-letter queue too ([queue.DLQ]). Set it for brokers that have them: there
	// lie dead letters without a store, and what the broker gave up by itself.
	DeadLetterQueues bool
	// Store to ask whether claims can be taken. Nil leaves it out.
	Store idempotency.Store

	// ScrapeTimeout is how long a scrape waits for broker and stores. Zero means 2 s.
	ScrapeTimeout time.Duration
	// CacheFor is how long an answer of broker or store is used again, so that several scrapers cost as much as one. Zero means 5 s.
	CacheFor time.Duration
}

const (
	// MaxDestinations is the most names in [Config.Destinations].
	MaxDestinations = 50
	// MaxLabelValues is the most queues, the most kinds and the most dependencies that are told apart; further ones count as [Other].
	MaxLabelValues = 200
	// Other is the label value of everything that has no value of its own.
	Other = "other"
)

func (c Config) withDefaults() Config {
	if c.ScrapeTimeout == 0 {
		c.ScrapeTimeout = 2 * time.Second
	}
	if c.CacheFor == 0 {
		c.CacheFor = 5 * time.Second
	}
	named := make([]string, len(c.Destinations))
	for i, name := range c.Destinations {
		named[i] = pools.NormalizeDestination(name)
	}
	c.Destinations = named
	return c
}

func (c Config) validate() error {
	var errs []error
	if len(c.Destinations) > MaxDestinations {
		errs = append(errs, fmt.Errorf("destinations: %d names, at most %d may be labels: leave out those that need no alert of their own",
			len(c.Destinations), MaxDestinations))
	}
	seen := make(map[string]bool)
	for i, name := range c.Destinations {
		switch {
		case name == "" || name == Other:
			errs = append(errs, fmt.Errorf("destinations[%d] %q: use a name that is neither empty nor %q", i, name, Other))
		case seen[name]:
			errs = append(errs, fmt.Errorf("destinations[%d] %q: named twice once normalised: keep one", i, name))
		}
		seen[name] = true
	}
	if c.ScrapeTimeout < 0 || c.CacheFor < 0 {
		errs = append(errs, fmt.Errorf("scrape timeout %s, cache for %s: must not be negative", c.ScrapeTimeout, c.CacheFor))
	}
	return errors.Join(errs...)
}
