package runtime

import (
	"context"
	"crypto/rand"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"time"

	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/worker"
)

const (
	// reportTimeout bounds one report. The worker never waits for one.
	reportTimeout = 5 * time.Second
	// removeTimeout bounds taking the report away at the stop, which does wait.
	removeTimeout = time.Second
)

// reporter writes a worker's state to the status store every two seconds, from its own goroutine. A store that is away costs no more than a log line.
type reporter struct {
	statuses fleet.StatusStore
	worker   *worker.Worker
	self     fleet.Report // what never changes
	logger   *slog.Logger
	away     bool      // the last report failed
	readAt   time.Time // when the reports of others were last read
}

// startReports reports until the function that it returns is called, which removes the report: a worker that has stopped is not listed.
// Without a status store it does nothing.
func startReports(ctx context.Context, statuses fleet.StatusStore, broker string, w *worker.Worker, logger *slog.Logger) (stop func()) {
	if statuses == nil {
		return func() {}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := &reporter{statuses: statuses, worker: w, logger: logger, self: fleet.Report{
		ID: rand.Text(), Host: host, PID: os.Getpid(), Version: cli.BuildOf().Version, Broker: broker, Started: time.Now(),
	}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a worker that finishes its jobs is still there
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.run(ctx)
	}()
	return func() {
		cancel()
		<-done
		r.remove(ctx)
	}
}

func (r *reporter) run(ctx context.Context) {
	for {
		uses := r.sharedInUse(time.Now())
		r.publish(ctx, uses)
		r.share(ctx, uses)
		select {
		case <-ctx.Done():
			return
		case <-time.After(fleet.Every - fleet.Every/20 + mathrand.N(fleet.Every/10)): // workers that started together do not stay together
		}
	}
}

func (r *reporter) publish(ctx context.Context, uses []string) {
	within, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	report := reportOf(r.self, r.worker.Snapshot(), time.Now())
	report.Shared = uses
	err := r.statuses.Publish(within, report)
	switch {
	case ctx.Err() != nil:
	case err != nil && !r.away:
		r.away = true
		r.logger.Warn("tools do not see this worker, its breakers and its pools for now; jobs go on", "error", err)
	case err == nil && r.away:
		r.away = false
		r.logger.Info("tools see this worker again")
	}
}

func (r *reporter) remove(ctx context.Context) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	if err := r.statuses.Remove(within, r.self.ID); err != nil {
		r.logger.Debug("this worker's report could not be taken away; it is ignored when it is older than the limit", "limit", fleet.Live, "error", err)
	}
}

// reportOf completes self with what s says at now.
func reportOf(self fleet.Report, s worker.Snapshot, now time.Time) fleet.Report {
	r := self
	r.Owner, r.Sent, r.NotReady, r.InFlight, r.Abandoned = s.Owner, now, s.NotReady, s.InFlight, s.Abandoned
	for _, q := range s.Queues {
		r.Queues = append(r.Queues, fleet.Queue(q))
	}
	for _, k := range s.Kinds {
		r.Kinds = append(r.Kinds, fleet.Kind{
			Name: k.Name, MaxAttempts: k.MaxAttempts, Keyed: k.Keyed, Destination: k.Destination, Pool: k.Pool,
		})
	}
	for _, p := range s.Pools {
		r.Pools = append(r.Pools, fleet.Pool{Name: p.Kind, Size: p.Size, InUse: p.InUse, Waiting: p.Waiting})
	}
	for _, d := range s.Destinations {
		r.Destinations = append(r.Destinations, destinationReport(d))
	}
	return r
}

func destinationReport(d pools.DestinationSnapshot) fleet.Destination {
	out := fleet.Destination{Name: d.Destination, State: d.State.String(), Since: d.OpenSince, Next: d.NextTry, Waiting: d.Waiting}
	if d.Override != breaker.OverrideNone {
		out.Override = d.Override.String()
	}
	if !d.Verdict.OK() {
		out.Reason = d.Verdict.Reason.String()
	}
	return out
}
