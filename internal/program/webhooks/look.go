package webhooks

import (
	"context"
	"errors"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Look returns an endpoint as workers with these settings take it: that of the registry, else that of the configuration file. Beside an error that says
// why they cannot use it, it returns what is not secret.
func (s *Settings) Look(ctx context.Context, store endpoints.Store, id string) (webhook.Endpoint, error) {
	if s.keys == nil || store == nil {
		return s.static.Get(ctx, id)
	}
	registry, err := s.Registry(store)
	if err != nil {
		return webhook.Endpoint{}, err
	}
	e, err := registry.Get(ctx, id)
	switch {
	case errors.Is(err, webhook.ErrUnknownEndpoint):
		return s.static.Get(ctx, id)
	case err != nil:
		return e.Endpoint, err
	}
	_, err = s.guard.Check(e.Endpoint)
	return e.Endpoint, err
}
