package app_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/worker"
)

// What testdata/before holds is older than any retention by now.
var ageless = []string{"--set", "idempotency.retention=87600h", "--set", "dlq.retention=87600h", "--set", "kinds.note.max_age=80000h", "--set", "kinds.refuse.max_age=80000h"}

// withRefused is a record's setup with the kind refuse, which accepts now what it refused.
func (r *record) withRefused(reg *worker.Registry) error {
	worker.Handle(reg, worker.Kind[[]byte]{Name: "refuse"}, r.add)
	return r.setup(reg)
}

// TestWhatWasLeftBefore has today's worker go on with what the one of commit 4019d8e left: files, rows and messages (testdata/before/README.md).
func TestWhatWasLeftBefore(t *testing.T) {
	t.Parallel()
	t.Run("embedded file", func(t *testing.T) {
		t.Parallel()
		db := filepath.Join(t.TempDir(), "q.db")
		unzip(t, "testdata/before/queue.db.gz", db)
		received := make(chan string, 10)
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			received <- r.Header.Get("X-Shop") + " " + r.Header.Get("webhook-id") + " " + string(body)
		}))
		defer receiver.Close()
		_, port, err := net.SplitHostPort(receiver.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		env := beforeKey(t)
		open := append([]string{"--db", db, "--set", "webhook.ports=" + port, "--set", "webhook.allow_cidrs=127.0.0.0/8", "--set", "kinds.webhook.deliver.max_age=80000h"}, ageless...)
		ok(t, call(t, "", env, append([]string{"endpoints", "edit", "shop", "--url", receiver.URL, "--allow-http", "--header", "X-Shop=8"}, open...)...))
		var seen record
		program := startWith(t, env, seen.withRefused, append(open, "--admin-addr", "off")...)
		eventually.True(t, "the jobs ran", func() bool { return depth(t, db, "default") == [3]int{} })
		if got := <-received; !strings.HasPrefix(got, "8 ") || !strings.HasSuffix(got, `{"invoice":7}`) {
			t.Errorf("delivered %q", got)
		}
		ok(t, call(t, "", env, append([]string{"dlq", "replay", "--id", "dead.0", "--yes"}, open...)...))
		eventually.True(t, "the dead letter ran", func() bool { return len(seen.find("dead")) > 0 })
		if code := program.end(); code != 0 {
			t.Errorf("exit code %d\n%s", code, program.log)
		}
		for id, want := range map[string]string{
			"ready":   `ready "\x00\xff ready" key=k-ready dest=shop trace=00-y`,
			"delayed": `delayed "delayed" key=delayed dest= trace=`,
			"dead":    `dead "{\"card\":\"\\u0000é\"}" key=card-7 dest=bank trace=00-x`,
		} {
			if got := seen.find(id); got != want {
				t.Errorf("%s ran as %s, want %s", id, got, want)
			}
		}
		if got := seen.find("completed"); got != "" {
			t.Errorf("a completed job ran again: %s", got)
		}
	})
	t.Run("rows in PostgreSQL", func(t *testing.T) {
		t.Parallel()
		schema := loadBefore(t)
		env := beforeKey(t)
		db := filepath.Join(t.TempDir(), "q.db")
		open := append([]string{"--db", db, "--set", "postgres.url=" + testserver.Postgres(t), "--set", "postgres.schema=" + schema}, ageless...)
		ok(t, call(t, "", env, append([]string{"migrate", "up"}, open...)...))
		if out := ok(t, call(t, "", env, append([]string{"endpoints", "show", "shop", "--json"}, open...)...)); !strings.Contains(out, `"X-Shop"`) || !strings.Contains(out, "10s") {
			t.Errorf("the endpoint is %s", out)
		}
		var seen record
		program := startWith(t, env, seen.withRefused, append(open, "--set", "outbox.relay=true", "--admin-addr", "off")...)
		eventually.True(t, "the outbox row ran", func() bool { return seen.find("boxed") != "" })
		ok(t, call(t, "", env, append([]string{"dlq", "replay", "--id", "dead.0", "--yes"}, open...)...))
		eventually.True(t, "the dead letter ran", func() bool { return seen.find("dead") != "" })
		if code := program.end(); code != 0 {
			t.Errorf("exit code %d\n%s", code, program.log)
		}
		if got, want := seen.find("boxed"), `boxed "\x00\xff boxed" key=k-boxed dest=shop trace=00-z`; got != want {
			t.Errorf("ran as %s, want %s", got, want)
		}
		if got, want := seen.find("dead"), `dead "{\"card\":\"é\"}" key=card-7 dest=bank trace=00-x`; got != want {
			t.Errorf("ran as %s, want %s", got, want)
		}
	})
	t.Run("message in RabbitMQ", func(t *testing.T) {
		t.Parallel()
		prefix := "before." + strings.ToLower(rand.Text()[:8]) + "."
		open := append([]string{"--set", "broker=rabbitmq", "--set", "rabbitmq.urls=" + testserver.AMQP(t), "--set", "rabbitmq.prefix=" + prefix}, ageless...)
		ok(t, call(t, "", nil, append([]string{"queues", "create", "default"}, open...)...))
		publishAMQP(t, prefix, "default", amqp.Publishing{
			Headers: amqp.Table{"caisson": sentBefore}, DeliveryMode: amqp.Persistent, MessageId: "ab5e3b30c921ff9466-1", Body: []byte("\x00\xff sent"),
		})
		runSent(t, open)
	})
	t.Run("message in SQS", func(t *testing.T) {
		t.Parallel()
		prefix := "before-" + strings.ToLower(rand.Text()[:8]) + "-"
		endpoint := testserver.SQS(t)
		open := append([]string{"--set", "broker=sqs", "--set", "sqs.endpoint=" + endpoint, "--set", "sqs.region=us-east-1", "--set", "sqs.prefix=" + prefix}, ageless...)
		ok(t, call(t, "", nil, append([]string{"queues", "create", "default"}, open...)...))
		sendSQS(t, endpoint, prefix+"default", `{"caisson_sqs":1,"headers":{"caisson":`+quoted(sentBefore)+`},"body":"base64"}`, "AP8gc2VudA==")
		runSent(t, open)
	})
}

