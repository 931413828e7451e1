package faultlab

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// brief is how long an attempt of the load takes.
func brief(i int) time.Duration { return time.Duration(5+i%20) * time.Millisecond }

// warmUp works a few jobs, so that everything that is made on first use is there, and counts goroutines and connections.
func (x *trial) warmUp(ctx context.Context, t testing.TB) {
	t.Helper()
	batch := spread(jobs("warm", min(100, x.rig.Jobs/2), brief), x.rig.Groups)
	for i := range batch {
		if job := batch[i].Payload.(Job); job.Fails > 1 {
			job.Fails = 1 // a second retry would show nothing new
			batch[i].Payload = job
		}
	}
	if err := x.feeder.feed(ctx, batch); err != nil {
		t.Fatalf("before the fault: %v", err)
	}
	x.await(ctx, t, batch)
	x.rest(ctx, t)
}

// rest waits until the worker is idle and the counts stand still.
func (x *trial) rest(ctx context.Context, t testing.TB) {
	t.Helper()
	row, since := &x.row, time.Now()
	x.poll(ctx, t, "the worker to come to rest", func() bool {
		goroutines, connections := x.mark.goroutines(), 0
		if x.rig.Connections != nil {
			connections = x.rig.Connections(t)
		}
		if goroutines != row.Goroutines[0] || connections != row.Connections[0] {
			row.Goroutines[0], row.Connections[0], since = goroutines, connections, time.Now()
		}
		return x.watch.quiet() > 500*time.Millisecond && (time.Since(since) > 700*time.Millisecond || x.watch.quiet() > 5*time.Second)
	})
}

// strike enqueues a quarter of the jobs, injects the fault while half of them are enqueued, and then enqueues the last quarter.
func (x *trial) strike(ctx context.Context, t testing.TB) {
	t.Helper()
	n := x.rig.Jobs
	x.jobs = spread(jobs("job", n, brief), x.rig.Groups)
	first, during, last := x.jobs[:n/4], x.jobs[n/4:3*n/4], x.jobs[3*n/4:]
	if err := x.feeder.feed(ctx, first); err != nil {
		t.Fatalf("before the fault: %v", err)
	}
	worked := x.book.Ended()
	x.poll(ctx, t, "the worker to be in the midst of it", func() bool { return x.book.Ended() >= worked+n/8 })

	fed := make(chan error, 1)
	struck := make(chan struct{})
	go func() {
		defer close(fed)
		for part := range slices.Chunk(during, max(1, len(during)/20)) {
			if err := x.feeder.feed(ctx, part); err != nil {
				fed <- err
				return
			}
			select {
			case <-struck: // the rest at once
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	x.fault.Inject(t, x.queue)
	x.restored = time.Now()
	close(struck)
	if err := <-fed; err != nil {
		t.Fatalf("during the fault: %v", err)
	}
	if x.fault.Destroys {
		x.enqueueAgain(ctx, t)
	}
	if err := x.feeder.feed(ctx, last); err != nil {
		t.Fatalf("after the fault: %v", err)
	}
}

func (x *trial) enqueueAgain(ctx context.Context, t testing.TB) {
	t.Helper()
	p := pending{stack: x.stack, ids: ids(x.jobs[:3*x.rig.Jobs/4])}
	open, err := p.left(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var again []worker.NewJob
	for _, job := range x.jobs {
		if slices.Contains(open, job.ID) {
			again = append(again, job)
		}
	}
	if err := x.feeder.feed(ctx, again); err != nil {
		t.Fatalf("after the fault: %v", err)
	}
}

// finish waits until all jobs have ended, and then for what might still come back.
func (x *trial) finish(ctx context.Context, t testing.TB) {
	t.Helper()
	x.await(ctx, t, x.jobs)
	x.poll(ctx, t, "the queue to fall silent", func() bool {
		return x.watch.quiet() > x.rig.Lease+time.Second && idle(ctx, x.stack.Broker, x.queue)
	})
}

// idle tells whether the queue holds nothing that the broker knows of.
func idle(ctx context.Context, b queue.Broker, name string) bool {
	d, err := b.Depth(ctx, name)
	return err == nil && d.Ready.N+d.Delayed.N+d.InFlight.N == 0
}

// await waits until all jobs of batch have ended. Those that never do are left to the check.
func (x *trial) await(ctx context.Context, t testing.TB, batch []worker.NewJob) {
	t.Helper()
	p := pending{stack: x.stack, ids: ids(batch)}
	for !p.none(ctx) {
		select {
		case <-time.After(50 * time.Millisecond): // between looks at the store
		case <-ctx.Done():
			ctx := context.WithoutCancel(ctx)
			open, err := p.left(ctx)
			d, depthErr := x.stack.Broker.Depth(ctx, x.queue)
			t.Errorf("%d jobs have not ended after %s (%.10q, %v); the queue: %+v, %v", len(open), x.rig.Limit, open, err, d, depthErr)
			return
		}
	}
}

func (x *trial) poll(ctx context.Context, t testing.TB, what string, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Errorf("waited for %s for too long", what)
			return
		}
	}
}

// within waits up to limit for count to come down to before, and returns it as it is then.
func within(limit time.Duration, before int, count func() int) (after int, ok bool) {
	for end := time.Now().Add(limit); ; {
		after = count()
		if after <= before+slack {
			return after, true
		}
		if time.Now().After(end) {
			return after, false
		}
		time.Sleep(50 * time.Millisecond) // between looks at what others end
	}
}

// compare counts goroutines and connections again.
func (x *trial) compare(ctx context.Context, t testing.TB) {
	t.Helper()
	row, ok := &x.row, false
	if row.Goroutines[1], ok = within(x.rig.Rest, row.Goroutines[0], x.mark.goroutines); !ok {
		t.Errorf("%d goroutines before the fault, %d after it:\n%s", row.Goroutines[0], row.Goroutines[1], x.mark)
	}
	if x.rig.Connections == nil || ctx.Err() != nil {
		return
	}
	if row.Connections[1], ok = within(x.rig.Rest, row.Connections[0], func() int { return x.rig.Connections(t) }); !ok {
		t.Errorf("%d connections before the fault, %d after it", row.Connections[0], row.Connections[1])
	}
}

// check reads the ledger and fills the row.
func (x *trial) check(t testing.TB, dir string) {
	t.Helper()
	l := &Ledger{Jobs: ids(x.jobs), Groups: x.rig.Groups, Stack: x.stack}
	var err error
	if l.Runs, err = readBooks(dir); err != nil {
		t.Fatal(err)
	}
	lost := map[Rule]int{}
	for i, f := range l.Check(context.WithoutCancel(t.Context())) {
		lost[f.Rule]++
		if i < 20 {
			t.Error(f.Rule, f.Text)
		}
	}
	x.row.Lost, x.row.RanAgain, x.row.Absorbed = lost[Lost], lost[RanAgain]+lost[Overlap], int(x.watch.absorbed.Load())
	x.row.Recovered = -1
	for _, r := range l.Runs {
		if d := r.Start.Sub(x.restored); d > 0 && (x.row.Recovered < 0 || d < x.row.Recovered) {
			x.row.Recovered = d
		}
	}
	if len(l.Runs) < len(x.jobs) {
		t.Error(errors.New("fewer runs than jobs: the ledger is not whole"))
	}
}
