package sqstest_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
)

type client struct {
	testing.TB
	*awssqs.Client
	url *string
}

// clientOf is the bare SDK on transport, with one queue.
func clientOf(t testing.TB, transport http.RoundTripper, name string) client {
	t.Helper()
	c := awssqs.New(awssqs.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{},
		HTTPClient: doer{transport},
	})
	attributes := map[string]string{}
	if name[len(name)-1] == 'o' {
		attributes["FifoQueue"] = "true"
	}
	out, err := c.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return client{t, c, out.QueueUrl}
}

type doer struct{ http.RoundTripper }

func (d doer) Do(r *http.Request) (*http.Response, error) { return d.RoundTrip(r) }

func (c client) send(in awssqs.SendMessageInput) error {
	in.QueueUrl = c.url
	if in.MessageBody == nil {
		in.MessageBody = aws.String("body")
	}
	_, err := c.SendMessage(c.Context(), &in)
	return err
}

func (c client) receive(visible int32) []types.Message {
	c.Helper()
	out, err := c.ReceiveMessage(c.Context(), &awssqs.ReceiveMessageInput{QueueUrl: c.url, MaxNumberOfMessages: 10, VisibilityTimeout: visible, WaitTimeSeconds: 1})
	if err != nil {
		c.Fatal(err)
	}
	return out.Messages
}

func (c client) change(handle *string, seconds int32) error {
	_, err := c.ChangeMessageVisibility(c.Context(), &awssqs.ChangeMessageVisibilityInput{QueueUrl: c.url, ReceiptHandle: handle, VisibilityTimeout: seconds})
	return err
}

func wantCode(t testing.TB, what string, err error, code string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code {
		t.Errorf("%s: error %v, want %s", what, err, code)
	}
}

// The twelve hours count from the receive, and asking for more is refused, not clamped.
func TestVisibilityHasACeiling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clientOf(t, sqstest.NewServer(), "q")
		if err := c.send(awssqs.SendMessageInput{}); err != nil {
			t.Fatal(err)
		}
		m := c.receive(43200)[0]
		time.Sleep(time.Minute)
		wantCode(t, "one second too many", c.change(m.ReceiptHandle, 43141), "InvalidParameterValue")
		if err := c.change(m.ReceiptHandle, 43140); err != nil {
			t.Error(err)
		}
		time.Sleep(12 * time.Hour)
		wantCode(t, "an expired handle", c.change(m.ReceiptHandle, 1), "InvalidParameterValue")
		if again := c.receive(30); len(again) != 1 || *again[0].ReceiptHandle == *m.ReceiptHandle || len(again[0].Attributes) > 0 {
			t.Errorf("received %+v, want the message with a new handle and no attributes that were not asked for", again)
		}
	})
}

func TestStaleDeletes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, code := range map[string]string{"q": "", "q.fifo": "InvalidParameterValue"} {
			c := clientOf(t, sqstest.NewServer(), name)
			if err := c.send(fifoFields(name)); err != nil {
				t.Fatal(err)
			}
			m := c.receive(1)[0]
			time.Sleep(2 * time.Second)
			_, err := c.DeleteMessage(t.Context(), &awssqs.DeleteMessageInput{QueueUrl: c.url, ReceiptHandle: m.ReceiptHandle})
			if code == "" && err != nil {
				t.Errorf("%s: %v", name, err)
			} else if code != "" {
				wantCode(t, name, err, code)
			}
			if len(c.receive(1)) != 1 {
				t.Errorf("%s: a stale delete deleted the message", name)
			}
		}
	})
}

func fifoFields(name string) awssqs.SendMessageInput {
	if name != "q.fifo" {
		return awssqs.SendMessageInput{}
	}
	return awssqs.SendMessageInput{MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d")}
}

func TestInFlightQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := sqstest.NewServer()
		server.InFlight = 2
		c := clientOf(t, server, "q")
		for range 3 {
			if err := c.send(awssqs.SendMessageInput{}); err != nil {
				t.Fatal(err)
			}
		}
		c.receive(60)
		if got := c.receive(60); len(got) != 0 {
			t.Errorf("a long poll past the quota brought %d messages", len(got))
		}
		_, err := c.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: c.url})
		wantCode(t, "a short poll past the quota", err, "OverLimit")
	})
}

func TestSendsAreChecked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clientOf(t, sqstest.NewServer(), "q")
		for what, in := range map[string]awssqs.SendMessageInput{
			"delay": {DelaySeconds: 901}, "control characters": {MessageBody: aws.String("\x01")}, "size": {MessageBody: aws.String(string(make([]byte, 1<<20+1)))},
			"group": {MessageGroupId: aws.String("a b")},
		} {
			if c.send(in) == nil {
				t.Errorf("%s: accepted", what)
			}
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := sqstest.NewServer()
		var fault sqstest.Fault
		f := &sqstest.Faults{Next: server, Plan: func(sqstest.Call) sqstest.Fault { return fault }}
		c := clientOf(t, f, "q")
		with := func(next sqstest.Fault, call func() error) error {
			fault = next
			defer func() { fault = sqstest.Fault{} }()
			return call()
		}
		send := func() error { return c.send(awssqs.SendMessageInput{}) }
		for code, next := range map[string]sqstest.Fault{"RequestThrottled": sqstest.Throttled, "OverLimit": sqstest.OverLimit, "InternalFailure": sqstest.ServerError, "AccessDenied": sqstest.Denied} {
			wantCode(t, code, with(next, send), code)
		}
		if err := with(sqstest.Fault{Cut: true}, send); !errors.Is(err, sqstest.ErrCut) || len(server.Messages("q")) != 0 {
			t.Errorf("cut: error %v, %d messages", err, len(server.Messages("q")))
		}
		if err := with(sqstest.Fault{Lose: true}, send); !errors.Is(err, sqstest.ErrCut) || len(server.Messages("q")) != 1 {
			t.Errorf("lost answer: error %v, %d messages", err, len(server.Messages("q")))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		fault = sqstest.Fault{Hang: true}
		if _, err := c.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: c.url}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("hang: error %v", err)
		}
		fault = sqstest.Fault{}
		if first, again := func() []types.Message {
			fault = sqstest.Fault{Double: true}
			defer func() { fault = sqstest.Fault{} }()
			return c.receive(60)
		}(), c.receive(60); len(first) != 1 || len(again) != 1 || *first[0].MessageId != *again[0].MessageId {
			t.Errorf("double: %d messages, then %d", len(first), len(again))
		}
	})
}
