package webhook

import (
	"net/url"
	"sync"
)

// targets remembers URLs that passed the guard, which never changes its mind about one: reading and checking a URL for each call would cost as
// much as the signature does. What a name stands for is checked at each dial.
type targets struct {
	guard *Guard

	mu    sync.RWMutex
	known map[targetKey]*url.URL
}

type targetKey struct {
	raw       string
	allowHTTP bool
}

// mostTargets is how many are remembered. Beyond that it begins anew.
const mostTargets = 10_000

// find returns where e is called, or why it must not be. The result is shared: do not change it.
func (t *targets) find(e Endpoint) (*url.URL, error) {
	key := targetKey{e.URL, e.AllowHTTP}
	t.mu.RLock()
	target := t.known[key]
	t.mu.RUnlock()
	if target != nil {
		return target, nil
	}
	target, err := t.guard.checkURL(e.URL, e.AllowHTTP)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= mostTargets {
		t.known = make(map[targetKey]*url.URL)
	}
	t.known[key] = target
	return target, nil
}
