package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/queue/sqs"
)

const sqsDefault = "http://127.0.0.1:4566"

// simpleQueue compares driver and worker with bare SDK loops, on standard queues.
func simpleQueue(c config) error {
	ctx := context.Background()
	endpoint := cmp.Or(os.Getenv("CAISSON_TEST_SQS_ENDPOINT"), sqsDefault)
	u, err := url.Parse(endpoint)
	if err != nil {
		return errors.New("CAISSON_TEST_SQS_ENDPOINT is no URL")
	}
	access := emulatorAccess()
	bare := awssqs.NewFromConfig(access, func(o *awssqs.Options) { o.BaseEndpoint = &endpoint })
	find, cancel := context.WithTimeout(ctx, findDeadline)
	defer cancel()
	if _, err := bare.ListQueues(find, &awssqs.ListQueuesInput{MaxResults: aws.Int32(1)}); err != nil {
		return fmt.Errorf("%w: start the SQS server with `make services`, or set CAISSON_TEST_SQS_ENDPOINT", err)
	}
	b, err := sqs.Open(find, sqs.Config{AWS: &access, Endpoint: endpoint, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	t := &contest{
		config: c, server: findServer(u.Port()),
		make:  b.CreateQueue,
		drop:  func(ctx context.Context, name string) error { return dropSQS(ctx, bare, name) },
		sides: append(bareSQS(c, bare), ours(c, b)...),
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	fmt.Println("SQS, standard queue, batches of 10:")
	t.print(map[string]aims{
		"driver": {publish: "aim 0.9"},
		"worker": {publish: "aim 0.9", cycle: "aim 0.9", cpu: "aim 1.2"},
	})
	return nil
}

func dropSQS(ctx context.Context, client *awssqs.Client, name string) error {
	for _, full := range []string{name, name + "-dlq"} {
		q, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &full})
		if err != nil {
			return err
		}
		a, err := client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
			QueueUrl: q.QueueUrl,
			AttributeNames: []types.QueueAttributeName{
				types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
			},
		})
		if err != nil {
			return err
		}
		if _, err := client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: q.QueueUrl}); err != nil {
			return err
		}
		for _, left := range a.Attributes {
			if left != "0" {
				return fmt.Errorf("%s messages were left in %s", left, full)
			}
		}
	}
	return nil
}
