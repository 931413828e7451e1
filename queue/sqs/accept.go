package sqs

import (
	"context"
	"log/slog"
	"maps"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/queue"
)

// accept makes a handle of a message that was received now, by a request sent at start. It returns nil if this process works on the message
// already: SQS delivers more than once now and then. The lease that is there goes on, with the new receipt handle.
func (q *remote) accept(s *subscription, m *types.Message, start, now, deadline time.Time) *handle {
	h := &handle{
		q: q, sub: s,
		key:      aws.ToString(m.MessageId),
		receipt:  aws.ToString(m.ReceiptHandle),
		received: start,
		deadline: deadline,
		receives: 1,
		group:    m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
		trace:    m.Attributes[string(types.MessageSystemAttributeNameAWSTraceHeader)],
		moved:    m.Attributes[string(types.MessageSystemAttributeNameDeadLetterQueueSourceArn)] != "",
	}
	h.read(m)
	q.mu.Lock()
	defer q.mu.Unlock()
	if old := q.held[h.key]; old != nil {
		if old.live(now) {
			q.duplicates.Add(1)
			old.adopt(h)
			return nil
		}
		old.supersede()
	}
	if len(q.held) >= q.sweepAt {
		maps.DeleteFunc(q.held, func(_ string, h *handle) bool { return !h.live(now) })
		q.sweepAt = max(1024, 2*len(q.held))
	}
	q.held[h.key] = h
	return h
}

// forget ends the notes about h.
func (q *remote) forget(h *handle) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held[h.key] == h {
		delete(q.held, h.key)
	}
}

// read fills in what the message says.
func (h *handle) read(m *types.Message) {
	if n, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]); err == nil && n > 0 {
		h.receives = n
	}
	h.sent = millis(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)])
	body, attributes := aws.ToString(m.Body), m.MessageAttributes
	if h.q.sns {
		body, attributes = unwrapSNS(body, attributes)
	}
	var err error
	if h.message, h.meta, err = decode(body, attributes); err != nil {
		// Delivered as it came: without a readable envelope it goes to the dead letters, where it can be looked at.
		h.q.b.cfg.Logger.Warn("a message has metadata of this driver that cannot be read", slog.String("queue", h.q.name), slog.String("id", h.key), slog.Any("error", err))
		h.message = queue.Message{Body: []byte(body), Headers: headersOf(attributes)}
	}
	h.id, h.enqueued = h.key, h.sent
	if h.meta.ID != "" {
		h.id = h.meta.ID
	}
	if h.meta.EnqueuedMS != 0 {
		h.enqueued = time.UnixMilli(h.meta.EnqueuedMS)
	}
	h.attempts = h.meta.Attempts + h.receives
	h.deliveries = h.meta.Deliveries + h.receives
}

func millis(s string) time.Time {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// adopt takes over what a second delivery of the same message brought: the receipt handle that is good now, and its time. Where that would
// end before our lease does, the message is hidden again until then.
func (h *handle) adopt(second *handle) {
	h.mu.Lock()
	h.receipt, h.received = second.receipt, second.received
	short := second.deadline.Before(h.deadline)
	deadline := h.deadline
	h.mu.Unlock()
	if !short {
		return
	}
	h.q.b.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		now := time.Now()
		if h.live(now) {
			_ = h.change(ctx, min(seconds(deadline.Sub(now)), h.left(now))) // at worst the message comes once more
		}
	})
}
