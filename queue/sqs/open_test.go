package sqs_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/sqs"
)

// bareEnv takes everything away that the SDK's chain could find on this machine.
func bareEnv(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func TestOpenRefuses(t *testing.T) {
	bareEnv(t)
	for name, c := range map[string]struct {
		cfg  sqs.Config
		says string
	}{
		"no region":          {sqs.Config{}, "AWS_REGION"},
		"no such region":     {sqs.Config{Region: "us east"}, `"us east" is no region`},
		"no credentials":     {sqs.Config{Region: region}, "AWS_ACCESS_KEY_ID"},
		"endpoint of AWS":    {sqs.Config{Region: region, Endpoint: "https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com"}, "no AWS credentials"},
		"password":           {sqs.Config{Region: region, Endpoint: "http://ann:secret@127.0.0.1:1"}, "user or password"},
		"no URL":             {sqs.Config{Region: region, Endpoint: "ann:secret@host"}, "no URL"},
		"receive count":      {sqs.Config{Region: region, MaxReceiveCount: 1001}, "1001"},
		"FIFO batch":         {sqs.Config{Region: region, FIFOBatch: 11}, "11"},
		"prefix":             {sqs.Config{Region: region, Prefix: "a.b"}, "prefix"},
		"linger":             {sqs.Config{Region: region, Linger: new(time.Duration(1 << 40))}, "linger"},
		"negative linger":    {sqs.Config{Region: region, Linger: new(time.Duration(-1))}, "linger"},
		"empty credentials":  {sqs.Config{AWS: &aws.Config{Region: region}}, "no AWS credentials"},
		"negative FIFOBatch": {sqs.Config{Region: region, FIFOBatch: -1}, "-1"},
	} {
		b, err := sqs.Open(t.Context(), c.cfg)
		if err == nil {
			_ = b.Close()
			t.Errorf("%s: opened", name)
			continue
		}
		if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %q, want one that says %q and no secret", name, err, c.says)
		}
	}
}

// Made-up credentials are used only where no real ones are, and never for AWS; the log says so.
func TestOpenCredentials(t *testing.T) {
	bareEnv(t)
	var log bytes.Buffer
	cfg := sqs.Config{Region: region, Endpoint: "http://127.0.0.1:1", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	used := func() string {
		header := ""
		cfg.Transport = transportFunc(func(r *http.Request) (*http.Response, error) {
			header = r.Header.Get("Authorization")
			return nil, errors.New("no server")
		})
		b := open(t, cfg)
		_ = b.CreateQueue(t.Context(), "jobs") // it fails
		_ = b.Close()
		return header
	}
	if header := used(); !strings.Contains(header, "Credential=test/") || !strings.Contains(log.String(), "made-up") {
		t.Errorf("header %q, log %q", header, log.String())
	}
	log.Reset()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDOFTHECHAIN")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	if header := used(); !strings.Contains(header, "Credential=AKIDOFTHECHAIN/") || log.Len() > 0 {
		t.Errorf("header %q, log %q", header, log.String())
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A refusal names action and queue, is not repeated as if it were an outage, and shows no secret.
func TestDenied(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		r.publish("jobs", texts(1)...)
		sub := r.subscribe("jobs", 0, 2)
		l := r.one(sub, 1<<40)
		r.from(func(sqstest.Call) sqstest.Fault { return sqstest.Denied })
		fresh := r.open()
		_, receiveErr := sub.Receive(r.Context(), 1)
		_, listErr := r.b.Queues(r.Context())
		for action, err := range map[string]error{
			"SendMessage":             r.b.Publish(r.Context(), "jobs", texts(1))[0].Err,
			"ReceiveMessage":          receiveErr,
			"DeleteMessage":           l.Ack(r.Context()),
			"ChangeMessageVisibility": l.Retry(r.Context(), 0, false),
			"GetQueueUrl":             fresh.CreateQueue(r.Context(), "jobs"),
			"ListQueues":              listErr,
		} {
			if err == nil || errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "sqs:"+action) || strings.Contains(err.Error(), "test/") {
				t.Errorf("%s: error %v, want a permanent one that names the action", action, err)
			}
			if action != "ListQueues" && err != nil && !strings.Contains(err.Error(), `"jobs"`) {
				t.Errorf("%s: error %v does not name the queue", action, err)
			}
		}
		if !errors.Is(listErr, errors.ErrUnsupported) {
			t.Errorf("ListQueues: error %v, want ErrUnsupported: who may not list looks after the queues that it knows", listErr)
		}
	})
}

func TestCreateQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{Prefix: "app-", MaxReceiveCount: 77}, func(r *rig) {
		ask := func(full string) map[string]string {
			out, err := r.raw().GetQueueAttributes(r.Context(), &awssqs.GetQueueAttributesInput{QueueUrl: aws.String(full), AttributeNames: []types.QueueAttributeName{"All"}})
			if err != nil {
				t.Fatal(err)
			}
			return out.Attributes
		}
		for full, dlq := range map[string]string{"app-jobs": "app-jobs-dlq", "app-jobs.fifo": "app-jobs-dlq.fifo"} {
			a, d := ask(full), ask(dlq)
			if !strings.Contains(a["RedrivePolicy"], d["QueueArn"]) || !strings.Contains(a["RedrivePolicy"], "77") {
				t.Errorf("%s: redrive policy %s", full, a["RedrivePolicy"])
			}
			if a["MessageRetentionPeriod"] != "604800" || d["MessageRetentionPeriod"] != "1209600" || d["RedrivePolicy"] != "" {
				t.Errorf("%s: attributes %v and of the DLQ %v", full, a, d)
			}
		}
		r.set("app-jobs", map[string]string{"MessageRetentionPeriod": "3600"})
		b := r.open()
		if err := b.CreateQueue(r.Context(), "jobs"); err != nil || ask("app-jobs")["MessageRetentionPeriod"] != "3600" {
			t.Errorf("a queue that is there: error %v, attributes %v", err, ask("app-jobs"))
		}
		infos, err := b.Queues(r.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range infos {
			names = append(names, i.Name)
		}
		if got := strings.Join(names, " "); got != "jobs jobs.dlq jobs.fifo jobs.fifo.dlq" {
			t.Errorf("queues %q", got)
		}
	})
}

func TestNoCreate(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]sqs.Config{"not wanted": {NoCreate: true}, "another account": {AccountID: "123456789012"}} {
		b := open(t, fakeConfig(sqstest.NewServer(), cfg))
		err := b.CreateQueue(t.Context(), "jobs.fifo")
		if !errors.Is(err, queue.ErrQueueNotFound) || !strings.Contains(err.Error(), `"jobs.fifo" with the dead-letter queue "jobs-dlq.fifo"`) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDoneContext(t *testing.T) {
	t.Parallel()
	b := open(t, fakeConfig(sqstest.NewServer(), sqs.Config{}))
	defer func() { _ = b.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Depth(ctx, "jobs"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
