package testserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
)

// The tests on the package's node run one after the other: they stop and block it.

// long leaves a test to make soak. The fault matrices restart, kill and block such nodes in every run, and fail if that does not work.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("SOAK") == "" {
		t.Skip("starts nodes of its own: make soak")
	}
}

// TestNodeKeepsWhatItConfirmed restarts and kills one node, and finds the same message each time.
func TestNodeKeepsWhatItConfirmed(t *testing.T) {
	long(t)
	r := PackageRabbitMQ(t)
	publish(t, r.URL(), "kept", "a message")
	r.Restart(t)
	peek(t, r.URL(), "kept", "a message")
	r.Kill(t)
	if conn, err := dialAMQP(t.Context(), r.URL()); err == nil {
		_ = conn.Close()
		t.Fatal("a killed node answers")
	}
	r.Start(t)
	peek(t, r.URL(), "kept", "a message")
}

func TestNodeAlarmBlocksPublishers(t *testing.T) {
	long(t)
	r := PackageRabbitMQ(t)
	conn, ch := open(t, r.URL())
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 2))
	r.MemoryAlarm(t, true)
	// Only who publishes is blocked.
	if err := ch.PublishWithContext(t.Context(), "", "nowhere", false, false, amqp.Publishing{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		select {
		case b := <-blocked:
			if b.Active != want {
				t.Fatalf("blocked is %v, want %v", b.Active, want)
			}
		case <-time.After(testTimeout):
			t.Fatalf("no notice that blocked is %v", want)
		}
		if want {
			r.MemoryAlarm(t, false)
		}
	}
	// What an earlier test left behind is gone with the next call.
	r.MemoryAlarm(t, true)
	PackageRabbitMQ(t)
	publish(t, r.URL(), "flows again", "a message")
}

func TestNodeBehindProxy(t *testing.T) {
	long(t)
	r := PackageRabbitMQ(t)
	p := StartProxy(t, r.Addr())
	conn, _ := open(t, p.URL(r.URL()))
	if n := r.Connections(t); n != 1 {
		t.Fatalf("%d connections, want 1", n)
	}
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	p.Drop()
	select {
	case <-closed: //nolint:errcheck // that it was cut is all that matters
	case <-time.After(testTimeout):
		t.Fatal("the client does not see that the connection was cut")
	}
	eventually.True(t, "the node's end of the connection is gone", func() bool { return r.Connections(t) == 0 })
	publish(t, p.URL(r.URL()), "through the proxy", "a message")
}

func TestNodeWithManagement(t *testing.T) {
	long(t)
	t.Parallel()
	r := StartRabbitMQWith(t, RabbitMQConfig{Management: true, Conf: []string{"consumer_timeout = 2000"}})
	if r.Management() == "" {
		t.Fatal("no URL of the management API")
	}
	if got := r.Ctl(t, "eval", "application:get_env(rabbit, consumer_timeout)."); got != "{ok,2000}" {
		t.Fatalf("consumer_timeout is %s, want {ok,2000}", got)
	}
	dir := r.dir
	if !mentioned(t, dir) {
		t.Fatal("the test does not find the running node")
	}
	if err := r.remove(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "no process of the node is left", func() bool { return !mentioned(t, dir) })
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("its directory is left: %v", err)
	}
}

// TestNodeThatCannotStart says so at once, with the reason.
func TestNodeThatCannotStart(t *testing.T) {
	t.Parallel()
	r := newRabbitMQ(t, RabbitMQConfig{Conf: []string{"no_such_setting = 1"}})
	t.Cleanup(func() {
		if err := r.remove(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := r.host.start(ctx); err != nil {
		t.Fatal(err)
	}
	r.up = true
	if err := await(ctx, r, r.host); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Fatalf("got %v, want an error that names the setting", err)
	}
}

func TestContainersHaveTheImageOfCompose(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/services/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("image: "+image+"\n")) {
		t.Fatalf("compose.yaml has another image than %s", image)
	}
}

func open(t *testing.T, url string) (*amqp.Connection, *amqp.Channel) {
	t.Helper()
	conn, err := dialAMQP(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.CloseDeadline(time.Now().Add(testTimeout)); err != nil && !errors.Is(err, amqp.ErrClosed) {
			t.Error(err)
		}
	})
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return conn, ch
}

// publish declares a quorum queue and waits until the message is confirmed.
func publish(t *testing.T, url, queue, body string) {
	t.Helper()
	_, ch := open(t, url)
	if _, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	msg := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)}
	confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false, msg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if ok, err := confirm.WaitContext(ctx); err != nil || !ok {
		t.Fatalf("not confirmed: %v", err)
	}
}

// peek finds the message at the queue's head and leaves it there. A queue without a leader answers with an error for a while.
func peek(t *testing.T, url, queue, body string) {
	t.Helper()
	var last error
	eventually.True(t, "the queue has its message", func() bool {
		conn, err := dialAMQP(t.Context(), url)
		if err != nil {
			last = err
			return false
		}
		defer func() { _ = conn.Close() }() // gives the message back
		ch, err := conn.Channel()
		if err != nil {
			last = err
			return false
		}
		msg, ok, err := ch.Get(queue, false)
		last = fmt.Errorf("got %q, %v, %w", msg.Body, ok, err)
		return err == nil && ok && string(msg.Body) == body
	})
	if t.Failed() {
		t.Fatal(last)
	}
}

// mentioned reports whether a process has dir in its environment or arguments, as everything that belongs to a node has.
func mentioned(t *testing.T, dir string) bool {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err == nil && bytes.Contains(text, []byte(dir)) {
				return true
			}
		}
	}
	return false
}
