package webhooks

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
)

// TestKillWebhooks: a publisher and two workers, each a process with what the product runs in it, are killed with SIGKILL one after the other. What
// must hold is said by the receiver, which outlives them:
//
//   - Each event whose publishing was confirmed is taken by each endpoint that wants it, or is a dead letter where the endpoint never takes it.
//   - An endpoint that asks for order is called for an event for the first time once the one before was taken, or had its last call and was given up.
//   - An event that was taken comes again only where a worker was killed between the call and its settlement.
//   - Every call is signed, for the endpoint and the body that it comes with.
func TestKillWebhooks(t *testing.T) {
	t.Parallel()
	for _, backend := range []struct {
		name  string
		exact bool
		open  func(t *testing.T) map[string]string
	}{
		{"embedded", true, onFile},
		{"rabbitmq and postgres", false, onRabbitMQ},
		{"sqs and postgres", false, onSQS},
	} {
		t.Run(backend.name, func(t *testing.T) {
			t.Parallel()
			r := newKillRound(t, killPlan{settings: backend.open(t), exact: backend.exact, kills: killsOf()})
			r.run(t)
			v := r.check(r.dead(t))
			for i, fault := range v.faults {
				if i < 20 {
					t.Error(fault)
				}
			}
			t.Logf("%d events, %d deliveries, %d calls, %d kills of workers, %d publishings cut, %d taken again, %d dead letters, %d faults",
				r.events, v.deliveries, v.calls, len(r.kills), r.cut, v.repeated, v.dead, len(v.faults))
			if r.cut == 0 || v.dead == 0 {
				t.Errorf("the test did not bite: %d publishings cut, %d dead letters", r.cut, v.dead)
			}
		})
	}
}

// killsOf is how many processes are killed: each of the three at least twice.
func killsOf() int {
	if os.Getenv("SOAK") != "" {
		return 60
	}
	return 6
}

// What is broken must be found out by the same check.
func TestKillWebhooksFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	for mutation, want := range map[string]string{early: "order: ", noLine: "order: ", unconfirmed: "lost: "} {
		t.Run(mutation, func(t *testing.T) {
			t.Parallel()
			r := newKillRound(t, killPlan{settings: onFile(t), exact: true, kills: 3, mutation: mutation})
			r.run(t)
			var found []string
			for _, fault := range r.check(r.dead(t)).faults {
				if strings.HasPrefix(fault, want) {
					found = append(found, fault)
				}
			}
			if len(found) == 0 {
				t.Fatalf("it went unnoticed in %d events", r.events)
			}
			t.Logf("found as it must be: %d faults in %d events, the first: %s", len(found), r.events, found[0])
		})
	}
}

func onFile(t *testing.T) map[string]string {
	return map[string]string{"embedded.path": filepath.Join(t.TempDir(), "caisson.db")}
}

func onPostgres(t *testing.T) map[string]string {
	t.Helper()
	_, schema := testserver.Schema(t)
	return map[string]string{"postgres.url": testserver.Postgres(t), "postgres.schema": schema}
}

func onRabbitMQ(t *testing.T) map[string]string {
	t.Helper()
	at, name := testserver.AMQP(t), "webhook-kills-"+strings.ToLower(rand.Text()[:10])
	t.Cleanup(func() {
		conn, err := amqp.Dial(at)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		ch, err := conn.Channel()
		if err != nil {
			t.Error(err)
			return
		}
		for _, full := range []string{"cs1." + name, "cs1." + queue.DLQ(name)} {
			if _, err := ch.QueueDelete(full, false, false, false); err != nil {
				t.Error(err)
			}
		}
	})
	s := onPostgres(t)
	s["broker"], s["rabbitmq.urls"], s["queues"] = "rabbitmq", at, name
	return s
}

func onSQS(t *testing.T) map[string]string {
	t.Helper()
	at, name := testserver.SQS(t), "webhook-kills-"+strings.ToLower(rand.Text()[:10])
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		client := awssqs.New(awssqs.Options{
			Region: "us-east-1", BaseEndpoint: aws.String(at), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		})
		for _, full := range []string{name, name + "-dlq"} {
			found, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: aws.String(full)})
			if err == nil {
				_, err = client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: found.QueueUrl})
			}
			if err != nil {
				t.Errorf("delete %s: %v", full, err)
			}
		}
	})
	s := onPostgres(t)
	s["broker"], s["sqs.endpoint"], s["sqs.region"], s["queues"] = "sqs", at, "us-east-1", name
	return s
}
