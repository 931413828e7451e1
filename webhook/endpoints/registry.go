package endpoints

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
)

// RegistryConfig configures a [Registry].
type RegistryConfig struct {
	// Store keeps the records. Required.
	Store Store
	// Keys seal what is secret. Required.
	Keys *Keyring
	// Guard decides which URLs are taken. Nil means the default one: see [webhook.Guard].
	Guard *webhook.Guard
}

// Registry changes endpoints and shows them. It is safe for concurrent use.
type Registry struct{ cfg RegistryConfig }

// Entry is an endpoint with what the registry knows beside it.
type Entry struct {
	webhook.Endpoint
	Created, Updated time.Time
	Revision         int64
}

// NewRegistry returns a registry.
func NewRegistry(cfg RegistryConfig) (*Registry, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("webhook endpoints: store is missing")
	case cfg.Keys == nil:
		return nil, errors.New("webhook endpoints: keys are missing: set the key that seals secrets")
	}
	if cfg.Guard == nil {
		var err error
		if cfg.Guard, err = webhook.NewGuard(webhook.GuardConfig{}); err != nil {
			return nil, err
		}
	}
	return &Registry{cfg: cfg}, nil
}

// Add checks an endpoint and adds it, with a new secret if it has none. [ErrExists] if the id is taken.
func (r *Registry) Add(ctx context.Context, e webhook.Endpoint) (Entry, error) {
	if len(e.Secrets) == 0 {
		e.Secrets = []signature.Secret{signature.NewSecret()}
	}
	now := time.Now().UTC()
	e.Since, e.Retiring = now, signing(e.Retiring, now)
	e, err := r.cfg.Guard.Check(e)
	if err != nil {
		return Entry{}, refusal(err)
	}
	record, err := r.cfg.Keys.encode(e)
	if err != nil {
		return Entry{}, err
	}
	if record, err = r.cfg.Store.Insert(ctx, record); err != nil {
		return Entry{}, fmt.Errorf("add endpoint %q: %w", e.ID, err)
	}
	return r.cfg.Keys.decode(record)
}

// signing returns the secrets whose window is open.
func signing(all []webhook.RetiringSecret, now time.Time) []webhook.RetiringSecret {
	return slices.DeleteFunc(slices.Clone(all), func(s webhook.RetiringSecret) bool { return !s.Until.IsZero() && !s.Until.After(now) })
}

// Get returns one endpoint, or [webhook.ErrUnknownEndpoint]. Beside an error of reading it, such as [ErrNoKey], it returns what is not secret.
func (r *Registry) Get(ctx context.Context, id string) (Entry, error) {
	record, err := r.cfg.Store.Get(ctx, id)
	if err != nil {
		return Entry{}, fmt.Errorf("endpoint %q: %w", id, err)
	}
	return r.cfg.Keys.decode(record)
}

// List returns at most limit endpoints by id, those after the id given. One that cannot be read is among them without what is secret, and told
// by an error beside them.
func (r *Registry) List(ctx context.Context, f Filter, after string, limit int) ([]Entry, error) {
	records, err := r.cfg.Store.List(ctx, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list endpoints: %w", err)
	}
	entries := make([]Entry, len(records))
	var errs []error
	for i, record := range records {
		entries[i], err = r.cfg.Keys.decode(record)
		errs = append(errs, err)
	}
	return entries, errors.Join(errs...)
}

// Delete removes an endpoint. Its jobs go to the dead letters. A revision is as in Edit.
func (r *Registry) Delete(ctx context.Context, id string, revision int64) error {
	err := r.retry(ctx, revision, func() error {
		if revision > 0 {
			return r.cfg.Store.Delete(ctx, id, revision)
		}
		record, err := r.cfg.Store.Get(ctx, id)
		if err != nil {
			return err
		}
		return r.cfg.Store.Delete(ctx, id, record.Revision)
	})
	if err != nil {
		return fmt.Errorf("delete endpoint %q: %w", id, err)
	}
	return nil
}

// Failing returns what workers saw of those of the endpoints that have failed since their last success, in no order.
func (r *Registry) Failing(ctx context.Context, ids []string) ([]Health, error) {
	found, err := r.cfg.Store.Failing(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("health of endpoints: %w", err)
	}
	return found, nil
}

// Health returns what workers saw of an endpoint.
func (r *Registry) Health(ctx context.Context, id string) (Health, error) {
	h, err := r.cfg.Store.Health(ctx, id)
	if err != nil {
		return Health{}, fmt.Errorf("health of endpoint %q: %w", id, err)
	}
	return h, nil
}
