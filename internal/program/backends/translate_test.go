package backends

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue/rabbitmq"
	"github.com/caisson-go/caisson/queue/sqs"
)

// Every key reaches its driver, and a zero stays one.
func TestTranslation(t *testing.T) {
	t.Parallel()
	cfg, _, err := config.Load(config.Sources{Flags: map[string]string{
		"broker": "rabbitmq", "rabbitmq.urls": "amqp://u:p@a/v amqp://b", "rabbitmq.name": "n", "rabbitmq.prefix": "x.", "rabbitmq.heartbeat": "5s",
		"rabbitmq.consumer_timeout": "0s", "rabbitmq.max_body": "2048", "rabbitmq.delivery_limit": "50",
		"rabbitmq.window": "9", "rabbitmq.management": "http://u:p@a:15672",
		"sqs.region": "r", "sqs.endpoint": "http://e", "sqs.prefix": "s-", "sqs.account_id": "123456789012", "sqs.create": "false",
		"sqs.max_receive_count": "99", "sqs.fifo_batch": "7", "sqs.fair_groups": "false", "sqs.linger": "0s",
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := rabbitMQConfig(cfg.RabbitMQ)
	want := rabbitmq.Config{
		URLs: []string{"amqp://u:p@a/v", "amqp://b"}, Name: "n", Prefix: "x.", Heartbeat: 5 * time.Second, ConsumerTimeout: new(time.Duration(0)), MaxBody: 2048,
		DeliveryLimit: 50, Window: 9, Management: "http://u:p@a:15672",
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	cfg.Queues = []config.Queue{{Name: "a"}, {Name: "b", UnwrapSNS: true}}
	wantSQS := sqs.Config{
		Region: "r", Endpoint: "http://e", Prefix: "s-", AccountID: "123456789012", NoCreate: true, MaxReceiveCount: 99, UnwrapSNS: []string{"b"},
		FIFOBatch: 7, NoFairGroups: true, Linger: new(time.Duration(0)),
	}
	if diff := cmp.Diff(wantSQS, sqsConfig(cfg)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