// sentBefore is the envelope of job sent.
const sentBefore = `{"v":1,"id":"sent","kind":"note","key":"k-sent","destination":"shop","enqueued_at":"2026-12-01T00:39:54.221598665Z","headers":{"traceparent":"00-z"}}`

// runSent runs a worker until it has had the job sent.
func runSent(t *testing.T, open []string) {
	t.Helper()
	var seen record
	program := startWith(t, nil, seen.withRefused, append(open, "--admin-addr", "off")...)
	eventually.True(t, "the message ran", func() bool { return seen.find("sent") != "" })
	if code := program.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, program.log)
	}
	if got, want := seen.find("sent"), `sent "\x00\xff sent" key=k-sent dest=shop trace=00-z`; got != want {
		t.Errorf("ran as %s, want %s", got, want)
	}
}

// find returns what a job ran with; "" if it did not.
func (r *record) find(id string) string {
	for _, line := range r.sorted() {
		if strings.HasPrefix(line, id+" ") {
			return line
		}
	}
	return ""
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }

// beforeKey returns the variables that name a copy of the secrets' key which only its owner reads.
func beforeKey(t *testing.T) []string {
	t.Helper()
	key, err := os.ReadFile("testdata/before/key")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, key, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"CAISSON_WEBHOOK_SECRET_KEY_FILE=" + name}
}

func unzip(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	in, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(in); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// loadBefore makes a schema as it was and returns its name.
func loadBefore(t *testing.T) string {
	t.Helper()
	pool, schema := testserver.Schema(t)
	dump, err := os.ReadFile("testdata/before/store.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), testserver.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	name := pgx.Identifier{schema}.Sanitize()
	if _, err := pool.Exec(t.Context(), "DROP SCHEMA "+name+" CASCADE"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.PgConn().Exec(t.Context(), strings.ReplaceAll(string(dump), "caisson_before", schema)).ReadAll(); err != nil {
		t.Fatal(err)
	}
	return schema
}

func publishAMQP(t *testing.T, prefix, queue string, message amqp.Publishing) {
	t.Helper()
	conn, err := amqp.Dial(testserver.AMQP(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range []string{queue, queue + ".dlq", "unroutable"} {
			if _, err := ch.QueueDelete(prefix+name, false, false, false); err != nil {
				t.Error(err)
			}
		}
	})
	if err := ch.PublishWithContext(t.Context(), "", prefix+queue, true, false, message); err != nil {
		t.Fatal(err)
	}
}

func sendSQS(t *testing.T, endpoint, queue, attribute, body string) {
	t.Helper()
	client := awssqs.New(awssqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(endpoint), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	found, err := client.GetQueueUrl(t.Context(), &awssqs.GetQueueUrlInput{QueueName: aws.String(queue)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, name := range []string{queue, queue + "-dlq"} {
			found, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: aws.String(name)})
			if err == nil {
				_, err = client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: found.QueueUrl})
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	_, err = client.SendMessage(t.Context(), &awssqs.SendMessageInput{
		QueueUrl: found.QueueUrl, MessageBody: aws.String(body),
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{"caisson": {DataType: aws.String("String"), StringValue: aws.String(attribute)}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
