package sqs

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/queue"
)

// shortWait is the wait of polls beside the first, which expect messages to be there, and of the first one after a failure, which is to tell
// soon that all is well again. It is not 0: the SDK leaves out a zero, and a short poll asks only some of the servers.
const shortWait = time.Second

// ask starts polls for up to most messages, as many as there may be. It returns when to look again; zero means not before there are news.
// The caller holds mu.
//
//nolint:contextcheck // polls, and what they send off, outlive the call that starts them
func (s *subscription) ask(ctx context.Context, most int, now time.Time) time.Time {
	most -= s.asked
	for most > 0 && s.polls < s.target && !now.Before(s.notBefore) {
		if most < s.unit() && s.polls > 0 {
			break // what there is room for comes with an open poll, or more room until that one ends: full requests cost less
		}
		n, next := s.slots.reserve(min(most, s.unit()), now)
		if n == 0 {
			return next
		}
		wait := s.longWait()
		if s.polls > 0 || s.failures > 0 {
			wait = shortWait
		}
		if end, ok := ctx.Deadline(); ok { // a poll that is cut can strand what it was about to bring
			wait = max(min(wait, end.Sub(now).Truncate(time.Second)), shortWait)
		}
		most -= n
		s.asked += n
		s.polls++
		s.q.polls.Add(1)
		pollCtx := s.pollCtx
		s.b.callers.run(&s.wg, func() { s.poll(pollCtx, n, wait) })
	}
	if s.polls == 0 {
		return s.notBefore
	}
	return time.Time{}
}

// unit is how many messages one poll asks for.
func (s *subscription) unit() int {
	if s.q.fifo {
		return s.b.cfg.FIFOBatch
	}
	return maxBatch
}

// poll asks for n messages, for which slots are reserved.
func (s *subscription) poll(ctx context.Context, n int, wait time.Duration) {
	start := time.Now()
	visible := s.visibility(wait)
	messages, err := s.request(ctx, n, wait, visible)
	now := time.Now()
	deadline := now.Add(s.lease)
	if earliest := start.Add(visible); earliest.Before(deadline) {
		deadline = earliest
	}
	var fresh []*handle
	for i := range messages {
		if h := s.q.accept(s, &messages[i], start, now, deadline); h != nil {
			fresh = append(fresh, h)
		}
	}
	s.slots.fill(n, fresh)
	s.q.polls.Add(-1)
	fresh = s.sendOff(fresh) //nolint:contextcheck // what is sent off is not bound to the poll that brought it
	ready := s.enchain(fresh)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls--
	s.asked -= n
	s.learn(n, len(messages), time.Since(start), wait, err, ctx.Err() != nil)
	s.arriveLocked(ready)
	s.announceLocked()
}

// longWait is how long a poll waits for messages. It may be no longer than a third of the lease: the lease counts from before the request was sent,
// since nobody knows when within it a message was taken.
func (s *subscription) longWait() time.Duration {
	return max(min(s.lease/3, maxWait).Truncate(time.Second), shortWait)
}

// visibility is what is asked for with a poll: the lease, and for leases of a few seconds the wait on top.
func (s *subscription) visibility(wait time.Duration) time.Duration {
	visible := time.Duration(seconds(s.lease)) * time.Second
	if wait > s.lease/3 {
		visible = min(visible+wait, maxVisibility)
	}
	return visible
}

func (s *subscription) request(ctx context.Context, n int, wait, visible time.Duration) ([]types.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+pollMargin)
	defer cancel()
	out, err := s.b.client.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{
		QueueUrl:              aws.String(s.q.url),
		MaxNumberOfMessages:   int32(n),
		WaitTimeSeconds:       seconds(wait),
		VisibilityTimeout:     seconds(visible),
		MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount,
			types.MessageSystemAttributeNameSentTimestamp,
			types.MessageSystemAttributeNameMessageGroupId,
			types.MessageSystemAttributeNameAWSTraceHeader,
			types.MessageSystemAttributeNameDeadLetterQueueSourceArn,
		},
	})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// learn draws conclusions from a poll. The caller holds mu.
