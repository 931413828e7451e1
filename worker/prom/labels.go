package prom

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/caisson-go/caisson/dlq"
)

// bounded lets the first few values of a label through and folds the rest into Other.
type bounded struct {
	mu    sync.Mutex
	known map[string]bool
}

func (b *bounded) fold(value string) string {
	if value == Other {
		return Other
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.known[value]:
	case len(b.known) >= MaxLabelValues:
		return Other
	default:
		if b.known == nil {
			b.known = make(map[string]bool)
		}
		b.known[value] = true
	}
	return value
}

// foldCause keeps causes that this version does not know out of the labels.
func foldCause(c dlq.Cause) string {
	for _, known := range dlq.Causes() {
		if c == known {
			return string(c)
		}
	}
	return Other
}

// children finds the series of a key without a lock and without allocating: the map is copied when a series is added, which is rare.
type children[K comparable, M any] struct {
	known atomic.Pointer[map[K]M]
	mu    sync.Mutex
	child func(K) M
}

// maxChildren bounds the keys that are remembered; the rest are looked up anew each time.
const maxChildren = 10_000

func newChildren[K comparable, M any](child func(K) M) *children[K, M] {
	c := &children[K, M]{child: child}
	c.known.Store(&map[K]M{})
	return c
}

func (c *children[K, M]) of(key K) M {
	if m, ok := (*c.known.Load())[key]; ok {
		return m
	}
	return c.add(key)
}

func (c *children[K, M]) add(key K) M {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := *c.known.Load()
	if m, ok := known[key]; ok {
		return m
	}
	m := c.child(key)
	if len(known) < maxChildren {
		grown := maps.Clone(known)
		grown[key] = m
		c.known.Store(&grown)
	}
	return m
}
