package pools

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// own is a configuration that Set gave to some destinations. Equal ones are one, and with it its settings.
type own struct {
	raw      DestinationConfig
	key      string
	settings atomic.Pointer[settings] // raw, resolved over the default of the day
	names    int                      // how many have it; guarded by configMu
}

// Set gives one destination limits of its own while calls go on: what is zero or nil is taken from Default. It
// takes the place of what ByName says, and [Destinations.Configure] keeps it. Nil goes back to the table.
// Permits, state and counts are kept. It costs the same however many destinations there are, and is remembered for ones that are not known
// yet or are forgotten in between. On an error nothing changes.
func (r *Destinations) Set(now time.Time, name string, cfg *DestinationConfig) error {
	key := NormalizeDestination(name)
	if key == "" {
		return errors.New("destinations: set: the name is empty: name the destination")
	}
	r.configMu.Lock()
	defer r.configMu.Unlock()
	t := r.table.Load()
	var mine *own
	if cfg != nil {
		var err error
		if mine, err = r.intern(*cfg, t); err != nil {
			return fmt.Errorf("destinations: set %q: %w", key, err)
		}
	}
	old := r.replaceOwn(stamp.Of(now), key, mine, t)
	if old == nil {
		return nil
	}
	if old.names--; old.names == 0 {
		delete(r.own, old.key)
	}
	return nil
}

// intern returns the own of cfg, counted once more.
func (r *Destinations) intern(cfg DestinationConfig, t *table) (*own, error) {
	key := cfg.key()
	if o := r.own[key]; o != nil {
		o.names++
		return o, nil
	}
	s, err := t.resolve(cfg)
	if err != nil {
		return nil, err
	}
	o := &own{raw: cfg, key: key, names: 1}
	o.settings.Store(s)
	r.own[key] = o
	return o, nil
}

// replaceOwn gives a name another own, or none, and returns the one it had.
func (r *Destinations) replaceOwn(at int64, key string, mine *own, t *table) *own {
	s := r.home(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	d, old := s.m[key], s.own[key]
	if d != nil {
		key = d.name // the same text in the same memory
	}
	if mine == nil {
		delete(s.own, key)
	} else {
		if s.own == nil {
			s.own = map[string]*own{}
		}
		if d == nil {
			key = strings.Clone(key) // it may be a piece of a long URL
		}
		s.own[key] = mine
	}
	if d != nil {
		d.configure(at, s.settings(key, t))
	}
	return old
}

// settings returns those that hold for a name. The shard is locked.
func (s *shard) settings(key string, t *table) *settings {
	if o := s.own[key]; o != nil {
		return o.settings.Load()
	}
	return t.of(key)
}
