package sqs_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue/sqs"
)

const region = "us-east-1"

// rawClient is a client without anything of ours, for looking and for playing other producers.
func rawClient(url string, transport http.RoundTripper) *awssqs.Client {
	options := awssqs.Options{
		Region: region, BaseEndpoint: aws.String(url), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: &http.Client{Transport: transport},
	}
	if chain, err := awsconfig.LoadDefaultConfig(context.Background(), awsconfig.WithEC2IMDSClientEnableState(imds.ClientDisabled)); err == nil {
		if _, err := chain.Credentials.Retrieve(context.Background()); err == nil {
			options.Credentials = chain.Credentials // for SQS itself
		}
	}
	return awssqs.New(options)
}

// uniquePrefix is a prefix of queue names that nobody else uses. Queues that begin with it are deleted at the end of the test.
func uniquePrefix(t testing.TB, url string) string {
	t.Helper()
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	prefix := "ct" + hex.EncodeToString(random[:]) + "-"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		client := rawClient(url, &http.Transport{DisableKeepAlives: true})
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
	return prefix
}

// realConfig is a configuration for queues of the test's own on a real server.
func realConfig(t testing.TB) sqs.Config {
	t.Helper()
	url := testserver.SQS(t)
	return sqs.Config{Endpoint: url, Region: region, Prefix: uniquePrefix(t, url), Logger: slog.New(slog.DiscardHandler)}
}

func open(t testing.TB, cfg sqs.Config) *sqs.Broker {
	t.Helper()
	b, err := sqs.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
