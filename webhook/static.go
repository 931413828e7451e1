package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
)

// ErrUnknownEndpoint means that there is no endpoint with that id.
var ErrUnknownEndpoint = errors.New("unknown webhook endpoint")

// Endpoints is where the sender finds endpoints. It is asked before each attempt and must be safe for concurrent use and quick.
type Endpoints interface {
	// Get returns the endpoint with that id, or an error that wraps [ErrUnknownEndpoint]. After any other error the job is put back
	// without an attempt spent.
	Get(ctx context.Context, id string) (Endpoint, error)
}

// Static holds endpoints in memory, usually those of a configuration file. Make one with [NewStatic]. Reads never wait for [Static.Replace].
type Static struct {
	guard *Guard
	byID  atomic.Pointer[map[string]Endpoint]
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
	byID := make(map[string]Endpoint, len(endpoints))
	owner := make(map[[32]byte]string, len(endpoints))
	var errs []error
	for _, e := range endpoints {
		checked, err := s.guard.Check(e)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, taken := byID[e.ID]; taken {
			errs = append(errs, fmt.Errorf("endpoint %q is given twice: ids are unique", e.ID))
		}
		for i, secret := range e.Secrets {
			key := secret.fingerprint()
			if other, used := owner[key]; used && other != e.ID {
				errs = append(errs, fmt.Errorf("endpoint %q: secrets[%d] is also used by endpoint %q: give each its own, or one receiver can forge for the other", e.ID, i, other))
			}
			owner[key] = e.ID
		}
		checked.Headers, checked.Secrets = maps.Clone(e.Headers), slices.Clone(e.Secrets)
		byID[e.ID] = checked
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.byID.Store(&byID)
	return nil
}

// Get implements [Endpoints]. Headers and secrets of the result are shared: do not change them.
func (s *Static) Get(_ context.Context, id string) (Endpoint, error) {
	if e, ok := (*s.byID.Load())[id]; ok {
		return e, nil
	}
	return Endpoint{}, fmt.Errorf("%w: %q", ErrUnknownEndpoint, id)
}

// All returns the endpoints, sorted by id.
func (s *Static) All() []Endpoint {
	byID := *s.byID.Load()
	all := make([]Endpoint, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		all = append(all, byID[id])
	}
	return all
}
