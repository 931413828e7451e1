package sqstest

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// batchFailure is one entry's part of a batch that was not carried out.
type batchFailure struct {
	Id          string //nolint:revive // the protocol's spelling
	SenderFault bool
	Code        string
	Message     string
}

type batchOut struct {
	Successful []map[string]string
	Failed     []batchFailure
}

func failed(id string, err error) batchFailure {
	f := err.(*failure) //nolint:errorlint,forcetypeassert // made here, never wrapped
	return batchFailure{Id: id, SenderFault: true, Code: f.code, Message: f.message}
}

type sendIn struct {
	Id                      string //nolint:revive // the protocol's spelling
	QueueUrl                string //nolint:revive // the protocol's spelling
	MessageBody             string
	DelaySeconds            *int
	MessageAttributes       map[string]attribute
	MessageSystemAttributes map[string]attribute
	MessageGroupId          string //nolint:revive // the protocol's spelling
	MessageDeduplicationId  string //nolint:revive // the protocol's spelling
}

type sendBatchIn struct {
	QueueUrl string //nolint:revive // the protocol's spelling
	Entries  []sendIn
}

func (s *Server) sendOne(in sendIn) (any, error) {
	b, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	id, err := s.send(b, in)
	return map[string]string{"MessageId": id}, err
}

func (s *Server) sendBatch(in sendBatchIn) (any, error) {
	b, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(in.Entries))
	size := 0
	for i, e := range in.Entries {
		ids[i] = e.Id
		size += sizeOf(e)
	}
	if err := checkBatch(ids); err != nil {
		return nil, err
	}
	if size > 1<<20 {
		return nil, refuse("BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes. You have sent %d bytes.", size)
	}
	out := batchOut{}
	for _, e := range in.Entries {
		id, err := s.send(b, e)
		if err != nil {
			out.Failed = append(out.Failed, failed(e.Id, err))
			continue
		}
		out.Successful = append(out.Successful, map[string]string{"Id": e.Id, "MessageId": id})
	}
	return out, nil
}

func checkBatch(ids []string) error {
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			return refuse("BatchEntryIdsNotDistinct", "Id %s repeated.", id)
		}
		seen[id] = true
	}
	switch {
	case len(ids) == 0:
		return refuse("EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(ids) > 10:
		return refuse("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent %d.", len(ids))
	}
	return nil
}

func sizeOf(in sendIn) int {
	size := len(in.MessageBody)
	for name, a := range in.MessageAttributes {
		size += len(name) + len(a.DataType) + len(a.BinaryValue)
		if a.StringValue != nil {
			size += len(*a.StringValue)
		}
	}
	return size
}

// valid reports whether SQS takes s as text.
func valid(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff
	})
}

func (s *Server) check(b *box, in sendIn) error {
	switch {
	case in.MessageBody == "":
		return refuse("MissingParameter", "The request must contain the parameter MessageBody.")
	case !valid(in.MessageBody):
		return refuse("InvalidMessageContents", "Invalid characters found.")
	case sizeOf(in) > b.number("MaximumMessageSize"):
		return invalid("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", b.number("MaximumMessageSize"))
	case len(in.MessageAttributes) > 10:
		return invalid("Number of message attributes [%d] exceeds the allowed maximum [10].", len(in.MessageAttributes))
	case in.DelaySeconds != nil && (*in.DelaySeconds < 0 || *in.DelaySeconds > 900):
		return invalid("Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.", *in.DelaySeconds)
	case b.fifo && in.DelaySeconds != nil && *in.DelaySeconds != 0:
		return invalid("Value %d for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type.", *in.DelaySeconds)
	case b.fifo && in.MessageGroupId == "":
		return refuse("MissingParameter", "The request must contain the parameter MessageGroupId.")
	case b.fifo && in.MessageDeduplicationId == "":
		return invalid("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	for _, id := range []string{in.MessageGroupId, in.MessageDeduplicationId} {
		if len(id) > 128 || strings.ContainsFunc(id, func(r rune) bool { return r <= 0x20 || r >= 0x7f }) {
			return invalid("Value %s is invalid. Reason: it can only include alphanumeric and punctuation characters. 1 to 128 in length.", id)
		}
	}
	for name, a := range in.MessageAttributes {
		text := a.StringValue != nil && valid(*a.StringValue)
		if !text && len(a.BinaryValue) == 0 {
			return invalid("The message attribute %q must contain a non-empty value of its type.", name)
		}
	}
	return nil
}

const dedupWindow = 5 * time.Minute

func (s *Server) send(b *box, in sendIn) (string, error) {
	if err := s.check(b, in); err != nil {
		return "", err
	}
	now := s.Now()
	if b.fifo {
		if earlier, ok := b.sent[in.MessageDeduplicationId]; ok && now.Sub(earlier.at) < dedupWindow {
			return earlier.id, nil
		}
	}
	s.serial++
	m := &message{
		id: fmt.Sprintf("m-%d", s.serial), body: in.MessageBody, group: in.MessageGroupId, dedup: in.MessageDeduplicationId,
		attributes: in.MessageAttributes, system: in.MessageSystemAttributes, size: sizeOf(in), sent: now, visible: now, serial: s.serial,
	}
	delay := b.seconds("DelaySeconds")
	if in.DelaySeconds != nil {
		delay = time.Duration(*in.DelaySeconds) * time.Second
	}
	m.visible = now.Add(delay)
	b.messages = append(b.messages, m)
	if b.fifo {
		b.sent[m.dedup] = sending{at: now, id: m.id}
	}
	s.stirred()
	return m.id, nil
}
