package endpoints

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/internal/match"
)

// MirrorConfig configures a [Mirror].
type MirrorConfig struct {
	// Registry whose endpoints are mirrored. Required.
	Registry *Registry
	// Interval between two looks for changes. Zero means 1 s.
	Interval time.Duration
	// Static are endpoints of a configuration file, beside those of the registry. An id that both have is the registry's. May be nil.
	Static *webhook.Static
	// OnChange is told of every endpoint of the registry that is new or was changed, and of a deleted one with only its id set and deleted true: at
	// the first load, and then after each look. One that cannot be read comes with what is not secret of it, its state too. Of those in Static it
	// hears when they take the place of a deleted one. One call at a time; the mirror has the change already, and the next look waits for it. May
	// be nil.
	OnChange func(e webhook.Endpoint, deleted bool)
	// Logger gets what an operator should know. Nil means slog.Default().
	Logger *slog.Logger
}

func (c MirrorConfig) withDefaults() MirrorConfig {
	c.Interval = cmp.Or(c.Interval, time.Second)
	if c.OnChange == nil {
		c.OnChange = func(webhook.Endpoint, bool) {}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c MirrorConfig) validate() error {
	if c.Registry == nil {
		return errors.New("webhook endpoint mirror: registry is missing")
	}
	if c.Interval < 0 {
		return fmt.Errorf("webhook endpoint mirror: interval %s: must be positive; 0 means 1s", c.Interval)
	}
	return nil
}

// Mirror keeps all endpoints of a registry in memory, and up to date while Run runs. It is a [webhook.Endpoints] and [webhook.Subscribers]:
// neither waits for the store. Until the first load is done both answer with an error that wraps [ErrUnavailable]. It is safe for concurrent use.
type Mirror struct {
	cfg    MirrorConfig
	loaded chan struct{}
	follow follow // Run's alone
	asked  *renewals

	mu    sync.RWMutex
	ready bool
	byID  map[string]mirrored
	index match.Index
}

// mirrored is what is known of one endpoint of the registry.
type mirrored struct {
	// endpoint is what its record says. Of one that cannot be read it has what is not secret.
	endpoint webhook.Endpoint
	revision int64
	// nonce is how the sealed part begins. Each change draws a new one, so that it tells apart what has the same revision in a registry and in
	// one that was restored from its backup.
	nonce string
	// err is why the record cannot be read.
	err error
}

var (
	_ webhook.Endpoints   = (*Mirror)(nil)
	_ webhook.Subscribers = (*Mirror)(nil)
)

// NewMirror returns a mirror that is empty until Run has loaded it.
func NewMirror(cfg MirrorConfig) (*Mirror, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Mirror{cfg: cfg, loaded: make(chan struct{}), asked: newRenewals(), byID: make(map[string]mirrored)}, nil
}

// Loaded is closed once the first load is done.
func (m *Mirror) Loaded() <-chan struct{} { return m.loaded }

// errNotLoaded is the answer until the first load is done.
var errNotLoaded = fmt.Errorf("webhook endpoints are not loaded yet: %w", ErrUnavailable)

// Get implements [webhook.Endpoints]. An endpoint that is there but cannot be read, or not any more since it was changed, is [ErrUnavailable]: its
// jobs wait. If it is paused or disabled it is returned without what is secret: that is enough to hold its jobs, or to give them up. Maps and
// slices of the result are shared: do not change them.
func (m *Mirror) Get(ctx context.Context, id string) (webhook.Endpoint, error) {
	m.mu.RLock()
	ready := m.ready
	found, ok := m.byID[id]
	m.mu.RUnlock()
	switch {
	case !ready:
		return webhook.Endpoint{}, errNotLoaded
	case ok && found.err != nil && found.endpoint.State == webhook.StateActive:
		return webhook.Endpoint{}, fmt.Errorf("%w: %w", ErrUnavailable, found.err)
	case ok:
		return found.endpoint, nil
	case m.cfg.Static != nil:
		return m.cfg.Static.Get(ctx, id)
	}
	return webhook.Endpoint{}, fmt.Errorf("%w: %q", webhook.ErrUnknownEndpoint, id)
}

// Matching implements [webhook.Subscribers]. Maps and slices of the results are shared: do not change them. An endpoint that cannot be read is
// among them, without what is secret: its deliveries are enqueued, and wait for a worker that can read it.
func (m *Mirror) Matching(tenant, eventType string) ([]webhook.Endpoint, error) {
	tenant = cmp.Or(tenant, webhook.DefaultTenant)
	var static []webhook.Endpoint
	if m.cfg.Static != nil {
		var err error
		if static, err = m.cfg.Static.Matching(tenant, eventType); err != nil {
			return nil, err
		}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.ready {
		return nil, errNotLoaded
	}
	ids := m.index.Match(tenant, eventType)
	found := make([]webhook.Endpoint, 0, len(ids)+len(static))
	for _, id := range ids {
		found = append(found, m.byID[id].endpoint)
	}
	for _, e := range static {
		if _, own := m.byID[e.ID]; !own {
			found = append(found, e)
		}
	}
	if len(found) > len(ids) {
		slices.SortFunc(found, func(a, b webhook.Endpoint) int { return strings.Compare(a.ID, b.ID) })
	}
	return found, nil
}

// Len is how many endpoints there are.
func (m *Mirror) Len() int {
	var static []webhook.Endpoint
	if m.cfg.Static != nil {
		static = m.cfg.Static.All()
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := len(m.byID)
	for _, e := range static {
		if _, own := m.byID[e.ID]; !own {
			n++
		}
	}
	return n
}
