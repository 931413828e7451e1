package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/webhook/internal/deliver"
	"github.com/caisson-go/caisson/worker"
)

// Ordering takes what goes to endpoints that ask for order. Package webhook/ordering has one.
type Ordering interface {
	// Append puts a published event at the end of the ordered queues of endpoints. It returns how many of them keep it for sure. It may be repeated.
	Append(ctx context.Context, e Event, endpoints []string) (confirmed int, err error)
}

// Events is where published events are kept, so that they can be sent again. Package webhook/journal has two.
type Events interface {
	// PutEvent keeps an event, or says that its id was used for another one ([ErrEventConflict]).
	PutEvent(ctx context.Context, e Event) error
}

// PublisherConfig configures a [Publisher].
type PublisherConfig struct {
	// Client enqueues the deliveries. Required.
	Client *worker.Client
	// Subscribers finds the endpoints. Required.
	Subscribers Subscribers
	// Events keeps what was published. Nil keeps nothing: then nothing can be resent or recovered.
	Events Events
	// Ordering takes the deliveries of endpoints that ask for order. Its Run may run in other programs. Nil leaves such endpoints out, and tells of
	// each event that they do not get ([ErrNoOrdering]).
	Ordering Ordering
	// Queue of the deliveries. Empty means the client's. Those that are ordered go to the ordering's.
	Queue string
	// Batch is how many deliveries are enqueued at once. Zero means 100.
	Batch int
	// OnPublished is told of each event that was published without an error. It may be called from several goroutines at once. May be nil.
	OnPublished func(Published)
}

// Publisher hands events to the endpoints that want them. It is safe for concurrent use, and runs nothing of its own: keep its Subscribers up to
// date, as a mirror's Run does. Where there is a configuration, use app.OpenPublisher of package app in a program that only publishes, and
// [PublisherFrom] in a handler: both come with all that is needed.
type Publisher struct{ cfg PublisherConfig }

// Published tells what became of an event.
type Published struct {
	// ID is the event's, the one given or a new one.
	ID string `json:"id"`
	// Endpoints is how many endpoints get it.
	Endpoints int `json:"endpoints"`
}

// PublishError says that not all deliveries of an event were confirmed. Publish it again under the same id: the others are not sent twice.
type PublishError struct {
	// ID is the event's.
	ID string
	// Failed is how many of the Endpoints do not get it yet, as far as is known.
	Failed, Endpoints int
	// Err is the first reason, and [ErrNoOrdering] where that is another one.
	Err error
}

func (e *PublishError) Error() string {
	return fmt.Sprintf("publish event %s: %d of %d deliveries were not confirmed: publish it again under the same id, which sends none of the others twice; the first: %v",
		e.ID, e.Failed, e.Endpoints, e.Err)
}

// Unwrap returns Err.
func (e *PublishError) Unwrap() error { return e.Err }

const (
	defaultBatch = 100
	// storeTime bounds one step at the store: a connection that says nothing any more may otherwise hold it for as long as the caller waits.
	storeTime = 10 * time.Second
)

// NewPublisher returns a publisher.
func NewPublisher(cfg PublisherConfig) (*Publisher, error) {
	cfg.Batch = cmp.Or(cfg.Batch, defaultBatch)
	var errs []error
	if cfg.Client == nil {
		errs = append(errs, errors.New("client: required"))
	}
	if cfg.Subscribers == nil {
		errs = append(errs, errors.New("subscribers: required; a mirror of the registry is one"))
	}
	if cfg.Batch < 0 {
		errs = append(errs, fmt.Errorf("batch %d: must be at least 1; 0 means %d", cfg.Batch, defaultBatch))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("webhook publisher: %w", err)
	}
	return &Publisher{cfg: cfg}, nil
}

