package worker_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

func nop(context.Context, []byte) error { return nil }

// Everything that is wrong with a registration or configuration is refused before the first job, all at once, naming field, value and way out.
func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	broker, err := embedded.Open(t.Context(), embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	type kind = worker.Kind[[]byte]
	limits := func(c worker.KindConfig) kind { return kind{Name: "k", Config: c} }
	for name, c := range map[string]struct {
		kinds    []kind
		override string
		cfg      worker.Config
		want     []string
	}{
		"nothing registered":     {want: []string{"no kind is registered"}},
		"empty name":             {kinds: []kind{{}}, want: []string{`name ""`}},
		"name with a space":      {kinds: []kind{{Name: "a b"}}, want: []string{`name "a b"`, "printable ASCII"}},
		"bad alias":              {kinds: []kind{{Name: "a", Aliases: []string{"ü"}}}, want: []string{"printable ASCII"}},
		"two handlers":           {kinds: []kind{{Name: "a"}, {Name: "a"}}, want: []string{`kind "a"`, "already taken"}},
		"alias of another":       {kinds: []kind{{Name: "a"}, {Name: "b", Aliases: []string{"a"}}}, want: []string{"already taken by kind \"a\""}},
		"negative version":       {kinds: []kind{{Name: "a", Version: -1}}, want: []string{"version -1"}},
		"several faults at once": {kinds: []kind{limits(worker.KindConfig{Timeout: -1, MaxAttempts: -2, Bulkhead: -3})}, want: []string{"timeout -1ns", "max attempts -2", "bulkhead -3"}},
		"bulkheads above the slots": {
			kinds: []kind{{Name: "a", Config: worker.KindConfig{Bulkhead: 8}}, {Name: "b", Config: worker.KindConfig{Bulkhead: 13}}},
			want:  []string{"sum up to 21", "20 slots"},
		},
		"no slot left": {
			kinds: []kind{{Name: "a", Config: worker.KindConfig{Bulkhead: 20}}, {Name: "b"}}, want: []string{"leave none for the 1 kinds without one"},
		},
		"keyed without a store":      {kinds: []kind{limits(worker.KindConfig{Keyed: new(true)})}, want: []string{`kind "k"`, "no store"}},
		"override of a stranger":     {kinds: []kind{{Name: "a"}}, override: "b", want: []string{`kind "b": configured but not registered`, `["a"]`}},
		"negative concurrency":       {kinds: []kind{{Name: "a"}}, cfg: worker.Config{Concurrency: -1}, want: []string{"concurrency -1"}},
		"lease of a blink":           {kinds: []kind{{Name: "a"}}, cfg: worker.Config{Lease: time.Millisecond}, want: []string{"lease 1ms"}},
		"queue named twice":          {kinds: []kind{{Name: "a"}}, cfg: worker.Config{Queues: []worker.QueueConfig{{Name: "q"}, {Name: "q"}}}, want: []string{`"q" is named twice`}},
		"queue without a slot":       {kinds: []kind{{Name: "a"}}, cfg: worker.Config{Concurrency: 1, Queues: []worker.QueueConfig{{Name: "q"}, {Name: "r"}}}, want: []string{"each of the 2 queues needs a slot"}},
		"default kind of a stranger": {kinds: []kind{{Name: "a"}}, cfg: worker.Config{Queues: []worker.QueueConfig{{Name: "q", DefaultKind: "z"}}}, want: []string{`default kind "z" is not registered`}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := c.cfg
			cfg.Registry = worker.NewRegistry()
			for _, k := range c.kinds {
				worker.Handle(cfg.Registry, k, nop)
			}
			if c.override != "" {
				cfg.Registry.Configure(c.override, func(*worker.KindConfig) {})
			}
			cfg.Broker, cfg.DeadLetters = broker, noStore{}
			_, err := worker.New(cfg)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error lacks %q:\n%v", part, err)
				}
			}
		})
	}
}

func TestNewNeedsBrokerRegistryAndDeadLetters(t *testing.T) {
	t.Parallel()
	_, err := worker.New(worker.Config{})
	for _, part := range []string{"broker: required", "registry: required", "dead letters:"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error lacks %q: %v", part, err)
		}
	}
}

func TestKeyRetentionMustOutliveTheJob(t *testing.T) {
	t.Parallel()
	rig := memoryRig(t)
	registry := worker.NewRegistry()
	worker.Handle(registry, worker.Kind[[]byte]{Name: "k", Config: worker.KindConfig{MaxAge: 72 * time.Hour}}, nop)
	_, err := worker.New(worker.Config{Broker: rig.broker, DeadLetters: rig.dead, Store: rig.claims, Registry: registry})
	if err == nil || !strings.Contains(err.Error(), "max age 72h0m0s is above the key retention 48h0m0s") {
		t.Errorf("got %v", err)
	}
	if err := rig.broker.Close(); err != nil {
		t.Error(err)
	}
}

type noStore struct{ dlq.Store }

func TestNewRefusesWhatTheStoreWouldRefuse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rig := memoryRig(t)
		registry := worker.NewRegistry()
		work(registry, "k", worker.KindConfig{}, fails)
		cfg := worker.Config{Broker: rig.broker, Store: rig.claims, DeadLetters: rig.dead, Registry: registry, Owner: strings.Repeat("x", 201)}
		if _, err := worker.New(cfg); err == nil || !strings.Contains(err.Error(), "owner") {
			t.Errorf("owner of 201 bytes: %v", err)
		}
		cfg.Owner = ""
		cfg.Queues = []worker.QueueConfig{{Name: "a", Weight: math.MaxInt}, {Name: "b", Weight: math.MaxInt}}
		if _, err := worker.New(cfg); err == nil || !strings.Contains(err.Error(), "weight") {
			t.Errorf("weights that overflow: %v", err)
		}
		cfg.Queues = nil
		for want, change := range map[string]func(*worker.Config){
			"stop grace -1s: must not be negative": func(c *worker.Config) { c.StopGrace = new(-time.Second) },
			"stop hard -1s: must not be negative":  func(c *worker.Config) { c.StopHard = new(-time.Second) },
			"hold after -1s: must not be negative": func(c *worker.Config) { c.Hold.After = new(-time.Second) },
			"hold backlog -1: must not be":         func(c *worker.Config) { c.Hold.Backlog = new(-1) },
		} {
			negative := cfg
			change(&negative)
			if _, err := worker.New(negative); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		for _, priority := range []int{-1, 3} {
			cfg.Queues = []worker.QueueConfig{{Name: "a", Priority: priority}}
			if _, err := worker.New(cfg); err == nil || !strings.Contains(err.Error(), "priority") {
				t.Errorf("priority %d: %v", priority, err)
			}
		}
		if err := rig.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}
