package sqs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/queue"
)

const (
	// hideShare is the share of the in-flight quota above which retried messages are not hidden any more, since hidden ones are in flight.
	hideShare = 0.5
	// receivesLeft is how far below maxReceiveCount a message is sent anew, so that SQS does not move it to the DLQ.
	receivesLeft = 2
	// resendLease is what must be left of a lease before a copy is sent: between copy and delete nobody else may get the message.
	resendLease = 5 * time.Second
)

// canHide reports whether the message can wait for delay where it is.
func (h *handle) canHide(delay time.Duration, now time.Time) bool {
	a := h.q.attributes()
	switch {
	case seconds(delay) > h.left(now):
		return false
	case delay > 0 && a.share() >= hideShare:
		return false
	case a.redrive != nil && a.redrive.max() > 0 && h.receives >= a.redrive.max()-receivesLeft:
		return false
	case a.retention > 0 && !h.sent.IsZero() && now.Sub(h.sent)+delay > a.retention/2:
		return false // the queue would drop it some day
	}
	return true
}

// resend puts a copy in the message's place: sent and confirmed first, then the message is deleted. The copy knows what was spent before
// it. A copy that does not fit is given up in favour of hiding the message, which charges an attempt.
func (h *handle) resend(ctx context.Context, delay time.Duration, charged bool) error {
	if !h.isCopied() {
		m := h.copyMeta(charged)
		if delay > maxDelay {
			m.DueMS = time.Now().Add(delay).UnixMilli()
		}
		err := h.sendCopy(ctx, m, min(delay, maxDelay))
		if errors.Is(err, queue.ErrTooLarge) {
			h.q.tooLargeForCopy.Do(func() {
				h.q.b.cfg.Logger.WarnContext(ctx, "a message is too large to be copied with its counts; its deferrals are charged as attempts",
					slog.String("queue", h.q.name))
			})
			return h.giveUp(ctx, min(seconds(delay), h.left(time.Now())))
		}
		if err != nil {
			return err
		}
		h.q.copies.Add(1)
	}
	return h.remove(ctx)
}

// copyMeta is what a copy has to know.
func (h *handle) copyMeta(charged bool) meta {
	m := meta{ID: h.id, Attempts: h.attempts, Deliveries: h.deliveries}
	if !charged {
		m.Attempts--
	}
	if !h.enqueued.IsZero() {
		m.EnqueuedMS = h.enqueued.UnixMilli()
	}
	return m
}

// sendCopy sends a copy with m and waits for the confirmation.
func (h *handle) sendCopy(ctx context.Context, m meta, delay time.Duration) error {
	w, err := encode(h.message, m)
	if err != nil {
		return err
	}
	if size, most := w.size(), h.q.attributes().maxSize; size > most {
		return &queue.TooLargeError{Size: size, Limit: most}
	}
	if err := h.makeTime(ctx); err != nil {
		return err
	}
	e := h.q.entryFor(w, delay)
	e.until = h.ends()
	if h.group != "" {
		e.send.MessageGroupId = aws.String(h.group)
	}
	if h.trace != "" {
		e.send.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
			string(types.MessageSystemAttributeNameForSendsAWSTraceHeader): {DataType: aws.String(typeString), StringValue: aws.String(h.trace)},
		}
	}
	return h.do(ctx, h.q.sends, e)
}

// makeTime extends a lease that might end between copy and delete.
func (h *handle) makeTime(ctx context.Context) error {
	now := time.Now()
	if h.ends().Sub(now) >= resendLease {
		return nil
	}
	ask := min(seconds(2*resendLease), h.left(now))
	if ask <= 0 {
		return queue.ErrLeaseLost
	}
	if err := h.change(ctx, ask); err != nil {
		return fmt.Errorf("extend before the copy is sent: %w", err)
	}
	h.prolong(now.Add(time.Duration(ask) * time.Second))
	return nil
}
