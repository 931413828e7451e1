package sqstest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// box is one queue.
type box struct {
	name       string
	fifo       bool
	attributes map[string]string
	messages   []*message // in the order of sending
	sent       map[string]sending
}

// sending remembers a deduplication id.
type sending struct {
	at time.Time
	id string
}

// message is one message of a queue.
type message struct {
	id, body, group, dedup string
	source                 string // of what was moved here by a redrive policy
	attributes             map[string]attribute
	system                 map[string]attribute
	size                   int

	sent, visible  time.Time
	receives       int
	first, receipt time.Time // of the first receive, of the last
	handle         string    // of the last receive
	again          bool      // to be delivered although it is in flight
	serial         int
}

// attribute is a message attribute as JSON has it.
type attribute struct {
	DataType    string
	StringValue *string `json:",omitempty"`
	BinaryValue []byte  `json:",omitempty"`
}

const maxVisibility = 12 * time.Hour

var defaults = map[string]string{
	"VisibilityTimeout": "30", "DelaySeconds": "0", "MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600",
	"ReceiveMessageWaitTimeSeconds": "0",
}

func (b *box) seconds(name string) time.Duration {
	n, _ := strconv.Atoi(b.attributes[name]) // checked when it was set
	return time.Duration(n) * time.Second
}

func (b *box) number(name string) int {
	n, _ := strconv.Atoi(b.attributes[name])
	return n
}

func (b *box) arn() string { return "arn:aws:sqs:us-east-1:" + Account + ":" + b.name }

func (m *message) inFlight(now time.Time) bool { return m.handle != "" && now.Before(m.visible) }

type createIn struct {
	QueueName  string
	Attributes map[string]string
}

func (s *Server) createQueue(in createIn) (any, error) {
	base, fifo := strings.CutSuffix(in.QueueName, ".fifo")
	if base == "" || len(in.QueueName) > 80 || strings.ContainsFunc(base, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return nil, invalid("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	if fifo != (in.Attributes["FifoQueue"] == "true") {
		return nil, invalid("The name of a FIFO queue must end with .fifo, and FifoQueue be true")
	}
	url := map[string]string{"QueueUrl": urlPrefix + in.QueueName}
	if b := s.queues[in.QueueName]; b != nil {
		for name, value := range in.Attributes {
			if b.attributes[name] != value {
				return nil, refuse("QueueNameExists", "A queue already exists with the same name and a different value for attribute %s", name)
			}
		}
		return url, nil
	}
	b := &box{name: in.QueueName, fifo: fifo, attributes: map[string]string{}, sent: map[string]sending{}}
	for name, value := range defaults {
		b.attributes[name] = value
	}
	for name, value := range in.Attributes {
		b.attributes[name] = value
	}
	s.queues[in.QueueName] = b
	return url, nil
}

type urlIn struct{ QueueName, QueueUrl string } //nolint:revive // the protocol's spelling

func (s *Server) getQueueURL(in urlIn) (any, error) {
	if _, err := s.find(in.QueueName); err != nil {
		return nil, err
	}
	return map[string]string{"QueueUrl": urlPrefix + in.QueueName}, nil
}

func (s *Server) getAttributes(in urlIn) (any, error) {
	b, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	b.expire(now)
	ready, delayed, notVisible := 0, 0, 0
	for _, m := range b.messages {
		switch {
		case m.inFlight(now):
			notVisible++
		case now.Before(m.visible):
			delayed++
		default:
			ready++
		}
	}
	out := map[string]string{
		"QueueArn":                              b.arn(),
		"ApproximateNumberOfMessages":           strconv.Itoa(ready),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(delayed),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(notVisible),
	}
	for name, value := range b.attributes {
		out[name] = value
	}
	return map[string]any{"Attributes": out}, nil
}

type setIn struct {
	QueueUrl   string //nolint:revive // the protocol's spelling
	Attributes map[string]string
}

func (s *Server) setAttributes(in setIn) (any, error) {
	b, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	for name, value := range in.Attributes {
		b.attributes[name] = value
	}
	return struct{}{}, nil
}

func (s *Server) listQueues(in struct{ QueueNamePrefix string }) (any, error) {
	var urls []string
	for name := range s.queues {
		if strings.HasPrefix(name, in.QueueNamePrefix) {
			urls = append(urls, urlPrefix+name)
		}
	}
	slices.Sort(urls)
	return map[string]any{"QueueUrls": urls}, nil
}

func (s *Server) deleteQueue(in urlIn) (any, error) {
	b, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	delete(s.queues, b.name)
	return struct{}{}, nil
}

// redrive returns the policy of the queue, or 0.
func (s *Server) redrive(b *box) (*box, int) {
	var policy struct {
		Target string      `json:"deadLetterTargetArn"`
		Max    json.Number `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(b.attributes["RedrivePolicy"]), &policy) != nil {
		return nil, 0
	}
	most, err := strconv.Atoi(policy.Max.String())
	if err != nil {
		return nil, 0
	}
	return s.queues[policy.Target[strings.LastIndexByte(policy.Target, ':')+1:]], most
}

// expire drops what was kept long enough.
func (b *box) expire(now time.Time) {
	oldest := now.Add(-b.seconds("MessageRetentionPeriod"))
	b.messages = slices.DeleteFunc(b.messages, func(m *message) bool { return m.sent.Before(oldest) })
}

// DeliverAgain makes the next receive hand out the messages of the queue that are in flight as well, as SQS does now and then.
func (s *Server) DeliverAgain(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.queues[queue].messages {
		m.again = m.inFlight(s.Now())
	}
	s.stirred()
}

// Message is what a queue holds, for looking at it from outside.
type Message struct {
	ID, Body, Group, DedupID string
	Attributes               map[string]string // String and Number attributes as they are, Binary as bytes
	Types                    map[string]string
	Receives                 int
	Sent, Visible            time.Time
	InFlight                 bool
}

// Messages returns what the queue holds, in the order of sending.
func (s *Server) Messages(queue string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.queues[queue]
	if b == nil {
		panic(fmt.Sprintf("no queue %q", queue))
	}
	var list []Message
	for _, m := range b.messages {
		out := Message{
			ID: m.id, Body: m.body, Group: m.group, DedupID: m.dedup, Receives: m.receives, Sent: m.sent, Visible: m.visible,
			InFlight: m.inFlight(s.Now()), Attributes: map[string]string{}, Types: map[string]string{},
		}
		for name, a := range m.attributes {
			out.Types[name], out.Attributes[name] = a.DataType, string(a.BinaryValue)
			if a.StringValue != nil {
				out.Attributes[name] = *a.StringValue
			}
		}
		list = append(list, out)
	}
	return list
}
