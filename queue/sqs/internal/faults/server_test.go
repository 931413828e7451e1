package faults

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue/sqs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const region = "us-east-1"

// ownConfig is for queues of the test's own on the shared server, which go with it.
func ownConfig(t testing.TB) sqs.Config {
	t.Helper()
	url, prefix := testserver.SQS(t), "cf"+strings.ToLower(rand.Text()[:8])+"-"
	client := awssqs.New(awssqs.Options{
		Region: region, BaseEndpoint: aws.String(url), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		out, err := client.ListQueues(ctx, &awssqs.ListQueuesInput{QueueNamePrefix: aws.String(prefix)})
		if err != nil {
			t.Errorf("list queues to delete: %v", err)
			return
		}
		for _, u := range out.QueueUrls {
			if _, err := client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: aws.String(u)}); err != nil {
				t.Errorf("delete %s: %v", u, err)
			}
		}
	})
	return sqs.Config{Endpoint: url, Region: region, Prefix: prefix, Logger: slog.New(slog.DiscardHandler)}
}
