package sqs_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

func deleteQueue(r *rig, full string) {
	r.Helper()
	if _, err := r.raw().DeleteQueue(r.Context(), &awssqs.DeleteQueueInput{QueueUrl: aws.String(full)}); err != nil {
		r.Fatal(err)
	}
}

// Field case G1(b), through the server: ten attributes of another producer survive a deferral and a replay, exactly.
func TestForeignAttributesSurvive(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		native := map[string]types.MessageAttributeValue{
			"n": {DataType: aws.String("Number"), StringValue: aws.String("1.50")}, "b": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
		}
		for i := range 8 {
			native["s"+itoa(i)] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("v")}
		}
		_, err := r.raw().SendMessage(r.Context(), &awssqs.SendMessageInput{
			QueueUrl: aws.String("jobs"), MessageBody: aws.String("body"), MessageAttributes: native, MessageGroupId: aws.String("tenant-1"),
		})
		if err != nil {
			t.Fatal(err)
		}
		before := r.server.Messages("jobs")[0]
		sub := r.subscribe("jobs", time.Minute, 1)
		l := r.one(sub, time.Minute)
		if l.Headers["n"] != "1.50" || l.Headers["b"] != "AP8=" || l.Headers["s0"] != "v" {
			t.Errorf("headers %v", l.Headers)
		}
		if err := l.Retry(r.Context(), 0, true); err != nil {
			t.Fatal(err)
		}
		copied := r.one(sub, time.Minute)
		if copied.ID != l.ID || copied.Attempts != 1 {
			t.Errorf("the copy is %s in attempt %d, want %s in 1", copied.ID, copied.Attempts, l.ID)
		}
		r.publish("jobs.dlq", queue.Publication{Message: copied.Message})
		after := r.server.Messages("jobs-dlq")[0]
		if len(after.Attributes) != 10 {
			t.Errorf("%d attributes, want 10", len(after.Attributes))
		}
		for name, value := range before.Attributes {
			if after.Attributes[name] != value || after.Types[name] != before.Types[name] {
				t.Errorf("attribute %q is %s %q, was %s %q", name, after.Types[name], after.Attributes[name], before.Types[name], value)
			}
		}
		if after.Body != "body" {
			t.Errorf("body %q", after.Body)
		}
	})
}

func TestSNSQueues(t *testing.T) {
	t.Parallel()
	const wrapped = `{"Type":"Notification","TopicArn":"arn:aws:sns:x:1:t","Message":"inner","MessageAttributes":{"a":{"Type":"String","Value":"1"}}}`
	for _, unwrap := range []bool{false, true} {
		cfg := sqs.Config{}
		if unwrap {
			cfg.UnwrapSNS = []string{"jobs"}
		}
		inBubble(t, cfg, func(r *rig) {
			r.publish("jobs", queue.Publication{Message: queue.Message{Body: []byte(wrapped)}})
			sub := r.subscribe("jobs", time.Minute, 1)
			for range 2 { // also after a deferral
				l := r.one(sub, time.Minute)
				want := map[bool]string{false: wrapped, true: "inner"}[unwrap]
				if string(l.Body) != want || (l.Headers["a"] == "1") != unwrap {
					t.Errorf("unwrap %t: body %q, headers %v", unwrap, l.Body, l.Headers)
				}
				if err := l.Release(r.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// The X-Ray header goes along with a copy.
func TestTraceHeaderGoesAlong(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		_, err := r.raw().SendMessage(r.Context(), &awssqs.SendMessageInput{
			QueueUrl: aws.String("jobs"), MessageBody: aws.String("body"),
			MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
				"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-2-3")},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.one(r.subscribe("jobs", time.Minute, 1), time.Minute).Release(r.Context()); err != nil {
			t.Fatal(err)
		}
		out, err := r.raw().ReceiveMessage(r.Context(), &awssqs.ReceiveMessageInput{
			QueueUrl: aws.String("jobs"), MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
		})
		if err != nil || out.Messages[0].Attributes["AWSTraceHeader"] != "Root=1-2-3" {
			t.Errorf("got %+v, error %v", out, err)
		}
	})
}

// The same against a real server: what other producers send comes as they sent it, and goes on as it came.
func TestForeignMessagesOnARealServer(t *testing.T) {
	t.Parallel()
	cfg := realConfig(t)
	b := open(t, cfg)
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := b.CreateQueue(t.Context(), "foreign"); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := rawClient(cfg.Endpoint, transport)
	urlOf := func(name string) *string {
		out, err := client.GetQueueUrl(t.Context(), &awssqs.GetQueueUrlInput{QueueName: aws.String(cfg.Prefix + name)})
		if err != nil {
			t.Fatal(err)
		}
		return out.QueueUrl
	}
	native := map[string]types.MessageAttributeValue{
		"n": {DataType: aws.String("Number"), StringValue: aws.String("15")}, "b": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
		"s": {DataType: aws.String("String"), StringValue: aws.String("K\u00fc")},
	}
	_, err := client.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: urlOf("foreign"), MessageBody: aws.String("body"), MessageAttributes: native})
	if err != nil {
		t.Fatal(err)
	}
	sub, err := b.Subscribe(t.Context(), "foreign", queue.SubscribeConfig{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	one := func() *queue.Lease {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		leases, err := sub.Receive(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		return leases[0]
	}
	if err := one().Release(t.Context()); err != nil { // as a copy
		t.Fatal(err)
	}
	l := one()
	if res := b.Publish(t.Context(), "foreign.dlq", []queue.Publication{{Message: l.Message}}); res[0].Err != nil {
		t.Fatal(res[0].Err)
	}
	if err := l.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: urlOf("foreign-dlq"), MessageAttributeNames: []string{"All"}, WaitTimeSeconds: 10})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("dead letters %+v, error %v", out, err)
	}
	got := out.Messages[0]
	if diff := cmp.Diff(native, got.MessageAttributes, cmpopts.IgnoreUnexported(types.MessageAttributeValue{}), cmpopts.EquateEmpty()); diff != "" || *got.Body != "body" {
		t.Errorf("body %q, attributes differ:\n%s", *got.Body, diff)
	}
}
