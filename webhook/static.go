package webhook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/caisson-go/caisson/webhook/internal/match"
	"github.com/caisson-go/caisson/webhook/signature"
)

// Endpoints is where the sender finds endpoints. It is asked before each attempt and must be safe for concurrent use and quick.
type Endpoints interface {
	// Get returns the endpoint with that id, or an error that wraps [ErrUnknownEndpoint]. After any other error the job is put back
	// without an attempt spent.
	Get(ctx context.Context, id string) (Endpoint, error)
}

// renewer is an [Endpoints] that answers from memory. Before a job is given up because its endpoint is gone it is asked to look again: the endpoint
// may have been enabled a moment ago, and the job enqueued because of that.
type renewer interface {
	// Renew returns when what was changed before the call is known, or with an error: then the job is put back without an attempt spent.
	Renew(ctx context.Context) error
}

// Static holds endpoints in memory, usually those of a configuration file. It is an [Endpoints] and a [Subscribers]. Make one with [NewStatic]. Reads never wait for [Static.Replace].
type Static struct {
	guard *Guard
	set   atomic.Pointer[staticSet]
}

type staticSet struct {
	byID  map[string]Endpoint
	index match.Index
}

// NewStatic checks the endpoints and returns them as one set. A nil guard means the default one.
func NewStatic(guard *Guard, endpoints ...Endpoint) (*Static, error) {
	if guard == nil {
		guard = defaultGuard
	}
	s := &Static{guard: guard}
	if err := s.Replace(endpoints); err != nil {
		return nil, err
	}
	return s, nil
}

// Replace swaps the whole set, all or nothing: after an error the old one stays. Attempts that run keep the endpoint that they began with.
func (s *Static) Replace(endpoints []Endpoint) error {
	set := staticSet{byID: make(map[string]Endpoint, len(endpoints))}
	owner := make(map[[sha256.Size]byte]string, len(endpoints))
	var errs []error
	for _, e := range endpoints {
		checked, err := s.guard.Check(e)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, taken := set.byID[e.ID]; taken {
			errs = append(errs, fmt.Errorf("endpoint %q is given twice: ids are unique", e.ID))
		}
		claim := func(name string, i int, secret signature.Secret) {
			key := sha256.Sum256([]byte(secret.Reveal()))
			if other, used := owner[key]; used && other != e.ID {
				errs = append(errs, fmt.Errorf("endpoint %q: %s[%d] is also used by endpoint %q: give each its own, or one receiver can forge for the other", e.ID, name, i, other))
			}
			owner[key] = e.ID
		}
		for i, secret := range e.Secrets {
			claim("secrets", i, secret)
		}
		for i, r := range e.Retiring {
			claim("retiring", i, r.Secret)
		}
		set.byID[e.ID] = checked.clone()
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for id, e := range set.byID {
		set.index.Add(id, e.Tenant, e.Events)
	}
	s.set.Store(&set)
	return nil
}

// Get implements [Endpoints]. Maps and slices of the result are shared: do not change them.
func (s *Static) Get(_ context.Context, id string) (Endpoint, error) {
	if e, ok := s.set.Load().byID[id]; ok {
		return e, nil
	}
	return Endpoint{}, fmt.Errorf("%w: %q", ErrUnknownEndpoint, id)
}

// Matching implements [Subscribers].
func (s *Static) Matching(tenant, eventType string) ([]Endpoint, error) {
	set := s.set.Load()
	var found []Endpoint
	for _, id := range set.index.Match(cmp.Or(tenant, DefaultTenant), eventType) {
		found = append(found, set.byID[id])
	}
	return found, nil
}

// All returns the endpoints, sorted by id.
func (s *Static) All() []Endpoint {
	byID := s.set.Load().byID
	all := make([]Endpoint, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		all = append(all, byID[id])
	}
	return all
}
