package journal_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue/sqs"
	"github.com/caisson-go/caisson/webhook/journal/postgres"
)

const sqsRegion = "us-east-1"

// sqsRig has its jobs in a standard queue of its own, and its journal in PostgreSQL.
func sqsRig(t *testing.T) *rig {
	t.Helper()
	endpoint := testserver.SQS(t)
	broker, err := sqs.Open(t.Context(), sqs.Config{Endpoint: endpoint, Region: sqsRegion, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	pool, schema := testserver.Schema(t)
	store, err := postgres.New(pool, postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	r := newNetworkedRig(t, broker, func(name string) error { return deleteSQS(endpoint, name) })
	r.journal = store
	return r
}

// deleteSQS deletes the queues whose names begin so: one and its dead letters.
func deleteSQS(endpoint, prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client := awssqs.New(awssqs.Options{
		Region: sqsRegion, BaseEndpoint: aws.String(endpoint), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	out, err := client.ListQueues(ctx, &awssqs.ListQueuesInput{QueueNamePrefix: aws.String(prefix)})
	if err != nil {
		return err
	}
	for _, url := range out.QueueUrls {
		if _, err := client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: aws.String(url)}); err != nil {
			return err
		}
	}
	return nil
}
