package faultlab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// The kinds of the load.
const (
	KindName    = "lab.job"
	TxKindName  = "lab.tx" // its handler writes a row in its claim's transaction
	MaxAttempts = 25       // far more than the faults that can hit one job
)

const (
	prefix   = "job"
	txPrefix = "tx"
)

// keyOf returns the key of a job of the load.
func keyOf(id string) idempotency.Key {
	if strings.HasPrefix(id, txPrefix) {
		return idempotency.Key{Scope: TxKindName, Value: id}
	}
	return idempotency.Key{Scope: KindName, Value: id}
}

// Job is the payload of the load.
type Job struct {
	N      int `json:"n"`
	Fails  int `json:"fails"`  // attempts that fail before one succeeds
	Millis int `json:"millis"` // how long an attempt takes
}

// jobs makes n keyed jobs of which a third fails once or twice first.
func jobs(prefix string, n int, length func(i int) time.Duration) []worker.NewJob {
	batch := make([]worker.NewJob, n)
	for i := range batch {
		job := Job{N: i, Millis: int(length(i).Milliseconds())}
		if i%3 == 0 {
			job.Fails = 1 + i%2
		}
		batch[i] = worker.NewJob{Kind: KindName, ID: fmt.Sprintf("%s-%05d", prefix, i), Payload: job}
	}
	return batch
}

// transactional makes every second job of batch one that writes a row.
func transactional(batch []worker.NewJob) {
	for i := range batch {
		if i%2 == 1 {
			batch[i].Kind, batch[i].ID = TxKindName, fmt.Sprintf("%s-%05d", txPrefix, i)
		}
	}
}

// spread gives batch destinations, in turn.
func spread(batch []worker.NewJob, groups int) []worker.NewJob {
	for i := range batch {
		if groups > 0 {
			batch[i].Destination = fmt.Sprintf("group-%d", i%groups)
		}
	}
	return batch
}

func ids(batch []worker.NewJob) []string {
	list := make([]string, len(batch))
	for i, job := range batch {
		list[i] = job.ID
	}
	return list
}

// registry returns the kinds with handlers that write to book, and the transactional one if it has an effect.
func registry(book *Book, effect func(context.Context) error) (*worker.Registry, error) {
	backoff, err := schedule.Constant(200*time.Millisecond, schedule.JitterFull)
	if err != nil {
		return nil, err
	}
	limits := worker.KindConfig{MaxAttempts: MaxAttempts, Backoff: backoff, Timeout: 20 * time.Second}
	r := worker.NewRegistry()
	worker.Handle(r, worker.Kind[Job]{Name: KindName, Config: limits}, func(ctx context.Context, job Job) error {
		return handle(ctx, book, job, func(context.Context) error { return nil })
	})
	if effect != nil {
		worker.Handle(r, worker.Kind[Job]{Name: TxKindName, Config: limits}, func(ctx context.Context, job Job) error {
			return handle(ctx, book, job, effect)
		})
	}
	return r, nil
}

func handle(ctx context.Context, book *Book, job Job, do func(context.Context) error) error {
	j := worker.JobFrom(ctx)
	r := Run{Key: j.Key, Run: j.Run, Attempt: j.Attempt, Token: j.Token, PID: os.Getpid(), Start: time.Now()}
	if err := book.write(r); err != nil {
		return err
	}
	failed := do(ctx)
	select {
	case <-time.After(time.Duration(job.Millis) * time.Millisecond):
	case <-ctx.Done():
	}
	r.End, r.OK = time.Now(), ctx.Err() == nil && j.Attempt > job.Fails && failed == nil
	err := book.write(r)
	book.ended.Add(1)
	if err != nil {
		return err
	}
	if !r.OK {
		return errors.Join(failed, fmt.Errorf("attempt %d of job %d fails, perhaps as told", j.Attempt, job.N))
	}
	return nil
}

// feeder enqueues as a careful producer does: what was not confirmed is enqueued again under the same id.
type feeder struct {
	client *worker.Client
	queue  string
}

func newFeeder(b queue.Broker, name string) (*feeder, error) {
	client, err := worker.NewClient(worker.ClientConfig{Broker: b, DefaultQueue: name})
	if err != nil {
		return nil, err
	}
	return &feeder{client: client, queue: name}, nil
}

// feed returns once all of batch is confirmed, or ctx is done.
func (f *feeder) feed(ctx context.Context, batch []worker.NewJob) error {
	for len(batch) > 0 {
		left, err := f.try(ctx, batch)
		if err == nil {
			return nil
		}
		batch = left
		select {
		case <-time.After(50 * time.Millisecond): // a broker that is away should not be hammered
		case <-ctx.Done():
			return fmt.Errorf("%d jobs are not enqueued: %w", len(batch), errors.Join(ctx.Err(), err))
		}
	}
	return nil
}

// try enqueues batch once, and returns what has to be enqueued again and one reason.
func (f *feeder) try(ctx context.Context, batch []worker.NewJob) (left []worker.NewJob, why error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for part := range slices.Chunk(batch, 500) {
		for i, r := range f.client.EnqueueMany(ctx, part) {
			if r.Err != nil {
				left, why = append(left, part[i]), r.Err
			}
		}
	}
	return left, why
}

// pending tells which of the jobs have not ended. It forgets those that have.
type pending struct {
	stack *Stack
	ids   []string
}

// left returns all that have not ended.
func (p *pending) left(ctx context.Context) ([]string, error) {
	var open []string
	for i, id := range p.ids {
		ended, err := p.ended(ctx, id)
		if err != nil {
			p.ids = append(open, p.ids[i:]...)
			return p.ids, err
		}
		if !ended {
			open = append(open, id)
		}
	}
	p.ids = open
	return open, nil
}

// none tells whether all have ended. It asks no further than it must, so that waiting costs little.
func (p *pending) none(ctx context.Context) bool {
	for i, id := range p.ids {
		if ended, err := p.ended(ctx, id); err != nil || !ended {
			p.ids = p.ids[i:]
			return false
		}
	}
	p.ids = nil
	return true
}

func (p *pending) ended(ctx context.Context, id string) (bool, error) {
	record, err := p.stack.Claims.Get(ctx, keyOf(id))
	if errors.Is(err, idempotency.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claim store: %w", err)
	}
	return record.State == idempotency.StatusCompleted || record.Closed, nil
}

// EnqueueSlow adds one job to the load whose handler takes d, for faults that need a message to be held. The check does not ask after it.
func EnqueueSlow(ctx context.Context, b queue.Broker, name string, d time.Duration) error {
	f, err := newFeeder(b, name)
	if err != nil {
		return err
	}
	return f.feed(ctx, jobs("slow", 1, func(int) time.Duration { return d }))
}
