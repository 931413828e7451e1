package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/worker"
)

// work is what the worker has to report.
type work struct {
	// Requests counts calls to endpoints by class, those that were refused among them.
	Requests [classes]int
	// Transitions counts the breakers' by class and state: "500 open".
	Transitions map[string]int
	// Deferred counts by class and reason, Outcomes by name.
	Deferred, Outcomes map[string]int
	// Goroutines before the worker ran, at most, and after it had stopped; RSS is the most memory that was resident, in bytes.
	GoroutinesBefore, GoroutinesPeak, GoroutinesAfter int
	RSS                                               int64
}

// workers is the one worker and what belongs to it.
type workers struct {
	backend *backend
	sender  *webhook.Sender
	stop    context.CancelFunc
	ran     chan error
	monitor *monitor
	before  int
	ended   func() error // ends the profile
}

func startWorker(ctx context.Context, p plan) (part, any, error) {
	w := &workers{ran: make(chan error, 1), monitor: newMonitor(p), before: runtime.NumGoroutine(), ended: func() error { return nil }}
	endpoints, err := p.endpoints()
	if err != nil {
		return nil, nil, err
	}
	if w.backend, err = openBackend(ctx, p); err != nil {
		return nil, nil, err
	}
	registry := worker.NewRegistry()
	if w.sender, err = webhook.NewSender(webhook.Config{Endpoints: endpoints, Guard: endpoints.guard, Observe: w.monitor.attempt}); err != nil {
		return nil, nil, errors.Join(err, w.backend.close())
	}
	w.sender.Register(registry)
	run, err := worker.New(worker.Config{
		Broker: w.backend.broker, Registry: registry, Store: w.backend.claims, DeadLetters: w.backend.letters,
		Queues:      []worker.QueueConfig{{Name: queueName}},
		Concurrency: slots,
		Destinations: pools.DestinationsConfig{
			Default:  webhook.Endpoint{}.DestinationConfig(),
			SlowLane: pools.SlowLaneConfig{Slots: slots / 4}, // as worker run has it by default
		},
		StopGrace: new(2 * time.Second),
		Observers: []worker.Observer{w.monitor},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return nil, nil, errors.Join(err, w.backend.close())
	}
	if err := w.profile(p); err != nil {
		return nil, nil, errors.Join(err, w.backend.close())
	}
	ctx, w.stop = context.WithCancel(ctx)
	go func() { w.ran <- run.Run(ctx) }()
	w.monitor.start()
	return w, struct{}{}, nil
}

// endpoints are those of the plan, and the guard that lets them be on this machine.
func (p plan) endpoints() (*guarded, error) {
	guard, err := webhook.NewGuard(webhook.GuardConfig{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		return nil, err
	}
	list, err := p.webhooks()
	if err != nil {
		return nil, err
	}
	static, err := webhook.NewStatic(guard, list...)
	return &guarded{Static: static, guard: guard}, err
}

type guarded struct {
	*webhook.Static
	guard *webhook.Guard
}

// profile writes the CPU profile that was asked for.
func (w *workers) profile(p plan) error {
	if p.Profile == "" {
		return nil
	}
	file, err := os.Create(p.Profile)
	if err != nil {
		return err
	}
	w.ended = func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}
	return pprof.StartCPUProfile(file)
}

func (w *workers) status() any { return struct{}{} }

// end stops the worker and then counts what is left of it.
func (w *workers) end() (any, error) {
	w.stop()
	err := <-w.ran
	w.sender.Close()
	w.monitor.end()
	err = errors.Join(err, w.ended(), w.backend.close())
	report := w.monitor.report()
	report.GoroutinesBefore, report.GoroutinesAfter = w.before, settled(w.before)
	return report, err
}

// settled counts goroutines once those of connections that were just closed have ended: it gives them as long as they may take.
func settled(before int) int {
	for range 50 {
		if n := runtime.NumGoroutine(); n <= before {
			return n
		}
		time.Sleep(100 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}
