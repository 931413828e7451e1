package jobtest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// A program's own kind: a letter is mailed through a provider, and the handler enqueues a job of its own for the archive.

type Letter struct {
	To string `json:"to"`
}

var (
	Mail    = worker.Kind[Letter]{Name: "mail.send", Config: worker.KindConfig{MaxAttempts: 3, Destination: "postmaster"}}
	Archive = worker.Kind[Letter]{Name: "mail.archive"}
)

// register is what the program's main calls too; reach stands for the provider's client.
func register(r *worker.Registry, reach func(string) error, client func() *worker.Client) {
	worker.Handle(r, Mail, func(ctx context.Context, l Letter) error {
		if l.To == "" {
			return worker.Cancel(fmt.Errorf("letter without an address"))
		}
		if err := reach("postmaster"); err != nil {
			return err
		}
		_, err := client().Enqueue(ctx, Archive.New(l))
		return err
	})
	worker.Handle(r, Archive, func(context.Context, Letter) error { return nil })
}

func newMailBench(t *testing.T) *jobtest.Bench {
	var bench *jobtest.Bench
	registry := worker.NewRegistry()
	register(registry, func(name string) error { return bench.Reach(name) }, func() *worker.Client { return bench.Client() })
	bench = jobtest.New(t, registry, jobtest.Config{})
	return bench
}

func TestMailIsSentAndArchived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bench := newMailBench(t)
		id := bench.Enqueue(Mail.New(Letter{To: "ada@example.com"}))

		if s := bench.Work(); s.Outcome != worker.OutcomeSucceeded {
			t.Fatal(bench.Where(id))
		}
		if e := bench.EnqueuedOne(Archive.Name); string(e.Payload) != `{"to":"ada@example.com"}` {
			t.Errorf("archived %s", e.Payload)
		}
		bench.Drain() // the archive's job too
	})
}

func TestMailSurvivesAnOutageOfTheProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bench := newMailBench(t)
		bench.SetDown("postmaster", true)
		id := bench.Enqueue(Mail.New(Letter{To: "ada@example.com"}))

		if s := bench.Work(); s.Outcome != worker.OutcomeFailed || s.Settlement != worker.SettlementRetry {
			t.Fatalf("an attempt without a provider: %s", bench.Where(id))
		}
		bench.SetDown("postmaster", false)
		bench.Advance(time.Hour) // more than the backoff

		if n := bench.Attempts(id); n != 2 {
			t.Errorf("%d attempts, want 2: %s", n, bench.Where(id))
		}
	})
}

func TestMailWithoutAnAddressIsDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bench := newMailBench(t)
		bench.Enqueue(Mail.New(Letter{}))
		bench.Drain()

		if e := bench.DeadOne(); e.Cause != dlq.CauseRejected || e.Error != "letter without an address" {
			t.Errorf("dead of %s: %s", e.Cause, e.Error)
		}
	})
}

func TestMailIsSentAlthoughItsWorkerDied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bench := newMailBench(t)
		bench.SetDown("postmaster", true)
		id := bench.Enqueue(Mail.New(Letter{To: "ada@example.com"}))
		bench.Work()
		bench.Kill() // as kill -9: what it held stays until the leases run out
		bench.SetDown("postmaster", false)
		bench.Drain()

		if n := bench.Attempts(id); n != 2 || len(bench.Dead()) > 0 {
			t.Errorf("%d attempts, %d dead: %s", n, len(bench.Dead()), bench.Where(id))
		}
	})
}
