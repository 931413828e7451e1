package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"
)

const (
	sqsBatch   = 10 // of SQS itself
	sqsSenders = 8  // requests that one call of the driver's Publish has under way at once
	sqsPollers = 7  // receives that the driver has under way at once for 64 slots
)

// emulatorAccess is good for emulators, which ask for credentials of some sort; the environment's come first.
func emulatorAccess() aws.Config {
	return aws.Config{
		Region: cmp.Or(os.Getenv("AWS_REGION"), "us-east-1"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID: cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "test"), SecretAccessKey: cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "test"),
			}, nil
		}),
		HTTPClient: &http.Client{Transport: copyBody{&http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}}},
	}
}

// copyBody sends a copy of the request's body. Without it, one in some thousand receives of the SDK fails once the answer is there, and its
// messages stay hidden for 30 s; a bare loop that waits for them would be compared unfairly.
type copyBody struct{ next http.RoundTripper }

func (t copyBody) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return t.next.RoundTrip(r)
	}
	b := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
	if _, err := b.ReadFrom(r.Body); err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	r = r.WithContext(r.Context())
	r.Body = io.NopCloser(b)
	return t.next.RoundTrip(r)
}

// bareSQS is the loop that one would write by hand: as many pollers as the driver has, each of which receives ten messages and deletes them in one
// request, and as many senders.
func bareSQS(c config, client *awssqs.Client) []*side {
	return []*side{{
		name: "bare",
		publish: func(ctx context.Context, name string, n, callers int) error {
			q, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &name})
			if err != nil {
				return err
			}
			return fanOut(ctx, n, callers, func(ctx context.Context, jobs int) error {
				for ; jobs > 0; jobs -= batch {
					if err := bareSendBatch(ctx, client, q.QueueUrl, c.size); err != nil {
						return err
					}
				}
				return nil
			})
		},
		work: func(ctx context.Context, name string, n int, done func()) error {
			q, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &name})
			if err != nil {
				return err
			}
			return bareReceive(ctx, client, q.QueueUrl, n, done)
		},
	}}
}

// bareSendBatch sends a batch in requests of ten, some of them at once.
func bareSendBatch(ctx context.Context, client *awssqs.Client, address *string, size int) error {
	body := strings.Repeat("x", size)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sqsSenders)
	for range batch / sqsBatch {
		g.Go(func() error {
			in := awssqs.SendMessageBatchInput{QueueUrl: address, Entries: make([]types.SendMessageBatchRequestEntry, sqsBatch)}
			for i := range in.Entries {
				in.Entries[i] = types.SendMessageBatchRequestEntry{
					Id: aws.String(strconv.Itoa(i)), MessageBody: &body,
					MessageAttributes: map[string]types.MessageAttributeValue{
						"job": {DataType: aws.String("String"), StringValue: aws.String("bench " + nextID() + " " + time.Now().UTC().Format(time.RFC3339Nano))},
					},
				}
			}
			out, err := client.SendMessageBatch(ctx, &in)
			if err == nil && len(out.Failed) > 0 {
				err = fmt.Errorf("%d messages were refused", len(out.Failed))
			}
			return err
		})
	}
	return g.Wait()
}

func bareReceive(ctx context.Context, client *awssqs.Client, address *string, n int, done func()) error {
	var left atomic.Int64
	left.Store(int64(n))
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var wg sync.WaitGroup
	for range sqsPollers {
		wg.Go(func() {
			for ctx.Err() == nil {
				got, err := bareReceiveBatch(ctx, client, address)
				if err != nil {
					end(err)
				}
				if got > 0 && left.Add(-int64(got)) <= 0 {
					done()
					end(errDone)
				}
			}
		})
	}
	wg.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, errDone) {
		return cause
	}
	return nil
}

func bareReceiveBatch(ctx context.Context, client *awssqs.Client, address *string) (int, error) {
	out, err := client.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{
		QueueUrl: address, MaxNumberOfMessages: sqsBatch, WaitTimeSeconds: 20, VisibilityTimeout: 30, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil || len(out.Messages) == 0 {
		return 0, err
	}
	in := awssqs.DeleteMessageBatchInput{QueueUrl: address, Entries: make([]types.DeleteMessageBatchRequestEntry, len(out.Messages))}
	for i := range out.Messages {
		in.Entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: out.Messages[i].ReceiptHandle}
	}
	deleted, err := client.DeleteMessageBatch(ctx, &in)
	if err == nil && len(deleted.Failed) > 0 {
		err = fmt.Errorf("%d messages were not deleted", len(deleted.Failed))
	}
	return len(out.Messages), err
}
