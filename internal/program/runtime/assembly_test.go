package runtime

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/limiter"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

func load(t *testing.T, flags map[string]string, env ...string) *config.Config {
	t.Helper()
	cfg, _, err := config.Load(config.Sources{Flags: flags, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A zero of the configuration means none to the packages, too, and is not their default.
func TestZerosMeanNone(t *testing.T) {
	t.Parallel()
	cfg := load(t, map[string]string{
		"stop.grace": "0s", "stop.hard": "0s", "hold.after": "0s", "hold.backlog": "0", "destinations.default.budget.floor": "0",
	})
	d := destinationsOf(cfg).Default
	if *d.Budget.Floor != 0 || *d.Concurrency != 0 || *d.Rate.Rate != 0 || *d.Breaker.SlowAfter != 0 {
		t.Errorf("destination %+v", d)
	}
	if _, err := pools.NewDestinations(destinationsOf(cfg)); err != nil {
		t.Error(err)
	}
}

func TestQueuesOf(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f.yaml")
	text := "broker: sqs\nstore: sqlite\nsqlite: {single_host: true}\nqueues: [{name: a.fifo, on_dead: block, weight: 2}, {name: b.fifo, on_dead: continue}, {name: c, default_kind: k, priority: 1}]"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	want := []worker.QueueConfig{{Name: "a.fifo", Weight: 2, BlockOnDead: true}, {Name: "b.fifo", Weight: 1}, {Name: "c", Weight: 1, Priority: 1, DefaultKind: "k"}}
	if diff := cmp.Diff(want, queuesOf(cfg)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDestinations(t *testing.T) {
	t.Parallel()
	cfg := load(t, map[string]string{"destinations.default.concurrency": "7", "destinations.default.budget.form": "grpc"},
		"CAISSON_DESTINATIONS_OVERRIDES_SHOP_RATE=2.5", "CAISSON_DESTINATIONS_OVERRIDES_SHOP_BURST=3",
		"CAISSON_DESTINATIONS_OVERRIDES_SHOP_BREAKER_FAILURE_PERCENT=25",
		"CAISSON_DESTINATIONS_OVERRIDES_SHOP_BREAKER_RAMP=2m", "CAISSON_DESTINATIONS_OVERRIDES_SHOP_BREAKER_OPEN_GROWTH=1.5",
		"CAISSON_DESTINATIONS_OVERRIDES_SHOP_BREAKER_OPEN=20m")
	want := pools.DestinationConfig{
		Breaker: breaker.Config{
			FailurePercent: new(25), SlowPercent: new(50), SlowAfter: new(time.Duration(0)), Window: 30 * time.Second, HungAfter: new(4 * time.Second), OpenFor: 20 * time.Minute,
			OpenGrowth: 1.5, OpenMax: 20 * time.Minute, Probes: 5, ProbesToClose: 4, Ramp: new(2 * time.Minute),
		},
		Concurrency: new(7),
		Adaptive:    adaptive.LimitConfig{Min: new(0)},
		Timeout:     adaptive.TimeoutConfig{Floor: new(time.Duration(0))},
		Lane:        new(false),
		Shared:      new(false),
		Rate:        limiter.Config{Rate: new(2.5), Burst: 3},
		Budget:      budget.Config{Form: budget.FormGRPC, Floor: new(3.0)},
	}
	if diff := cmp.Diff(want, destinationsOf(cfg).ByName["shop"]); diff != "" {
		t.Errorf("override (-want +got):\n%s", diff)
	}
}

func TestSlowLane(t *testing.T) {
	t.Parallel()
	for percent, want := range map[string]int{"0": 0, "1": 1, "25": 8, "100": 30} {
		cfg := load(t, map[string]string{
			"concurrency": "30", "destinations.slow_lane.share_percent": percent, "destinations.slow_lane.over": "2s",
			"destinations.overrides.hooks.in_slow_lane": "true",
		})
		d := destinationsOf(cfg)
		if d.SlowLane != (pools.SlowLaneConfig{Slots: want, Over: 2 * time.Second}) {
			t.Errorf("%s %%: %+v, want %d slots", percent, d.SlowLane, want)
		}
		if *d.Default.Lane || !*d.ByName["hooks"].Lane {
			t.Errorf("default %t, hooks %t", *d.Default.Lane, *d.ByName["hooks"].Lane)
		}
	}
}

// What an operator sets for endpoints becomes the limits of their destinations.
func TestEndpointLimits(t *testing.T) {
	t.Parallel()
	cfg := load(t, map[string]string{
		"webhook.default.concurrency": "7", "webhook.breaker.min_calls": "9", "webhook.breaker.open": "1m", "webhook.default.backoff": "fixed(1s, 2s)",
		"webhook.endpoints.shop.url": "https://example.com/a", "webhook.endpoints.shop.secrets": signature.NewSecret().Reveal(),
		"webhook.endpoints.shop.rate": "2.5", "webhook.endpoints.shop.burst": "4",
		"webhook.endpoints.slow.url": "https://example.com/b", "webhook.endpoints.slow.secrets": signature.NewSecret().Reveal(),
		"webhook.endpoints.slow.concurrency": "1",
	})
	got := map[string]pools.DestinationConfig{}
	if err := addEndpoints(got, cfg.Webhook); err != nil {
		t.Fatal(err)
	}
	breaker := breaker.Config{
		FailurePercent: new(80), SlowPercent: new(80), SlowAfter: new(time.Duration(0)), Window: 10 * time.Minute, MinimumCalls: 9, HungAfter: new(4 * time.Second), OpenFor: time.Minute, OpenGrowth: 1, Ramp: new(time.Duration(0)),
		OpenMax: 15 * time.Minute, Probes: 5, ProbesToClose: 4,
	}
	want := map[string]pools.DestinationConfig{
		"shop": {Breaker: breaker, Lane: new(true), Concurrency: new(7), Rate: limiter.Config{Rate: new(2.5), Burst: 4}},
		"slow": {Breaker: breaker, Lane: new(true), Concurrency: new(1), Rate: limiter.Config{Rate: new(0.0), Burst: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("destinations (-want +got):\n%s", diff)
	}
}

func TestNoWaitingRoom(t *testing.T) {
	t.Parallel()
	cfg := load(t, nil, "CAISSON_KINDS_A_BULKHEAD_SIZE=2", "CAISSON_KINDS_A_BULKHEAD_WAITING=0", "CAISSON_KINDS_B_BULKHEAD_SIZE=2",
		"CAISSON_KINDS_C_BULKHEAD_WAITING=1")
	for name, want := range map[string]int{"a": 0, "b": 5, "c": 1, "d": 5} {
		got := worker.KindConfig{Waiting: new(5)}
		overrideKind(&got, cfg.Kinds[name])
		if *got.Waiting != want {
			t.Errorf("kind %s: waiting %d, want %d", name, *got.Waiting, want)
		}
	}
}

func TestVariablesFindRegisteredKinds(t *testing.T) {
	t.Parallel()
	registered := []string{"email.send", "a.b", "a-b", "known"}
	fromFlag := load(t, map[string]string{"kinds.email_send.timeout": "1s"})
	fromEnv := load(t, nil, "CAISSON_KINDS_EMAIL_SEND_TIMEOUT=1s", "CAISSON_KINDS_A_B_TIMEOUT=1s", "CAISSON_KINDS_OTHER_TIMEOUT=1s")
	for _, tt := range []struct {
		cfg        *config.Config
		name, want string
	}{
		{fromEnv, "email_send", "email.send"},
		{fromEnv, "a_b", "a_b"}, // it could be either
		{fromEnv, "other", "other"},
		{fromEnv, "known", "known"},
		{fromFlag, "email_send", "email_send"}, // somebody spelt it
	} {
		if got := meant(tt.name, registered, tt.cfg); got != tt.want {
			t.Errorf("%s means %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestOverrideKind(t *testing.T) {
	t.Parallel()
	registered := worker.KindConfig{Timeout: time.Minute, MaxAttempts: 9, Bulkhead: 2, Waiting: new(5), Destination: "shop"}
	got := registered
	overrideKind(&got, config.Kind{})
	if diff := cmp.Diff(registered, got, cmp.AllowUnexported(schedule.Backoff{}, schedule.Jitter{})); diff != "" {
		t.Errorf("an empty section changed (-want +got):\n%s", diff)
	}
	overrideKind(&got, config.Kind{
		Timeout: time.Second, TimeoutFloor: time.Millisecond, MaxAttempts: 1, Backoff: schedule.WebhookBackoff, Bulkhead: config.Bulkhead{Size: 3, Waiting: new(0), AdaptiveMin: 2}, Idempotency: "none", MaxAge: time.Hour,
		Destination: "mail",
	})
	want := worker.KindConfig{
		Timeout: time.Second, AdaptiveTimeout: adaptive.TimeoutConfig{Floor: new(time.Millisecond)}, MaxAttempts: 1, Backoff: schedule.WebhookBackoff, Bulkhead: 3, Adaptive: adaptive.LimitConfig{Min: new(2)}, Waiting: new(0), Keyed: new(false), MaxAge: time.Hour,
		Destination: "mail",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(schedule.Backoff{}, schedule.Jitter{})); diff != "" {
		t.Errorf("override (-want +got):\n%s", diff)
	}
}
