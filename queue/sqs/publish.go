package sqs

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/queue"
)

// Publish implements [queue.Broker]. Messages of all callers share requests. On a FIFO queue they are sent in the order of the calls; a message
// that fails does not hold up those behind it.
func (b *Broker) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	results := make([]queue.PublishResult, len(pubs))
	err := ctx.Err()
	var q *remote
	if err == nil {
		q, err = b.find(ctx, name)
	}
	if err != nil {
		for i := range results {
			results[i].Err = fmt.Errorf("publish to %q: %w", name, err)
		}
		return results
	}
	entries := make([]*entry, len(pubs))
	limit := q.limit()
	for i := range pubs {
		if entries[i], results[i].Err = q.entryOf(&pubs[i], limit); results[i].Err == nil {
			q.sends.add(entries[i])
		}
	}
	for i, e := range entries {
		if e == nil {
			continue
		}
		_, err := q.sends.wait(ctx, e)
		results[i] = queue.PublishResult{Err: err}
		if err == nil {
			results[i].ID = e.id
		}
	}
	return results
}

// entryOf returns what is sent for p.
func (q *remote) entryOf(p *queue.Publication, limit int) (*entry, error) {
	switch {
	case p.Delay > 0 && q.fifo:
		return nil, fmt.Errorf("delay %v on FIFO queue %q, which takes none of a message's own: publish when it is due, or use a standard queue: %w",
			p.Delay, q.name, queue.ErrDelayTooLong)
	case p.Delay > maxDelay:
		return nil, fmt.Errorf("delay %v, SQS takes %v: put the time into the envelope's not_before: %w", p.Delay, maxDelay, queue.ErrDelayTooLong)
	}
	w, err := encode(p.Message, meta{})
	if err != nil {
		return nil, err
	}
	if size := w.size(); size > limit && size > q.replayLimit(p, limit) {
		return nil, &queue.TooLargeError{Size: size, Limit: limit}
	}
	e := q.entryFor(w, p.Delay)
	switch {
	case q.fifo:
		group := p.Group
		if group == "" {
			group = defaultGroup
		}
		e.send.MessageGroupId = aws.String(groupID(group))
		e.send.MessageDeduplicationId = aws.String(dedupID(p.DedupID))
	case p.Group != "" && !q.b.cfg.NoFairGroups:
		e.send.MessageGroupId = aws.String(groupID(p.Group))
	}
	return e, nil
}

// replayLimit is the most that a replay may measure: its envelope says more than the first run's, and a job that just fitted has to come back.
// Half of what is kept free is left for the copies and the dead letter of the new run. All else has limit.
func (q *remote) replayLimit(p *queue.Publication, limit int) int {
	if env, err := p.Envelope(); err != nil || env.Run == 0 {
		return limit
	}
	return limit + (q.attributes().maxSize-limit)/2
}

func (q *remote) entryFor(w wire, delay time.Duration) *entry {
	return &entry{
		send: &types.SendMessageBatchRequestEntry{
			MessageBody: aws.String(w.body), MessageAttributes: w.attributes, DelaySeconds: seconds(delay),
		},
		size: w.size(),
	}
}
