package faultlab

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

func (r Rig) withDefaults() Rig {
	soak := os.Getenv("SOAK") != ""
	if r.Jobs == 0 {
		if r.Jobs = 200; soak {
			r.Jobs = 5000
		}
	}
	if r.Lease == 0 {
		r.Lease = 3 * time.Second
	}
	if r.Recover == 0 {
		r.Recover = 10 * time.Second
	}
	if r.Rest == 0 {
		r.Rest = 15 * time.Second
	}
	if r.Limit == 0 {
		if r.Limit = 5 * time.Minute; soak {
			r.Limit = 10 * time.Minute
		}
	}
	if r.QueueName == nil {
		r.QueueName = func(name string) string { return name }
	}
	return r
}

// Matrix injects each fault in turn, each into a load of its own, and prints a row for each.
func Matrix(t *testing.T, rig Rig, faults []Fault) {
	t.Helper()
	var rows []Row
	t.Cleanup(func() { t.Log("\n" + table(rows)) })
	for _, f := range faults {
		t.Run(f.Name, func(t *testing.T) { rows = append(rows, Trial(t, rig, f)) })
	}
}

// Trial injects one fault into a load of its own, and prints a row. Trials may run in parallel if what they break is their own.
func Trial(t *testing.T, rig Rig, f Fault) Row {
	t.Helper()
	rig = rig.withDefaults()
	row := try(t, rig, f)
	t.Log("\n" + table([]Row{row}))
	if limit := cmp.Or(f.Recover, rig.Recover); row.Recovered < 0 || row.Recovered > limit {
		t.Errorf("no handler ran within %s of the end of the fault (%s)", limit, row.Recovered)
	}
	return row
}

// trial is one fault at work.
type trial struct {
	rig      Rig
	fault    Fault
	stack    *Stack
	close    func() // the stack
	queue    string
	book     *Book
	feeder   *feeder
	watch    *watcher
	row      Row
	jobs     []worker.NewJob
	restored time.Time // when the fault was over
	mark     mark
}

func try(t testing.TB, rig Rig, f Fault) (row Row) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Limit)
	defer cancel()
	marked(ctx, func(ctx context.Context, m mark) { row = tryMarked(ctx, t, rig, f, m) })
	return row
}

func tryMarked(ctx context.Context, t testing.TB, rig Rig, f Fault, m mark) Row {
	t.Helper()
	start, before := time.Now(), m.all()
	dir := t.TempDir()
	x := open(ctx, t, rig, f, dir)
	x.mark = m
	stop := x.startWorkers(t, dir) //nolint:contextcheck // its workers outlive what ends a trial's load
	x.warmUp(ctx, t)
	x.strike(ctx, t)
	x.finish(ctx, t)
	x.compare(ctx, t)
	stop()
	if rig.Drop != nil {
		rig.Drop(t, x.queue)
	}
	x.check(t, dir) //nolint:contextcheck // judged after the trial's context has ended
	x.close()
	if after, ok := within(rig.Rest, before, m.all); !ok {
		t.Errorf("%d goroutines before the broker was opened, %d after it was closed:\n%s", before, after, m)
	}
	x.row.Took = time.Since(start)
	return x.row
}

func open(ctx context.Context, t testing.TB, rig Rig, f Fault, dir string) *trial {
	t.Helper()
	stack, err := rig.stack(ctx, t, dir)
	if err != nil {
		t.Fatal(err)
	}
	x := &trial{rig: rig, fault: f, stack: stack, watch: &watcher{}, row: Row{Fault: f.Name, Jobs: rig.Jobs, Counted: rig.Connections != nil}}
	x.close = sync.OnceFunc(func() {
		if err := stack.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	t.Cleanup(x.close)
	x.queue = rig.QueueName(fmt.Sprintf("faults-%08x", rand.Uint32()))
	if err := stack.Broker.CreateQueue(ctx, x.queue); err != nil {
		t.Fatal(err)
	}
	if x.feeder, err = newFeeder(stack.Broker, x.queue); err != nil {
		t.Fatal(err)
	}
	return x
}

func (r Rig) stack(ctx context.Context, t testing.TB, dir string) (*Stack, error) {
	t.Helper()
	if r.Stores == nil {
		return Beside(func(context.Context, string) (queue.Broker, error) { return r.Open(t), nil })(ctx, dir, "")
	}
	broker, stores := r.Open(t), r.Stores(t)
	return &Stack{Broker: broker, Claims: stores.Claims, Dead: stores.Dead, closers: []func() error{broker.Close, stores.Close}}, nil
}

// startWorkers runs the worker until the returned function is called.
func (x *trial) startWorkers(t testing.TB, dir string) (stop func()) {
	t.Helper()
	book, err := OpenBook(dir)
	if err != nil {
		t.Fatal(err)
	}
	x.book = book
	log, err := os.CreateTemp(dir, "worker-*.log")
	if err != nil {
		t.Fatal(err)
	}
	w, err := workerSetup{stack: x.stack, queue: x.queue, book: book, lease: x.rig.Lease, concurrency: 20, observer: x.watch, log: log}.worker()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("worker: %v", err)
		}
		if t.Failed() {
			t.Logf("the worker's log ends with:\n%s", tail(log.Name()))
		}
		_ = book.Close() // each line was written at once
		_ = log.Close()
	})
	t.Cleanup(stop)
	return stop
}

func tail(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
