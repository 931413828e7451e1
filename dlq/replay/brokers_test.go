package replay_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/queue/rabbitmq"
	"github.com/caisson-go/caisson/queue/sqs"
)

// world is a broker and a store that processes share. A process of a test is told of it in its environment.
type world struct {
	Broker string // embedded, rabbitmq or sqs
	Where  string // its file, URL or endpoint
	Prefix string // of the queues
	// Postgres and Schema have the dead letters. Without, they are in the embedded queue's file.
	Postgres, Schema string
}

// worlds are each broker with dead letters in PostgreSQL, and the embedded one with everything in its file.
func worlds(t *testing.T, do func(t *testing.T, w world)) {
	t.Helper()
	embedded := func(t *testing.T) world {
		t.Helper()
		return world{Broker: "embedded", Where: filepath.Join(t.TempDir(), "caisson.db"), Prefix: "t-"}
	}
	for name, make := range map[string]func(t *testing.T) world{
		"embedded, letters in its file": embedded,
		"embedded":                      func(t *testing.T) world { return inDatabase(t, embedded(t)) },
		"rabbitmq": func(t *testing.T) world {
			return inDatabase(t, world{Broker: "rabbitmq", Where: testserver.AMQP(t), Prefix: "dlq-" + unique()})
		},
		"sqs": func(t *testing.T) world {
			return inDatabase(t, world{Broker: "sqs", Where: testserver.SQS(t), Prefix: "dlq-" + unique()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			do(t, make(t))
		})
	}
}

func unique() string { return strings.ToLower(rand.Text()[:12]) + "-" }

// inDatabase adds a schema.
func inDatabase(t *testing.T, w world) world {
	t.Helper()
	w.Postgres = testserver.Postgres(t)
	_, w.Schema = testserver.Schema(t)
	return w
}

// amqpPrefix keeps what tests make apart from what others have on the machine's broker.
const amqpPrefix = "cs1."

var quiet = slog.New(slog.DiscardHandler)

func (w world) broker(ctx context.Context) (queue.Broker, error) {
	switch w.Broker {
	case "embedded":
		return embedded.Open(ctx, embedded.Config{Path: w.Where})
	case "rabbitmq":
		return rabbitmq.Open(ctx, rabbitmq.Config{URLs: []string{w.Where}, Prefix: amqpPrefix, Logger: quiet})
	case "sqs":
		return sqs.Open(ctx, sqs.Config{Endpoint: w.Where, Region: "us-east-1", Logger: quiet})
	}
	return nil, fmt.Errorf("no broker %q", w.Broker)
}

// open opens both and passes them to do.
func (w world) open(ctx context.Context, do func(store dlq.Store, b queue.Broker) error) error {
	b, err := w.broker(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if w.Postgres == "" {
		store, err := sqlite.Open(ctx, sqlite.Config{Path: b.(*embedded.Broker).Path()})
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }()
		return do(store, b)
	}
	pool, err := pgdb.Open(ctx, pgdb.Config{URL: w.Postgres})
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := postgres.New(pool, postgres.Config{Schema: w.Schema})
	if err != nil {
		return err
	}
	return do(store, b)
}

// letter is [letter] from a queue, with what the broker can carry.
func (w world) letter(t *testing.T, n int, name string) dlq.Entry {
	t.Helper()
	e := dlqtest.Letter(t, n, nil)
	e.Queue = name
	if w.Broker == "sqs" { // which carries UTF-8 only
		e.Message.Headers["reply-to"] = "somewhere"
	}
	return e
}

// queues makes queues and has them deleted with the test.
func (w world) queues(t *testing.T, b queue.Broker, bases ...string) (names []string) {
	t.Helper()
	for _, base := range bases {
		names = append(names, w.Prefix+base)
		if err := b.CreateQueue(t.Context(), w.Prefix+base); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		var err error
		switch w.Broker {
		case "rabbitmq":
			err = w.deleteAMQP(names)
		case "sqs":
			err = w.deleteSQS(ctx)
		}
		if err != nil {
			t.Errorf("delete the queues %s*: %v", w.Prefix, err)
		}
	})
	return names
}

func (w world) deleteAMQP(names []string) error {
	conn, err := amqp.Dial(w.Where)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, name := range names {
		for _, full := range []string{amqpPrefix + name, amqpPrefix + queue.DLQ(name)} {
			if _, err := ch.QueueDelete(full, false, false, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w world) deleteSQS(ctx context.Context) error {
	client := awssqs.New(awssqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(w.Where), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	out, err := client.ListQueues(ctx, &awssqs.ListQueuesInput{QueueNamePrefix: aws.String(w.Prefix)})
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

// take receives and acks what is in a queue: at least n messages, and what comes for a while after them.
func take(t *testing.T, b queue.Broker, name string, n int) (messages []queue.Message) {
	t.Helper()
	sub, err := b.Subscribe(t.Context(), name, queue.SubscribeConfig{Slots: 100, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	for {
		wait := 30 * time.Second
		if len(messages) >= n {
			wait = 500 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		leases, err := sub.Receive(ctx, 100)
		cancel()
		for _, l := range leases {
			messages = append(messages, l.Message)
			if err := l.Settle(t.Context(), queue.Settlement{Action: queue.ActionAck}); err != nil {
				t.Fatal(err)
			}
		}
		if len(leases) == 0 {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			return messages
		}
	}
}

func (w world) environment() []string {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err) // strings only
	}
	return []string{replayChildEnv + "=" + string(text)}
}
