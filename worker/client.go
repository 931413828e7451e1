package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/caisson-go/caisson/queue"
)

// DefaultQueue is the queue of jobs and workers that name none.
const DefaultQueue = "default"

// NewJob is a job to enqueue. Only Kind is required.
type NewJob struct {
	Kind string
	// Version of the payload; zero if unversioned.
	Version int
	// Payload is sent as it is if it is a []byte or json.RawMessage, and encoded as JSON otherwise. Nil is an empty payload.
	Payload any
	// ID of the job. Empty generates a time-ordered one. An ID enqueued twice makes two messages but, with claims, one completed run.
	ID string
	// Key is the idempotency key. Empty means the kind's Key, or else the ID.
	Key string
	// Destination that breakers and limits isolate by. Empty means the kind's.
	Destination string
	// Queue to put the job in. Empty means the client's default.
	Queue string
	// Delay until the job is due. Zero or negative means at once. At most one of Delay and At may be set.
	Delay time.Duration
	// At is when the job is due. A time in the past means at once.
	At time.Time
	// Deadline after which the job is not started. Zero means none.
	Deadline time.Time
	// Headers travel with the job: traceparent, tracestate and the producer's own.
	Headers map[string]string
}

// EnqueueResult is the result of one job of [Client.EnqueueMany].
type EnqueueResult struct {
	// ID is the job's id, even if Err is set. A retry under the same id cannot complete the job twice.
	ID string
	// Queue is where the job was put.
	Queue string
	// Err is nil once the broker confirmed the job.
	Err error
}

// target is where a client publishes.
type target interface {
	Capabilities(queue string) queue.Capabilities
	Publish(ctx context.Context, queue string, pubs []queue.Publication) []queue.PublishResult
}

// ClientConfig configures a client.
type ClientConfig struct {
	// Broker to enqueue to: any [queue.Broker], or Box.In(tx) of queue/outbox to enqueue in a transaction. A job enqueued there without an
	// error is part of the transaction and published after the commit. Required. The client does not close it.
	Broker interface {
		Capabilities(queue string) queue.Capabilities
		Publish(ctx context.Context, queue string, pubs []queue.Publication) []queue.PublishResult
	}
	// DefaultQueue for jobs that name none. Default "default".
	DefaultQueue string
}

// Client enqueues jobs. It is safe for concurrent use and needs no closing.
type Client struct {
	broker target
	queue  string
}

// NewClient returns a client.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.Broker == nil {
		return nil, errors.New("client: broker is required")
	}
	cfg.DefaultQueue = cmp.Or(cfg.DefaultQueue, DefaultQueue)
	return &Client{broker: cfg.Broker, queue: cfg.DefaultQueue}, nil
}

// Enqueue puts one job in its queue. It returns the job's id once the broker has confirmed it, and also with an error.
func (c *Client) Enqueue(ctx context.Context, job NewJob) (string, error) {
	r := c.EnqueueMany(ctx, []NewJob{job})[0]
	return r.ID, r.Err
}

// EnqueueMany puts jobs in their queues and returns one result per job, in the same order. Each job succeeds or fails by itself.
func (c *Client) EnqueueMany(ctx context.Context, jobs []NewJob) []EnqueueResult {
	results := make([]EnqueueResult, len(jobs))
	byQueue := make(map[string][]int)
	pubs := make([]queue.Publication, len(jobs))
	now := time.Now()
	for i, job := range jobs {
		results[i].Queue = job.Queue
		results[i].Queue = cmp.Or(results[i].Queue, c.queue)
		results[i].ID = job.ID
		if results[i].ID == "" {
			id, err := uuid.NewV7()
			if err != nil {
				results[i].Err = fmt.Errorf("enqueue %s: make an id: %w", job.Kind, err)
				continue
			}
			results[i].ID = id.String()
		}
		pub, err := c.publication(job, results[i].ID, results[i].Queue, now)
		if err != nil {
			results[i].Err = fmt.Errorf("enqueue %s: %w", job.Kind, err)
			continue
		}
		pubs[i] = pub
		byQueue[results[i].Queue] = append(byQueue[results[i].Queue], i)
	}
	for name, indexes := range byQueue {
		c.publish(ctx, name, indexes, pubs, results)
	}
	return results
}

func (c *Client) publish(ctx context.Context, name string, indexes []int, pubs []queue.Publication, results []EnqueueResult) {
	batch := make([]queue.Publication, len(indexes))
	for n, i := range indexes {
		batch[n] = pubs[i]
	}
	for n, r := range c.broker.Publish(ctx, name, batch) {
		if r.Err != nil {
			i := indexes[n]
			results[i].Err = fmt.Errorf("enqueue job %s to queue %q: %w", results[i].ID, name, r.Err)
			if errors.Is(r.Err, queue.ErrQueueNotFound) {
				results[i].Err = fmt.Errorf("%w: create it with the broker's CreateQueue, or start a worker of it first", results[i].Err)
			}
		}
	}
}

func (c *Client) publication(job NewJob, id, name string, now time.Time) (queue.Publication, error) {
	payload, err := encodePayload(job.Payload)
	if err != nil {
		return queue.Publication{}, err
	}
	if job.Delay > 0 && !job.At.IsZero() {
		return queue.Publication{}, errors.New("both delay and at are set: use one")
	}
	due := job.At
	if job.Delay > 0 {
		due = now.Add(job.Delay)
	}
	if !due.After(now) {
		due = time.Time{}
	}
	if !job.Deadline.IsZero() && !job.Deadline.After(now) {
		return queue.Publication{}, fmt.Errorf("deadline %s has passed", job.Deadline.Format(time.RFC3339))
	}
	if !job.Deadline.IsZero() && job.Deadline.Before(due) {
		return queue.Publication{}, fmt.Errorf("deadline %s is before the job is due at %s", job.Deadline.Format(time.RFC3339), due.Format(time.RFC3339))
	}
	m, err := queue.NewMessage(queue.Envelope{
		ID: id, Kind: job.Kind, Version: job.Version, Key: job.Key, Destination: job.Destination,
		EnqueuedAt: now, NotBefore: due, Deadline: job.Deadline, Headers: job.Headers,
	}, payload)
	if err != nil {
		return queue.Publication{}, err
	}
	pub := queue.Publication{Message: m, Group: job.Destination}
	if !due.IsZero() {
		pub.Delay = due.Sub(now)
		if longest := c.broker.Capabilities(name).MaxDelay; longest > 0 { // the envelope's not_before carries the rest
			pub.Delay = min(pub.Delay, longest)
		}
	}
	return pub, nil
}

// encodePayload keeps bytes as they are and encodes the rest as JSON, with <, > and & unescaped.
func encodePayload(payload any) ([]byte, error) {
	switch p := payload.(type) {
	case nil:
		return nil, nil
	case []byte:
		return p, nil
	case json.RawMessage:
		return p, nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(payload); err != nil {
		return nil, fmt.Errorf("encode payload: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
