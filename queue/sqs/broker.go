package sqs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

// Broker keeps queues in SQS. It implements [queue.Broker], [inspect.Inspector] and [inspect.Gauges] and is safe for concurrent use.
type Broker struct {
	cfg       Config
	client    *awssqs.Client
	transport http.RoundTripper

	// base bounds the requests that no caller's context bounds. It ends with Close, when what was pending has been sent.
	base    context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup // requests and refreshes
	callers *callers

	closing chan struct{} // closed when Close begins

	mu     sync.Mutex
	closed bool
	queues map[string]*remote
	subs   map[*subscription]struct{}

	throttles atomic.Int64
	failures  atomic.Int64
}

var (
	_ queue.Broker      = (*Broker)(nil)
	_ inspect.Inspector = (*Broker)(nil)
	_ inspect.Gauges    = (*Broker)(nil)
)

func newBroker(cfg Config) *Broker {
	b := &Broker{
		cfg:     cfg,
		closing: make(chan struct{}),
		queues:  make(map[string]*remote),
		subs:    make(map[*subscription]struct{}),
	}
	b.base, b.cancel = context.WithCancel(context.Background())
	b.callers = newCallers(b.base)
	return b
}

// Capabilities implements [queue.Broker].
func (b *Broker) Capabilities(name string) queue.Capabilities { return b.cfg.Capabilities(name) }

// find returns the queue of that name, or [queue.ErrQueueNotFound].
func (b *Broker) find(ctx context.Context, name string) (*remote, error) {
	full, err := physical(b.cfg.Prefix, name)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	closed, q := b.closed, b.queues[name]
	b.mu.Unlock()
	if closed {
		return nil, queue.ErrClosed
	}
	if q != nil && !q.gone.Load() {
		return q, nil
	}
	url, err := b.lookUp(ctx, name, full)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	if q = b.queues[name]; q == nil {
		q = newRemote(b, name, full, url)
		b.queues[name] = q
	}
	b.mu.Unlock()
	q.gone.Store(false)
	return q, q.load(ctx)
}

func (b *Broker) lookUp(ctx context.Context, name, full string) (string, error) {
	in := &awssqs.GetQueueUrlInput{QueueName: aws.String(full)}
	if b.cfg.AccountID != "" {
		in.QueueOwnerAWSAccountId = aws.String(b.cfg.AccountID)
	}
	var out *awssqs.GetQueueUrlOutput
	err := b.repeat(ctx, func(ctx context.Context) (err error) {
		out, err = b.client.GetQueueUrl(ctx, in)
		return err
	})
	if err != nil {
		return "", callError(ctx, err, "GetQueueUrl", name)
	}
	return aws.ToString(out.QueueUrl), nil
}

// callError explains err, which may only be the end of ctx.
func callError(ctx context.Context, err error, action, name string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s on queue %q: %w", action, name, ctx.Err())
	}
	return explain(err, action, name)
}

// note counts what went wrong with a call.
func (b *Broker) note(err error) fault {
	f := faultOf(err)
	b.count(f)
	return f
}

func (b *Broker) count(f fault) {
	switch f {
	case throttled:
		b.throttles.Add(1)
	case unavailable:
		b.failures.Add(1)
	}
}

// background runs work that Close waits for. It reports false, and runs nothing, after Close.
func (b *Broker) background(work func(context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.wg.Go(func() { work(b.base) })
	return true
}

func (b *Broker) isClosing() bool {
	select {
	case <-b.closing:
		return true
	default:
		return false
	}
}

// closeLimit is how long Close waits for answers to what was pending.
const closeLimit = 5 * time.Second

// Close implements [queue.Broker]. It returns when everything that was pending has been sent and answered, or after 6 s at the latest.
func (b *Broker) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	select {
	case <-b.closing:
		b.mu.Unlock()
		return nil
	default:
	}
	close(b.closing)
	subs := make([]*subscription, 0, len(b.subs))
	for s := range b.subs {
		subs = append(subs, s)
	}
	b.mu.Unlock()

	var wg sync.WaitGroup
	for _, s := range subs {
		wg.Go(func() { _ = s.Close() }) // never fails
	}
	wg.Wait()

	b.mu.Lock()
	b.closed = true
	queues := make([]*remote, 0, len(b.queues))
	for _, q := range b.queues {
		queues = append(queues, q)
	}
	b.mu.Unlock()
	var errs []error
	limit := time.AfterFunc(closeLimit, b.cancel)
	for _, q := range queues {
		q.drain()
	}
	b.wg.Wait()
	if !limit.Stop() {
		errs = append(errs, fmt.Errorf("close: some requests were not answered within %v; the messages they settled come again: %w", closeLimit, queue.ErrUnavailable))
	}
	b.cancel()
	b.callers.wait()
	if b.cfg.Transport == nil {
		closeIdle(b.transport)
	}
	return errors.Join(errs...)
}

// list returns the queues that were used so far, by name.
func (b *Broker) list() []*remote {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*remote, 0, len(b.queues))
	for _, q := range b.queues {
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b *remote) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return list
}
