package sqstest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

type receiveIn struct {
	QueueUrl                    string //nolint:revive // the protocol's spelling
	MaxNumberOfMessages         *int
	WaitTimeSeconds             *int
	VisibilityTimeout           *int
	MessageAttributeNames       []string
	MessageSystemAttributeNames []string
}

type received struct {
	MessageId         string //nolint:revive // the protocol's spelling
	ReceiptHandle     string
	Body              string
	Attributes        map[string]string    `json:",omitempty"`
	MessageAttributes map[string]attribute `json:",omitempty"`
}

// receive waits, without the lock, until there is something.
func (s *Server) receive(ctx context.Context, body []byte) (any, error) {
	var in receiveIn
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse("MalformedInput", "%v", err)
	}
	var end <-chan time.Time
	for {
		s.mu.Lock()
		if err := ctx.Err(); err != nil { // nobody hears the answer: nothing is taken
			s.mu.Unlock()
			return nil, err
		}
		found, wait, next, err := s.take(in)
		stir := s.stir
		s.mu.Unlock()
		if err != nil || len(found) > 0 || wait == 0 {
			return map[string]any{"Messages": found}, err
		}
		if end == nil {
			end = time.After(wait)
		}
		var due <-chan time.Time
		if next > 0 {
			due = time.After(next)
		}
		select {
		case <-stir:
		case <-due:
		case <-end:
			return map[string]any{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take receives what is there. next is when to look again.
func (s *Server) take(in receiveIn) (found []received, wait, next time.Duration, err error) {
	b, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, 0, 0, err
	}
	most, visible := 1, b.seconds("VisibilityTimeout")
	wait = b.seconds("ReceiveMessageWaitTimeSeconds")
	if in.MaxNumberOfMessages != nil {
		most = *in.MaxNumberOfMessages
	}
	if in.VisibilityTimeout != nil {
		visible = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	if in.WaitTimeSeconds != nil {
		wait = time.Duration(*in.WaitTimeSeconds) * time.Second
	}
	if most < 1 || most > 10 || visible < 0 || visible > maxVisibility || wait < 0 || wait > 20*time.Second {
		return nil, 0, 0, invalid("MaxNumberOfMessages %d, VisibilityTimeout %v or WaitTimeSeconds %v is invalid.", most, visible, wait)
	}
	now := s.Now()
	b.expire(now)
	flying := 0
	for _, m := range b.messages {
		if m.inFlight(now) {
			flying++
		}
	}
	if flying >= s.InFlight {
		if wait == 0 {
			return nil, 0, 0, refuse("OverLimit", "The maximum number of in flight messages is reached.")
		}
		return nil, wait, 0, nil
	}
	for _, m := range s.visible(b, now, most) {
		found = append(found, s.handOut(b, m, now, visible, in))
	}
	return found, wait, b.nextVisible(now), nil
}

func (b *box) nextVisible(now time.Time) (next time.Duration) {
	for _, m := range b.messages {
		if d := m.visible.Sub(now); d > 0 && (next == 0 || d < next) {
			next = d
		}
	}
	return next
}

// visible lists up to most messages that can be received, and moves those that were received too often.
func (s *Server) visible(b *box, now time.Time, most int) []*message {
	dlq, limit := s.redrive(b)
	blocked := map[string]bool{}
	if b.fifo {
		for _, m := range b.messages {
			if now.Before(m.visible) && !m.again {
				blocked[m.group] = true
			}
		}
	}
	var list []*message
	for _, m := range slices.Clone(b.messages) {
		switch {
		case len(list) == most:
			return list
		case now.Before(m.visible) && !m.again, blocked[m.group]:
			continue
		case dlq != nil && m.receives >= limit:
			b.messages = slices.DeleteFunc(b.messages, func(other *message) bool { return other == m })
			m.handle, m.source = "", b.arn()
			dlq.messages = append(dlq.messages, m) // it keeps its first time of sending
			continue
		}
		list = append(list, m)
	}
	return list
}

func (s *Server) handOut(b *box, m *message, now time.Time, visible time.Duration, in receiveIn) received {
	s.serial++
	m.again = false
	m.receives++
	if m.first.IsZero() {
		m.first = now
	}
	m.receipt, m.visible = now, now.Add(visible)
	m.handle = fmt.Sprintf("%s#%d", m.id, s.serial)
	r := received{MessageId: m.id, ReceiptHandle: m.handle, Body: m.body}
	system := map[string]string{
		"ApproximateReceiveCount":          strconv.Itoa(m.receives),
		"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
	}
	if m.group != "" {
		system["MessageGroupId"] = m.group
	}
	if b.fifo {
		system["MessageDeduplicationId"] = m.dedup
	}
	if a, ok := m.system["AWSTraceHeader"]; ok && a.StringValue != nil {
		system["AWSTraceHeader"] = *a.StringValue
	}
	if m.source != "" {
		system["DeadLetterQueueSourceArn"] = m.source
	}
	for name, value := range system {
		if slices.Contains(in.MessageSystemAttributeNames, name) || slices.Contains(in.MessageSystemAttributeNames, "All") {
			if r.Attributes == nil {
				r.Attributes = map[string]string{}
			}
			r.Attributes[name] = value
		}
	}
	for name, a := range m.attributes {
		if wants(in.MessageAttributeNames, name) {
			if r.MessageAttributes == nil {
				r.MessageAttributes = map[string]attribute{}
			}
			r.MessageAttributes[name] = a
		}
	}
	return r
}

func wants(names []string, name string) bool {
	return slices.ContainsFunc(names, func(want string) bool {
		prefix, open := strings.CutSuffix(want, ".*")
		return want == "All" || want == name || open && strings.HasPrefix(name, prefix)
	})
}