// Publish enqueues one delivery for each endpoint of the event's tenant whose patterns match its type, but for those that are gone. It returns
// once the broker has confirmed them all. After an error some may be enqueued: publish the same event again, under the ID that the result names,
// and each endpoint still gets it once, for as long as idempotency keys live. A [PublishError] says how many are left, and with [ErrNoOrdering] that
// some of them never get it from this publisher; an error that wraps [ErrInvalidEvent] or [ErrEventConflict] that nothing was done and never can be.
func (p *Publisher) Publish(ctx context.Context, e Event) (Published, error) {
	e, err := e.Checked()
	out := Published{ID: e.ID}
	if err != nil {
		return out, err
	}
	if err := p.keep(ctx, e); err != nil {
		return out, fmt.Errorf("keep event %s: %w", e.ID, err)
	}
	found, err := p.cfg.Subscribers.Matching(e.Tenant, e.Type)
	if err != nil {
		return out, fmt.Errorf("find the endpoints for event %s: %w", e.ID, err)
	}
	wanted := slices.DeleteFunc(slices.Clone(found), Endpoint.Gone)
	out.Endpoints = len(wanted)
	if err := p.fanOut(ctx, e, wanted); err != nil {
		return out, err
	}
	if p.cfg.OnPublished != nil {
		p.cfg.OnPublished(out)
	}
	return out, nil
}

// keep keeps an event. A store that hangs does not keep the caller: he does not know that he may repeat.
func (p *Publisher) keep(ctx context.Context, e Event) error {
	if p.cfg.Events == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := p.cfg.Events.PutEvent(bounded, e)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("the store did not answer within %s: publish it again under the same id, which is safe: %w", storeTime, err)
	}
	return err
}

// Gone reports whether deliveries to e would only become dead letters.
func (e Endpoint) Gone() bool { return e.State == StateDisabled && e.Reason == ReasonGone }

// fanOut enqueues batch after batch. A batch that fails does not stop the others, unless the broker takes nothing at all.
func (p *Publisher) fanOut(ctx context.Context, e Event, endpoints []Endpoint) error {
	confirmed := 0
	var first error
	possible, unordered := p.possible(endpoints)
	for batch := range slices.Chunk(possible, p.cfg.Batch) {
		n, err := p.enqueue(ctx, e, batch)
		confirmed += n
		if first == nil {
			first = err
		}
		if ctx.Err() != nil || n == 0 && (errors.Is(err, queue.ErrUnavailable) || errors.Is(err, queue.ErrClosed)) {
			break
		}
	}
	if failed := len(endpoints) - confirmed; failed > 0 {
		switch {
		case first == nil && unordered != nil:
			first = unordered
		case first == nil:
			first = context.Cause(ctx)
		case unordered != nil:
			first = fmt.Errorf("%w; and %w", first, unordered)
		}
		return &PublishError{ID: e.ID, Failed: failed, Endpoints: len(endpoints), Err: first}
	}
	return nil
}

// namedMost is how many endpoints an error names.
const namedMost = 10

// possible leaves out the endpoints that ask for order where nobody keeps it, and says so.
func (p *Publisher) possible(endpoints []Endpoint) (possible []Endpoint, unordered error) {
	if p.cfg.Ordering != nil {
		return endpoints, nil
	}
	var ordered []string
	for _, e := range endpoints {
		if e.Ordered {
			ordered = append(ordered, e.ID)
			continue
		}
		possible = append(possible, e)
	}
	if n := len(ordered); n > 0 {
		unordered = fmt.Errorf("endpoints that ask for order, %d in all: %q: %w", n, ordered[:min(n, namedMost)], ErrNoOrdering)
	}
	return possible, unordered
}

// enqueue enqueues one batch and returns how many were confirmed, and the first error.
func (p *Publisher) enqueue(ctx context.Context, e Event, endpoints []Endpoint) (confirmed int, first error) {
	var jobs []worker.NewJob
	var ordered []string
	for _, endpoint := range endpoints {
		if endpoint.Ordered {
			ordered = append(ordered, endpoint.ID)
			continue
		}
		job := deliver.New(endpoint.ID, e.delivered())
		job.Queue = p.cfg.Queue
		jobs = append(jobs, job)
	}
	for _, r := range p.cfg.Client.EnqueueMany(ctx, jobs) {
		switch {
		case r.Err == nil:
			confirmed++
		case first == nil:
			first = r.Err
		}
	}
	if len(ordered) > 0 {
		n, err := p.cfg.Ordering.Append(ctx, e, ordered)
		confirmed += n
		if first == nil {
			first = err
		}
	}
	return confirmed, first
}
