package runtime

import (
	"context"
	"errors"
	"log/slog"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/queue/inspect"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/worker"
)

// Check refuses what [Open] would refuse, and a breaker that its destination could not open by hanging, of which Open only warns. It
// touches neither file nor broker, and listens nowhere.
func Check(ctx context.Context, c Config) error {
	a, err := assemble(c.withDefaults())
	if err != nil {
		return err
	}
	faults, err := a.check(ctx)
	if faults != nil {
		faults = cli.Fail(cli.Usage, faults)
	}
	return errors.Join(err, faults, a.close())
}

// Use returns what the kinds of a worker need of its queues. It touches neither file nor broker.
func Use(ctx context.Context, c Config) (use inspect.Use, err error) {
	a, err := assemble(c.withDefaults())
	if err != nil {
		return use, err
	}
	err = a.offline(ctx, func(w *worker.Worker) { use = w.Use() })
	return use, errors.Join(err, a.close())
}

// check returns what keeps the worker from starting, and apart from it what is wrong with its breakers.
func (a *assembly) check(ctx context.Context) (breakers, err error) {
	err = a.offline(ctx, func(w *worker.Worker) { breakers = w.CheckBreakers(webhook.KindDeliver) })
	return breakers, err
}

// offline makes a worker on backends that touch neither file nor broker, shows it to look, and throws it away.
func (a *assembly) offline(ctx context.Context, look func(*worker.Worker)) error {
	set, err := backends.Offline(ctx, a.cfg)
	if err != nil {
		return cli.Fail(cli.Usage, err)
	}
	w, err := a.worker(set, slog.New(slog.DiscardHandler), nil)
	if err == nil {
		look(w)
	}
	return errors.Join(err, set.Close())
}

// close ends idle connections. Call it after the worker's Run has returned.
func (a *assembly) close() error {
	if a != nil && a.webhooks != nil {
		a.webhooks.Close()
	}
	return nil
}
