package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// CreateQueue implements [queue.Broker]. It makes the queue's DLQ first, then the queue with a redrive policy. A queue that is there is left as it
// is, whatever its attributes.
func (b *Broker) CreateQueue(ctx context.Context, name string) error {
	_, err := b.find(ctx, name)
	if !errors.Is(err, queue.ErrQueueNotFound) {
		return err
	}
	switch {
	case b.cfg.NoCreate:
		return fmt.Errorf("%w: this configuration makes no queues: make %s in the account (docs/sqs.md has the settings), or allow to create", err, b.wanted(name))
	case b.cfg.AccountID != "":
		return fmt.Errorf("%w: queues of another account cannot be made: have its owner make %s", err, b.wanted(name))
	}
	retention, redrive := dlqRetention, ""
	if !queue.IsDLQ(name) {
		if err := b.CreateQueue(ctx, queue.DLQ(name)); err != nil {
			return err
		}
		if redrive, err = b.redriveTo(ctx, queue.DLQ(name)); err != nil {
			return err
		}
		retention = sourceRetention
	}
	if err := b.create(ctx, name, retention, redrive); err != nil {
		return err
	}
	return b.await(ctx, name)
}

// await waits until the queue that was just made can be used, which takes SQS a second or so.
func (b *Broker) await(ctx context.Context, name string) error {
	for i := 0; ; i++ {
		_, err := b.find(ctx, name)
		if i == 20 || !errors.Is(err, queue.ErrQueueNotFound) || !pause.For(ctx, 250*time.Millisecond) {
			return err
		}
	}
}

// wanted names the queues that somebody else has to make.
func (b *Broker) wanted(name string) string {
	full, err := physical(b.cfg.Prefix, name)
	if err != nil {
		return strconv.Quote(name)
	}
	if dlq, err := physical(b.cfg.Prefix, queue.DLQ(name)); err == nil && !queue.IsDLQ(name) {
		return fmt.Sprintf("%q with the dead-letter queue %q", full, dlq)
	}
	return strconv.Quote(full)
}

func (b *Broker) redriveTo(ctx context.Context, dlq string) (string, error) {
	q, err := b.find(ctx, dlq)
	if err != nil {
		return "", err
	}
	arn := q.attributes().arn
	if arn == "" {
		return "", fmt.Errorf("the ARN of queue %q cannot be read, which its source needs: grant sqs:GetQueueAttributes", dlq)
	}
	policy, err := json.Marshal(map[string]any{"deadLetterTargetArn": arn, "maxReceiveCount": b.cfg.MaxReceiveCount})
	return string(policy), err
}

func (b *Broker) create(ctx context.Context, name string, retention time.Duration, redrive string) error {
	full, err := physical(b.cfg.Prefix, name)
	if err != nil {
		return err
	}
	attributes := map[string]string{
		string(types.QueueAttributeNameMessageRetentionPeriod): strconv.Itoa(int(retention / time.Second)),
	}
	if redrive != "" {
		attributes[string(types.QueueAttributeNameRedrivePolicy)] = redrive
	}
	if isFIFO(name) {
		attributes[string(types.QueueAttributeNameFifoQueue)] = "true"
	}
	err = b.repeat(ctx, func(ctx context.Context) error {
		_, err := b.client.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: aws.String(full), Attributes: attributes})
		return err
	})
	var exists *types.QueueNameExists
	switch {
	case errors.As(err, &exists): // somebody else was quicker, and wants it otherwise
		return nil
	case err != nil:
		return callError(ctx, err, "CreateQueue", name)
	}
	b.cfg.Logger.InfoContext(ctx, "made a queue", slog.String("queue", name), slog.String("sqs_name", full))
	return nil
}