func (s *subscription) learn(asked, got int, took, wait time.Duration, err error, cut bool) {
	switch {
	case err != nil && cut:
		return // by us
	case err != nil:
		f := s.b.note(err)
		s.q.saw(f)
		s.failures++
		s.last = explainFault(f, err, "ReceiveMessage", s.q.name)
		s.failed = s.last
		s.target = 1
		return
	}
	s.failures, s.failed, s.last = 0, nil, nil
	switch {
	case 2*got >= asked:
		s.target = min(2*s.target, 1+s.slots.size/s.unit())
	case got == 0:
		s.target = 1
	}
	s.idle++
	if got > 0 || took > wait/2 {
		s.idle = 0
		return
	}
	// An empty answer to a long poll that did not wait: of a server that is short of something, or that woke us for what others took.
	if s.idle > 3 {
		s.notBefore = time.Now().Add(min(5*time.Millisecond<<min(s.idle-4, 8), time.Second))
	}
}

// sendOff sends messages that are not due yet on their way, and returns the others.
func (s *subscription) sendOff(handles []*handle) []*handle {
	return slices.DeleteFunc(handles, func(h *handle) bool {
		if !h.isEarly() {
			return false
		}
		s.wg.Go(func() {
			ctx, cancel := context.WithDeadline(s.b.base, h.ends())
			defer cancel()
			h.sendOn(ctx)
		})
		return true
	})
}

// enchain keeps back all but the first message of each FIFO group.
func (s *subscription) enchain(handles []*handle) []*handle {
	if !s.q.fifo || len(handles) < 2 {
		return handles
	}
	chains := map[string]*chain{}
	var heads []*handle
	for _, h := range handles {
		c := chains[h.group]
		if h.chain = c; c != nil {
			c.waiting = append(c.waiting, h)
			continue
		}
		h.chain = &chain{sub: s}
		chains[h.group] = h.chain
		heads = append(heads, h)
	}
	return heads
}

// arrive hands over messages that nobody has asked for since.
func (s *subscription) arrive(handles []*handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arriveLocked(handles)
	s.announceLocked()
}

func (s *subscription) arriveLocked(handles []*handle) {
	switch {
	case len(handles) == 0:
	case s.closed:
		s.giveBack(handles)
	default:
		s.arrived = append(s.arrived, handles...)
		if s.waiters == 0 {
			s.bePatient()
		}
	}
}

// bePatient gives back what has arrived if nobody comes for it. The caller holds mu.
func (s *subscription) bePatient() {
	if s.waitTimer != nil {
		s.waitTimer.Reset(arrivedWait)
		return
	}
	s.waitTimer = time.AfterFunc(arrivedWait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiters > 0 || s.closed {
			return
		}
		s.giveBack(s.arrived)
		s.arrived = nil
	})
}

// giveBack makes messages visible at once, the last one first, so that a FIFO group is as it was. Who does not succeed is back at the end of
// its lease.
func (s *subscription) giveBack(handles []*handle) {
	if len(handles) == 0 {
		return
	}
	s.q.givenBack.Add(int64(len(handles)))
	handles = slices.Clone(handles)
	slices.Reverse(handles)
	work := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		for _, h := range handles {
			_ = h.giveUp(ctx, 0)
			h.finish()
			h.chain.next(false)
		}
	}
	s.b.background(work)
}

// lease makes the lease of h.
func (h *handle) lease() *queue.Lease {
	l := queue.NewLease(h.message, h, h.ends())
	l.Queue = h.q.name
	l.ID = h.id
	l.DeliveryCount = h.deliveries
	l.EnqueuedAt = h.enqueued
	if h.moved {
		l.Moved = "maxReceiveCount"
	}
	if h.q.fifo {
		l.Group = h.group
	} else {
		l.Attempts = h.attempts
	}
	h.mu.Lock()
	l.Ceiling = h.received.Add(maxVisibility - ceilingMargin)
	h.mu.Unlock()
	return l
}
