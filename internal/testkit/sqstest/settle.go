package sqstest

import (
	"slices"
	"strings"
	"time"
)

type settleIn struct {
	Id                string //nolint:revive // the protocol's spelling
	QueueUrl          string //nolint:revive // the protocol's spelling
	ReceiptHandle     string
	VisibilityTimeout *int
}

type settleBatchIn struct {
	QueueUrl string //nolint:revive // the protocol's spelling
	Entries  []settleIn
}

func (s *Server) deleteOne(in settleIn) (any, error) { return s.one(in, s.remove) }

func (s *Server) deleteBatch(in settleBatchIn) (any, error) { return s.batch(in, s.remove) }

func (s *Server) changeOne(in settleIn) (any, error) { return s.one(in, s.change) }

func (s *Server) changeBatch(in settleBatchIn) (any, error) { return s.batch(in, s.change) }

func (s *Server) one(in settleIn, do func(*box, settleIn) error) (any, error) {
	b, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return struct{}{}, do(b, in)
}

func (s *Server) batch(in settleBatchIn, do func(*box, settleIn) error) (any, error) {
	b, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(in.Entries))
	for i, e := range in.Entries {
		ids[i] = e.Id
	}
	if err := checkBatch(ids); err != nil {
		return nil, err
	}
	out := batchOut{}
	for _, e := range in.Entries {
		if err := do(b, e); err != nil {
			out.Failed = append(out.Failed, failed(e.Id, err))
			continue
		}
		out.Successful = append(out.Successful, map[string]string{"Id": e.Id})
	}
	return out, nil
}

// lookUp returns the message that a handle is of, and whether it is the newest and still counts.
func (b *box) lookUp(handle string, now time.Time) (m *message, good bool) {
	id, _, ok := strings.Cut(handle, "#")
	if !ok {
		return nil, false
	}
	i := slices.IndexFunc(b.messages, func(m *message) bool { return m.id == id })
	if i < 0 {
		return nil, false
	}
	m = b.messages[i]
	return m, m.handle == handle && m.inFlight(now)
}

func (s *Server) remove(b *box, in settleIn) error {
	if !strings.Contains(in.ReceiptHandle, "#") {
		return refuse("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
	}
	m, good := b.lookUp(in.ReceiptHandle, s.Now())
	switch {
	case good:
		b.messages = slices.DeleteFunc(b.messages, func(other *message) bool { return other == m })
		s.stirred() // its group may go on
	case b.fifo && m != nil:
		return invalid("Value %s for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", in.ReceiptHandle)
	}
	return nil // a standard queue says yes, and does nothing
}

func (s *Server) change(b *box, in settleIn) error {
	now := s.Now()
	m, good := b.lookUp(in.ReceiptHandle, now)
	if !good {
		return invalid("Value %s for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.", in.ReceiptHandle)
	}
	if in.VisibilityTimeout == nil {
		return refuse("MissingParameter", "The request must contain the parameter VisibilityTimeout.")
	}
	d := time.Duration(*in.VisibilityTimeout) * time.Second
	if d < 0 || d > maxVisibility {
		return invalid("Value %d for parameter VisibilityTimeout is invalid. Reason: VisibilityTimeout must be an integer between 0 and 43200.", *in.VisibilityTimeout)
	}
	if now.Add(d).Sub(m.receipt) > maxVisibility {
		return invalid("Value %d for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", *in.VisibilityTimeout)
	}
	if m.visible = now.Add(d); d == 0 {
		m.handle = ""
		s.stirred()
	}
	return nil
}
