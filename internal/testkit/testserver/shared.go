package testserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The variables that name a server other than the one of `make services`.
const (
	// AMQPEnv holds an AMQP URL with user, password and virtual host.
	AMQPEnv = "CAISSON_TEST_AMQP_URL"
	// SQSEnv holds the endpoint of an SQS server.
	SQSEnv = "CAISSON_TEST_SQS_ENDPOINT"
	// PostgresEnv holds a connection URL of PostgreSQL.
	PostgresEnv = "CAISSON_TEST_POSTGRES_URL"
)

// Where `make services` has them.
const (
	defaultAMQP     = "amqp://guest:guest@127.0.0.1:5672/"
	defaultSQS      = "http://127.0.0.1:4566"
	defaultPostgres = "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"
)

// answerTimeout bounds how long a server may take to answer on a loaded machine.
const answerTimeout = time.Minute

// AMQP returns the URL of the shared RabbitMQ.
func AMQP(t testing.TB) string {
	t.Helper()
	return shared(t, "RabbitMQ", AMQPEnv, defaultAMQP, askAMQP)
}

// SQS returns the endpoint of the shared SQS server.
func SQS(t testing.TB) string {
	t.Helper()
	return shared(t, "the SQS server", SQSEnv, defaultSQS, askSQS)
}

// Postgres returns the connection URL of the shared PostgreSQL.
func Postgres(t testing.TB) string {
	t.Helper()
	return shared(t, "PostgreSQL", PostgresEnv, defaultPostgres, askPostgres)
}

func shared(t testing.TB, name, variable, fallback string, ask func(context.Context, *url.URL) error) string {
	t.Helper()
	raw, err := find(t.Context(), name, variable, fallback, ask)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// find returns the address of a server that answers, or an error that says what to do. The address may hold a password, so no
// error quotes it.
func find(ctx context.Context, name, variable, fallback string, ask func(context.Context, *url.URL) error) (string, error) {
	raw := cmp.Or(os.Getenv(variable), fallback)
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%s does not hold a URL with a host", variable)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := ask(ctx, u); err != nil {
		return "", fmt.Errorf("%s does not answer at %s (run `make services`, or set %s to one that runs): %w", name, u.Host, variable, err)
	}
	return raw, nil
}

// askAMQP opens a connection and a channel: a broker that is starting, or blocks, does the first but not the second.
func askAMQP(ctx context.Context, u *url.URL) error {
	conn, err := dialAMQP(ctx, u.String())
	if err != nil && strings.Contains(err.Error(), "i/o timeout") { // the library keeps the text and not the error
		return fmt.Errorf("%w: it accepts connections and says nothing. A RabbitMQ 3.10 does that when quorum queues have reserved all of its "+
			"file handles, three each (`rabbitmqctl eval 'file_handle_cache:info().'`): delete queues that tests have left, or raise its limit", err)
	}
	if err != nil {
		return err
	}
	_, err = conn.Channel()
	return errors.Join(err, conn.Close())
}

// dialAMQP connects under ctx, which amqp091-go does not know.
func dialAMQP(ctx context.Context, raw string) (*amqp.Connection, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(answerTimeout)
	}
	return amqp.DialConfig(raw, amqp.Config{
		Heartbeat: 10 * time.Second,
		Locale:    "en_US",
		Dial: func(network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			// For the handshake; the library clears it afterwards.
			if err := conn.SetDeadline(deadline); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return conn, nil
		},
	})
}

// askSQS lists queues. Real SQS refuses the made-up signature, which proves as well that it is there.
func askSQS(ctx context.Context, u *url.URL) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader("{}"))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "AmazonSQS.ListQueues")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0")
	// A connection of its own that ends with the answer, so that no goroutine waits for the next one.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusForbidden {
		return fmt.Errorf("it answers ListQueues with %s, which no SQS server does", resp.Status)
	}
	return nil
}
