package sqs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/queue"
)

// remote is one queue as this process knows it.
type remote struct {
	b    *Broker
	name string // logical
	full string // physical
	url  string
	fifo bool
	dlq  bool
	sns  bool
	gone atomic.Bool // it did not exist when it was last used

	sends, deletes, changes *batcher

	mu         sync.Mutex
	attrs      attributes
	refreshing bool
	held       map[string]*handle // live handles by the broker's message id
	sweepAt    int

	polls                               atomic.Int64 // open now
	copies, givenBack, hops, duplicates atomic.Int64
	tooLargeForCopy                     sync.Once
}

func newRemote(b *Broker, name, full, url string) *remote {
	q := &remote{
		b: b, name: name, full: full, url: url, fifo: isFIFO(name), dlq: queue.IsDLQ(name), sns: slices.Contains(b.cfg.UnwrapSNS, name),
		attrs: attributes{maxSize: defaultMaxSize}, held: make(map[string]*handle), sweepAt: 1024,
	}
	flying := maxFlying
	if q.fifo {
		flying = 1 // the order of sending is the order of the queue
	}
	q.sends = newBatcher(q, "SendMessage", flying, q.sendBatch)
	q.deletes = newBatcher(q, "DeleteMessage", maxFlying, q.deleteBatch)
	q.changes = newBatcher(q, "ChangeMessageVisibility", maxFlying, q.changeBatch)
	return q
}

// drain sends everything that waits, and refuses more.
func (q *remote) drain() {
	for _, b := range []*batcher{q.sends, q.deletes, q.changes} {
		b.drain()
	}
}

// attributesAge is how long what a queue says of itself is good.
const attributesAge = 30 * time.Second

// attributes returns what is known of the queue, and has it refreshed if that is old.
func (q *remote) attributes() attributes {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.attrs.at) >= attributesAge && !q.refreshing {
		q.refreshing = q.b.background(func(ctx context.Context) {
			_ = q.load(ctx) // what was known before still serves
			q.mu.Lock()
			defer q.mu.Unlock()
			q.refreshing = false
		})
	}
	return q.attrs
}

// load asks the queue for its attributes. Without permission for that the defaults of SQS are assumed.
func (q *remote) load(ctx context.Context) error {
	attrs, err := q.ask(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err == nil:
		q.attrs = attrs
		return nil
	case faultOf(err) == denied:
		if q.attrs.at.IsZero() {
			q.b.cfg.Logger.WarnContext(ctx, "attributes of a queue cannot be read: a size limit of 1 MiB and no redrive policy are assumed; grant sqs:GetQueueAttributes",
				slog.String("queue", q.name))
		}
		q.attrs.at = time.Now()
		return nil
	}
	return callError(ctx, err, "GetQueueAttributes", q.name)
}

func (q *remote) ask(ctx context.Context) (attributes, error) {
	var out *awssqs.GetQueueAttributesOutput
	at := time.Now()
	err := q.b.repeat(ctx, func(ctx context.Context) (err error) {
		out, err = q.b.client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
			QueueUrl:       aws.String(q.url),
			AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
		})
		return err
	})
	if err != nil {
		return attributes{}, err
	}
	attrs, err := parseAttributes(out.Attributes)
	if err != nil {
		return attributes{}, fmt.Errorf("attributes of queue %q: %w", q.name, err)
	}
	attrs.at = at
	return attrs, nil
}

// limit is the most that a message may measure.
func (q *remote) limit() int { return sizeLimit(q.attributes().maxSize, q.dlq) }

// saw notes a fault that says something about the queue.
func (q *remote) saw(f fault) {
	if f == missing {
		q.gone.Store(true)
	}
}
