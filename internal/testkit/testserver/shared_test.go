package testserver

import (
	"context"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		ClosePackageRabbitMQ()
		os.Exit(code)
	}))
}

func TestSharedServersAnswer(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{"amqp": AMQP(t), "sqs": SQS(t), "postgres": Postgres(t)} {
		if raw == "" {
			t.Errorf("%s: no URL", name)
		}
	}
}

// TestMissingServersAreExplained asks a port where nothing listens, and one where something says nonsense.
func TestMissingServersAreExplained(t *testing.T) {
	nonsense := listenNonsense(t)
	for _, s := range []struct {
		name, variable, url string
		ask                 func(context.Context, *url.URL) error
	}{
		{"RabbitMQ", AMQPEnv, "amqp://someone:hush@HOST/", askAMQP},
		{"the SQS server", SQSEnv, "http://someone:hush@HOST", askSQS},
		{"PostgreSQL", PostgresEnv, "postgres://someone:hush@HOST/db", askPostgres},
	} {
		for _, host := range []string{freeAddr(t), nonsense} {
			t.Setenv(s.variable, strings.Replace(s.url, "HOST", host, 1))
			_, err := find(t.Context(), s.name, s.variable, "", s.ask)
			if err == nil {
				t.Errorf("%s at %s: no error", s.name, host)
				continue
			}
			for _, want := range []string{s.name, host, "make services", s.variable} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not mention %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the error shows the password: %v", err)
			}
		}
		t.Setenv(s.variable, "no url")
		if _, err := find(t.Context(), s.name, s.variable, "", s.ask); err == nil || !strings.Contains(err.Error(), s.variable) {
			t.Errorf("%s: want an error that names the variable, got %v", s.name, err)
		}
	}
}

// freeAddr returns an address at which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// listenNonsense answers whatever comes with a line that no protocol knows.
func listenNonsense(t *testing.T) string {
	t.Helper()
	return listenFor(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 512))
		_, _ = conn.Write([]byte("Quack, quack, quack.\n"))
	})
}

// listenFor gives each connection to serve, and waits for all of them when the test ends.
func listenFor(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}
