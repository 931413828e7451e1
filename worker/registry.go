package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools/adaptive"
)

// Handler runs one attempt of a job.
type Handler func(ctx context.Context, job *Job) error

// Registry holds the kinds that a program can run. Fill it before [New]; it is safe for concurrent use.
type Registry struct {
	mu         sync.Mutex
	regs       []registration
	middleware []func(Handler) Handler
	configured map[string][]func(*KindConfig)
}

type registration struct {
	name    string
	aliases []string
	version int
	config  KindConfig
	decode  func(*Job) error
	handler Handler
	mw      []func(Handler) Handler
	missing bool
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{} }

// Use wraps every handler in middleware, which sees the job after all guards, once per attempt. The first added is outermost; all are
// outside the middleware given to [Handle].
func (r *Registry) Use(mw ...func(next Handler) Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.middleware = append(r.middleware, mw...)
}

// Configure changes the limits of kind name after its registration, as the binary's configuration does. Overriding a kind that nobody
// registers is an error of [New].
func (r *Registry) Configure(name string, change func(*KindConfig)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.configured == nil {
		r.configured = make(map[string][]func(*KindConfig))
	}
	r.configured[name] = append(r.configured[name], change)
}

// Kinds returns the registered names, sorted.
func (r *Registry) Kinds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, reg := range r.regs {
		if !slices.Contains(names, reg.name) {
			names = append(names, reg.name)
		}
	}
	sort.Strings(names)
	return names
}

func (r *Registry) add(reg registration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.regs = append(r.regs, reg)
}

// kinds is the frozen form of a registry that a worker reads.
type kinds struct {
	// byName holds, for each name and alias, the registrations by version; version 0 takes the rest.
	byName map[string]map[int]*kind
	all    []*kind
}

// kind is one registration with its limits settled.
type kind struct {
	name    string
	version int
	config  KindConfig
	keyed   bool
	decode  func(*Job) error
	handler Handler
	pool    *pool
	timeout *adaptive.Timeout // nil if it does not adapt
}

// currentTimeout is how long an attempt may run that starts now.
func (k *kind) currentTimeout() time.Duration {
	if k.timeout == nil {
		return k.config.Timeout
	}
	return k.timeout.Timeout()
}

func (k *kinds) find(name string, version int) *kind {
	versions := k.byName[name]
	if found, ok := versions[version]; ok {
		return found
	}
	return versions[0]
}

// freeze checks every registration and returns them in the form that the worker uses. All faults are reported at once.
func (r *Registry) freeze() (*kinds, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &kinds{byName: make(map[string]map[int]*kind)}
	var errs []error
	if len(r.regs) == 0 {
		errs = append(errs, errors.New("no kind is registered: call worker.Handle before worker.New"))
	}
	known := make(map[string]bool)
	for _, reg := range r.regs {
		known[reg.name] = true
		k, err := r.build(reg)
		if err != nil {
			errs = append(errs, fmt.Errorf("kind %q: %w", reg.name, err))
			continue
		}
		out.all = append(out.all, k)
		for _, name := range append([]string{reg.name}, reg.aliases...) {
			if err := out.place(name, k); err != nil {
				errs = append(errs, fmt.Errorf("kind %q: %w", reg.name, err))
			}
		}
	}
	for name := range r.configured {
		if !known[name] {
			errs = append(errs, fmt.Errorf("kind %q: configured but not registered; registered are %q", name, sortedKeys(known)))
		}
	}
	return out, errors.Join(errs...)
}

func (r *Registry) build(reg registration) (*kind, error) {
	config := reg.config
	for _, change := range r.configured[reg.name] {
		change(&config)
	}
	config = config.withDefaults()
	errs := []error{config.validate()}
	for _, name := range append([]string{reg.name}, reg.aliases...) {
		if err := checkKindName(name); err != nil {
			errs = append(errs, err)
		}
	}
	if reg.missing {
		errs = append(errs, errors.New("handler is nil"))
	}
	if reg.version < 0 {
		errs = append(errs, fmt.Errorf("version %d: must not be negative", reg.version))
	}
	handler := reg.handler
	for _, mw := range slices.Backward(append(slices.Clone(r.middleware), reg.mw...)) {
		handler = mw(handler)
	}
	k := &kind{name: reg.name, version: reg.version, config: config, decode: reg.decode, handler: handler}
	if config.AdaptiveTimeout.Adapts() {
		timeout := config.AdaptiveTimeout
		timeout.Ceiling = config.Timeout
		var err error
		if k.timeout, err = adaptive.NewTimeout(timeout); err != nil {
			errs = append(errs, err)
		}
	}
	return k, errors.Join(errs...)
}

func (k *kinds) place(name string, found *kind) error {
	if k.byName[name] == nil {
		k.byName[name] = make(map[int]*kind)
	}
	if other, taken := k.byName[name][found.version]; taken {
		return fmt.Errorf("name %q, version %d is already taken by kind %q", name, found.version, other.name)
	}
	k.byName[name][found.version] = found
	return nil
}

func checkKindName(name string) error {
	if name == "" || len(name) > 200 {
		return fmt.Errorf("name %q: must have 1 to 200 characters", name)
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("name %q: only printable ASCII without spaces is allowed", name)
		}
	}
	return nil
}

func sortedKeys(m map[string]bool) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
