package backends_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// loadSet loads the configuration that keys and values give.
func loadSet(t *testing.T, keys map[string]string) *config.Config {
	t.Helper()
	cfg, _, err := config.Load(config.Sources{Flags: keys})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// What only checks knows the real driver and opens nothing.
func TestOffline(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "claims.db")
	for _, tt := range []struct {
		keys            map[string]string
		name            string
		claims, letters bool
	}{
		{map[string]string{"embedded.path": path}, "embedded", true, true},
		{map[string]string{"embedded.path": path, "store": "none"}, "embedded", false, true},
		{map[string]string{"broker": "rabbitmq", "rabbitmq.urls": "amqp://nobody.invalid"}, "rabbitmq", false, false},
		{map[string]string{"broker": "sqs", "store": "sqlite", "sqlite.single_host": "true", "sqlite.path": path}, "sqs", true, true},
		{map[string]string{"broker": "sqs", "store": "sqlite", "sqlite.single_host": "true", "sqlite.path": path, "dlq.backend": "broker"}, "sqs", true, false},
		{map[string]string{"embedded.path": path, "postgres.url": "postgres://nobody.invalid/d"}, "embedded", true, true},
		{map[string]string{"broker": "rabbitmq", "postgres.url": "postgres://nobody.invalid/d", "dlq.backend": "broker"}, "rabbitmq", true, false},
	} {
		s, err := backends.Offline(t.Context(), loadSet(t, tt.keys))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Broker.Capabilities("q").Name; got != tt.name || (s.Claims != nil) != tt.claims || (s.Letters != nil) != tt.letters || s.DeadLetters == nil {
			t.Errorf("%v: broker %s, claims %v, letters %v", tt.keys, got, s.Claims, s.Letters)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was made")
	}
}

// What is wrong with the files of TLS is found before anything is opened.
func TestOfflineReadsCertificates(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := backends.Offline(t.Context(), loadSet(t, map[string]string{"postgres.url": "postgres://h/d?sslmode=verify-full&sslrootcert=" + empty + ".none"})); err == nil ||
		!strings.Contains(err.Error(), "postgres.url") || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v, %v", s, err)
	}
	for key, want := range map[string]string{empty: "holds no certificate", empty + ".none": "no such file"} {
		cfg := loadSet(t, map[string]string{"broker": "rabbitmq", "rabbitmq.urls": "amqps://h", "rabbitmq.tls.ca_file": key})
		s, err := backends.Offline(t.Context(), cfg)
		if err == nil {
			t.Fatal(errors.Join(errors.New("accepted"), s.Close()))
		}
		if !strings.Contains(err.Error(), "rabbitmq.tls.ca_file") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
}

func TestAddressHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	for want, keys := range map[string]map[string]string{
		"./caisson.db":         {},
		"a:5672,b":             {"broker": "rabbitmq", "rabbitmq.urls": "amqp://u:secret@a:5672/v,amqps://u:secret@b/v?x=secret"},
		"127.0.0.1:4566":       {"broker": "sqs", "sqs.endpoint": "http://127.0.0.1:4566", "sqs.region": "eu-central-1"},
		"eu-central-1":         {"broker": "sqs", "sqs.region": "eu-central-1"},
		"the SDK's own region": {"broker": "sqs"},
	} {
		if got := backends.Address(loadSet(t, keys)); got != want {
			t.Errorf("%v: %q, want %q", keys, got, want)
		}
	}
}

// Without a prefix nothing tells our queues in an account of SQS from others': dead letters of queues that are not configured are left alone.
func TestDeadLettersOfOthersInAnAccount(t *testing.T) {
	t.Parallel()
	url := testserver.SQS(t)
	ours, theirs := "stack-"+strings.ToLower(rand.Text()[:8]), "stack-"+strings.ToLower(rand.Text()[:8])
	s, err := backends.Open(t.Context(), loadSet(t, map[string]string{
		"broker": "sqs", "sqs.endpoint": url, "sqs.region": "us-east-1", "queues": ours,
	}), backends.Create, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	t.Cleanup(func() { deleteQueues(t, url, ours, ours+"-dlq", theirs, theirs+"-dlq") })
	for _, name := range []string{ours, theirs} {
		if err := s.Broker.CreateQueue(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	depth, err := s.BrokerDLQ.Depth(t.Context())
	if err != nil || len(depth.Dead) != 1 || depth.Dead[0].Queue != ours {
		t.Errorf("looked after %+v, %v; want %s alone", depth.Dead, err, ours)
	}
}

func deleteQueues(t *testing.T, url string, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	client := awssqs.New(awssqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(url), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	for _, name := range names {
		found, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: aws.String(name)})
		if err == nil {
			_, err = client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: found.QueueUrl})
		}
		if err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	}
}
