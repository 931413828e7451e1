package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/queue"
)

// Depth implements [queue.Broker]. The counts are approximate and lag. Messages that are hidden by a retry count as in flight: SQS hides them
// as it hides leased ones.
func (b *Broker) Depth(ctx context.Context, name string) (queue.Depth, error) {
	q, err := b.find(ctx, name)
	if err != nil {
		return queue.Depth{}, fmt.Errorf("depth: %w", err)
	}
	if err := q.load(ctx); err != nil {
		return queue.Depth{}, fmt.Errorf("depth: %w", err)
	}
	return q.attributes().depth(), nil
}

// askAtOnce is how many queues are asked for their depth at a time.
const askAtOnce = 8

// Queues implements [queue.Broker]: the queues of this account and region whose names begin with the prefix, DLQs among them. It
// returns [errors.ErrUnsupported] where the credentials may not list, or the queues are another account's.
func (b *Broker) Queues(ctx context.Context) ([]queue.QueueInfo, error) {
	names, err := b.names(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]queue.QueueInfo, len(names))
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	for i, name := range names {
		group.Go(func() error {
			depth, err := b.Depth(ctx, name)
			if errors.Is(err, queue.ErrQueueNotFound) {
				return nil // deleted since; listed without a name, and dropped below
			}
			infos[i] = queue.QueueInfo{Name: name, Depth: depth}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return slices.DeleteFunc(infos, func(i queue.QueueInfo) bool { return i.Name == "" }), nil
}

// names lists the logical names of the account's queues, sorted.
func (b *Broker) names(ctx context.Context) ([]string, error) {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return nil, queue.ErrClosed
	}
	if b.cfg.AccountID != "" {
		return nil, fmt.Errorf("list queues: SQS lists only those of one's own account: %w", errors.ErrUnsupported)
	}
	var names []string
	in := &awssqs.ListQueuesInput{MaxResults: aws.Int32(1000)}
	if b.cfg.Prefix != "" {
		in.QueueNamePrefix = aws.String(b.cfg.Prefix)
	}
	for {
		var out *awssqs.ListQueuesOutput
		err := b.repeat(ctx, func(ctx context.Context) (err error) {
			out, err = b.client.ListQueues(ctx, in)
			return err
		})
		switch {
		case err != nil && faultOf(err) == denied: // many roles may not list, and need not
			return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, callError(ctx, err, "ListQueues", b.cfg.Prefix+"*"))
		case err != nil:
			return nil, callError(ctx, err, "ListQueues", b.cfg.Prefix+"*")
		}
		for _, url := range out.QueueUrls {
			name, ok := logical(b.cfg.Prefix, url[strings.LastIndexByte(url, '/')+1:])
			if _, err := physical(b.cfg.Prefix, name); ok && err == nil {
				names = append(names, name)
			}
		}
		if aws.ToString(out.NextToken) == "" {
			slices.Sort(names)
			return names, nil
		}
		in.NextToken = out.NextToken
	}
}
