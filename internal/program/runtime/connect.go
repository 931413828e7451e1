package runtime

import (
	"context"
	"strings"
	"time"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
)

// lateAfter is how long connecting may take before the log says that it does.
const lateAfter = 5 * time.Second

// connect opens broker and stores. Nil means that ctx ended before everything was there: nothing was begun.
func (r *Runtime) connect(ctx context.Context) (*backends.Set, error) {
	to := backendsText(r.cfg)
	if r.cfg.Networked() || r.cfg.ClaimStore() == config.StorePostgres {
		r.logger.Info("connecting", "to", to)
	}
	late := time.AfterFunc(lateAfter, func() { r.logger.Warn("still connecting: not ready until there is an answer", "to", to) })
	defer late.Stop()
	set, err := backends.Open(ctx, r.cfg, backends.Create, r.logger)
	if err != nil && ctx.Err() != nil {
		return nil, nil //nolint:nilerr // stopped before it was there
	}
	return set, err
}

// backendsText names what is connected to.
func backendsText(cfg *config.Config) string {
	var names []string
	if cfg.Networked() {
		names = append(names, cfg.Broker+" at "+backends.Address(cfg))
	}
	if at := backends.StoreAddress(cfg); at != "" {
		names = append(names, cfg.ClaimStore()+" at "+at)
	}
	if len(names) == 0 {
		return cfg.Broker + " at " + backends.Address(cfg)
	}
	return strings.Join(names, " and ")
}

// startAttrs says what the worker works on and with, without secrets.
func (r *Runtime) startAttrs() []any {
	cfg := r.cfg
	names := make([]string, len(cfg.Queues))
	for i, q := range cfg.Queues {
		names[i] = q.Name
	}
	attrs := []any{
		"version", cli.BuildOf().Version, "queues", strings.Join(names, ","), "concurrency", cfg.Concurrency,
		"kinds", strings.Join(r.assembly.registry.Kinds(), ","),
	}
	attrs = append(attrs, backendAttrs(cfg)...)
	if cfg.DLQBackend() == config.DLQBroker {
		attrs = append(attrs, "hold", "off, since dead letters have no store")
	}
	if cfg.Outbox.Relay {
		attrs = append(attrs, "outbox", "relayed here")
	}
	if n := len(cfg.Webhook.Endpoints); n > 0 {
		attrs = append(attrs, "webhook_endpoints", n)
	}
	if cfg.HasRegistry() {
		attrs = append(attrs, "webhook_registry", true)
	}
	return append(attrs, r.adminAttrs()...)
}

func (r *Runtime) adminAttrs() []any {
	if r.server == nil {
		return nil
	}
	return []any{"admin", r.server.Addr().String()}
}

// backendAttrs says which broker and store are used, without secrets.
func backendAttrs(cfg *config.Config) []any {
	attrs := []any{"broker", cfg.Broker}
	if cfg.Networked() {
		attrs = append(attrs, "at", backends.Address(cfg))
	} else {
		attrs = append(attrs, "file", cfg.Embedded.Path)
	}
	if cfg.Networked() || cfg.ClaimStore() == config.StorePostgres {
		attrs = append(attrs, "store", cfg.ClaimStore(), "dead_letters", cfg.DLQBackend())
	}
	if at := backends.StoreAddress(cfg); at != "" {
		attrs = append(attrs, "store_at", at)
	}
	if cfg.ClaimStore() == config.StorePostgres {
		attrs = append(attrs, "schema", cfg.Postgres.Schema)
	}
	return attrs
}
