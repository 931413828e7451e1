package worker

import (
	"errors"
	"fmt"
)

// resolveKeyed decides for each kind whether it takes claims.
func resolveKeyed(cfg Config, kinds *kinds) error {
	var errs []error
	for _, k := range kinds.all {
		keyed := k.config.Keyed
		k.keyed = cfg.Store != nil && (keyed == nil || *keyed)
		if keyed != nil && *keyed && cfg.Store == nil {
			errs = append(errs, fmt.Errorf("kind %q: asks for idempotency keys but the worker has no store: set Config.Store (store in a configuration), or Keyed: new(false) (kinds.<name>.idempotency: none)", k.name))
		}
		if k.keyed && k.config.MaxAge > cfg.KeyRetention {
			errs = append(errs, fmt.Errorf("kind %q: max age %s is above the key retention %s: a late redelivery could run twice", k.name, k.config.MaxAge, cfg.KeyRetention))
		}
	}
	for i, q := range cfg.Queues {
		if q.DefaultKind != "" && kinds.find(q.DefaultKind, 0) == nil {
			errs = append(errs, fmt.Errorf("queues[%d] %q: default kind %q is not registered", i, q.Name, q.DefaultKind))
		}
	}
	return errors.Join(errs...)
}

// checkKinds checks the kinds against what the brokers of the queues can do. Any kind may come from any queue.
func checkKinds(cfg Config, kinds *kinds) error {
	var errs []error
	for _, q := range cfg.Queues {
		limits := cfg.Broker.Capabilities(q.Name)
		for _, k := range kinds.all {
			if limits.FIFO && !k.keyed && cfg.Store != nil {
				errs = append(errs, fmt.Errorf("kind %q: has no idempotency keys, but queue %q is a FIFO queue, which counts no attempts: leave Keyed nil, or work that queue in another program", k.name, q.Name))
			}
			if longest, needs := limits.MaxLease, k.config.Timeout+k.config.TimeoutGrace; longest > 0 && needs > longest {
				errs = append(errs, fmt.Errorf("kind %q: timeout %s and grace %s make %s, but %s lets a message of queue %q be held for %s at most: shorten the timeout, or raise the limit where the broker has one to raise (consumer_timeout of RabbitMQ, there and in the configuration; the 12 h of SQS are fixed)",
					k.name, k.config.Timeout, k.config.TimeoutGrace, needs, limits.Name, q.Name, longest))
			}
		}
	}
	return errors.Join(errs...)
}
