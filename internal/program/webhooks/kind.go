package webhooks

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/worker"
)

// Kind is the kind webhook.deliver of one worker. It can be registered before there is a store.
type Kind struct {
	settings *Settings
	sender   *webhook.Sender
	lookup   lookup
	observe  atomic.Pointer[func(webhook.Attempt)]
}

// Register registers the kind webhook.deliver. Close the kind after the worker's Run has returned.
func (s *Settings) Register(registry *worker.Registry) (*Kind, error) {
	d := &Kind{settings: s}
	c := webhook.Config{Endpoints: s.static, Guard: s.guard, Timeouts: s.timeouts}
	if s.keys != nil {
		c.Endpoints, c.Observe = &d.lookup, d.observed
	}
	var err error
	if d.sender, err = webhook.NewSender(c); err != nil {
		return nil, err
	}
	d.sender.Register(registry)
	registry.Configure(webhook.KindDeliver, func(k *worker.KindConfig) {
		k.Backoff = s.cfg.Webhook.Default.Backoff
		if n := k.Backoff.Len(); n > 0 {
			k.MaxAttempts = n + 1
		}
	})
	return d, nil
}

// Static are the endpoints of the configuration file.
func (s *Settings) Static() []webhook.Endpoint { return s.static.All() }

// Close ends idle connections.
func (d *Kind) Close() { d.sender.Close() }

// observed passes an attempt to the observer, once there is one.
func (d *Kind) observed(a webhook.Attempt) {
	if observe := d.observe.Load(); observe != nil {
		(*observe)(a)
	}
}

// lookup is a [webhook.Endpoints] that is there before the store is.
type lookup struct {
	mirror atomic.Pointer[endpoints.Mirror]
}

// Get implements [webhook.Endpoints].
func (l *lookup) Get(ctx context.Context, id string) (webhook.Endpoint, error) {
	if m := l.mirror.Load(); m != nil {
		return m.Get(ctx, id)
	}
	return webhook.Endpoint{}, fmt.Errorf("the registry is not open yet: %w", endpoints.ErrUnavailable)
}
