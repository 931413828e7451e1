package faulttest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/rabbitmq"
	"github.com/caisson-go/caisson/queue/sqs"
)

func openRabbitMQ(ctx context.Context, url string) (queue.Broker, error) {
	return rabbitmq.Open(ctx, rabbitmq.Config{URLs: []string{url}, Logger: toStderr()})
}

func openSQS(ctx context.Context, endpoint string) (queue.Broker, error) {
	return sqs.Open(ctx, sqs.Config{Endpoint: endpoint, Region: "us-east-1", Logger: toStderr()})
}

// toStderr leaves out what the kills make usual.
func toStderr() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// onBroker is a plan for a networked broker, with claims and dead letters in a file that both processes share.
func onBroker(name, where string) faultlab.KillPlan {
	plan := faultlab.KillPlan{Broker: name, Open: brokers[name], Where: where, Jobs: 800, Kills: 5, Waves: true}
	if soak() {
		plan.Jobs, plan.Kills = 20000, 20
	}
	return plan
}

// TestKillLedgerRabbitMQ also restarts the broker, once in order and once with SIGKILL.
func TestKillLedgerRabbitMQ(t *testing.T) {
	t.Parallel()
	node := testserver.StartRabbitMQ(t)
	plan := onBroker("rabbitmq", node.URL())
	plan.Queue = "kills"
	stop := []func(testing.TB){node.Stop, node.Kill}
	plan.Restarts = len(stop)
	plan.Restart = func() {
		stop[0](t)
		stop = append(stop[1:], stop[0])
		node.Start(t)
	}
	checkKills(t, plan)
}

func TestKillLedgerSQS(t *testing.T) {
	t.Parallel()
	plan := onBroker("sqs", testserver.SQS(t))
	plan.Queue = uniqueSQS(t, plan.Where)
	checkKills(t, plan)
}

// uniqueSQS names a queue that nobody else uses, and deletes it and its dead letters at the end.
func uniqueSQS(t *testing.T, endpoint string) string {
	t.Helper()
	name := fmt.Sprintf("kills-%08x", rand.Uint32())
	t.Cleanup(func() {
		client := awssqs.New(awssqs.Options{
			Region: "us-east-1", BaseEndpoint: aws.String(endpoint), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		})
		ctx := context.WithoutCancel(t.Context())
		out, err := client.ListQueues(ctx, &awssqs.ListQueuesInput{QueueNamePrefix: aws.String(name)})
		if err != nil {
			t.Errorf("list the queues to delete: %v", err)
			return
		}
		for _, url := range out.QueueUrls {
			if _, err := client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: aws.String(url)}); err != nil {
				t.Errorf("delete %s: %v", url, err)
			}
		}
	})
	return name
}
