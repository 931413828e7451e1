package rabbitmq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// TestLateAcks lets handlers end after a reconnect: case I3.
func TestLateAcks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newProxy(t, r.url)
	cfg := r.config()
	cfg.URLs = []string{p.url(r.url)}
	b := r.open(cfg)
	name := r.queue(b, "late")
	const n = 10
	pubs := make([]queue.Publication, n)
	for i := range pubs {
		pubs[i] = text(fmt.Sprint(i))
	}
	r.publish(b, name, pubs...)
	sub := r.subscribe(b, name, 30*time.Second, n)
	old := make([]*queue.Lease, n)
	for i := range old {
		old[i] = r.receive(sub)
	}
	p.cut()
	again := make([]*queue.Lease, n)
	for i := range again {
		again[i] = r.receive(sub)
		if again[i].DeliveryCount != 2 {
			t.Errorf("DeliveryCount after the cut is %d, want 2", again[i].DeliveryCount)
		}
	}
	channel := sub.current()
	for i, l := range old {
		settle := []func() error{
			func() error { return l.Ack(t.Context()) },
			func() error { return l.Retry(t.Context(), 0, false) },
			func() error { return l.Release(t.Context()) },
			func() error { return l.Extend(t.Context(), time.Minute) },
		}[i%4]
		if err := settle(); !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("late settlement %d: error %v, want ErrLeaseLost", i, err)
		}
	}
	r.ack(again...)
	r.publishSoon(b, name, text("after"))
	if l := r.receive(sub); string(l.Body) != "after" {
		t.Errorf("received %q, want only what was published after the cut", l.Body)
	} else {
		r.ack(l)
	}
	if sub.current() != channel || channel.ch.IsClosed() {
		t.Error("the new channel was closed by late settlements")
	}
}

func (s *subscription) current() *consumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur
}

func TestFailover(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newProxy(t, r.url)
	dead, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "amqp://guest:guest@" + dead.Addr().String() + "/"
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := r.config()
	cfg.URLs = []string{gone, p.url(r.url), r.url}
	b := r.open(cfg)
	name := r.queue(b, "failover")
	sub := r.subscribe(b, name, 30*time.Second, 1)
	p.refuse.Store(true)
	p.cut() // only the last node is left
	r.eventually(func() error { return b.Publish(t.Context(), name, []queue.Publication{text("x")})[0].Err })
	r.ack(r.receive(sub))
}

// TestSecretsStayHidden looks for the password in everything that is said about connections that fail.
func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(serverURL(t))
	if err != nil {
		t.Fatal(err)
	}
	const secret = "h1dden%2Fp4ss"
	closed := "127.0.0.1:1"
	var logs bytes.Buffer
	for name, text := range map[string]string{
		"wrong password": "amqp://guest:" + secret + "@" + u.Host + "/",
		"nobody there":   "amqp://guest:" + secret + "@" + closed + "/",
		"bad port":       "amqp://guest:" + secret + "@host:port/",
		"bad scheme":     "http://guest:" + secret + "@host/",
		"bad escape":     "amqp://guest:" + secret + "%zz@host/",
		"space":          "amqp://guest:" + secret + "@ho st/",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		cfg := Config{URLs: []string{text}, Prefix: testPrefix, Logger: slog.New(slog.NewTextHandler(&logs, nil))}
		_, err := Open(ctx, cfg)
		cancel()
		if err == nil {
			t.Fatalf("%s: Open succeeded", name)
		}
		if s := err.Error() + logs.String(); strings.Contains(s, "h1dden") {
			t.Errorf("%s: the password shows in %q", name, s)
		}
	}
	_, err = Open(t.Context(), Config{URLs: []string{"amqp://h/"}, Management: "ftp://u:h1dden@h"})
	if err == nil || strings.Contains(err.Error(), "h1dden") {
		t.Errorf("management URL: error %v", err)
	}
	a, err := parseAddress("amqp://guest:" + secret + "@h/")
	if err != nil {
		t.Fatal(err)
	}
	if got := a.redact(fmt.Errorf("dial h1dden/p4ss and %s", a.url)).Error(); strings.Contains(got, "h1dden") {
		t.Errorf("redact leaves %q", got)
	}
}

// TestPermanentErrors says at once what waiting does not mend.
func TestPermanentErrors(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(serverURL(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"credentials":  "amqp://guest:no-such-password@" + u.Host + "/",
		"virtual host": "amqp://" + u.User.String() + "@" + u.Host + "/no-such-vhost",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		_, err := Open(ctx, Config{URLs: []string{text}, Prefix: testPrefix, Logger: slog.New(slog.DiscardHandler)})
		if err == nil || ctx.Err() != nil || errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("%s: Open returned %v, want a permanent error at once", name, err)
		}
		cancel()
	}
}

// TestPermanent tells apart what passes and what does not, whatever the password.
func TestPermanent(t *testing.T) {
	t.Parallel()
	a, err := parseAddress("amqp://user:not@h/")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"NOT_ALLOWED - vhost nope not found": true,
		"NOT_ALLOWED - access to vhost '/' refused for user 'user': connection limit (1) is reached": false,
	} {
		e := &amqp.Error{Code: amqp.NotAllowed, Reason: text, Server: true}
		for _, err := range []error{e, a.redact(fmt.Errorf("dial: %w: not", e))} {
			if permanent(err) != want {
				t.Errorf("permanent(%v) is %v", err, !want)
			}
		}
	}
}

// TestOpenWaits comes up before its broker does.
func TestOpenWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newProxy(t, r.url)
	p.refuse.Store(true)
	cfg := r.config()
	cfg.URLs = []string{p.url(r.url)}
	var logs bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&logs, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := Open(ctx, cfg); !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open without a broker: error %v, want ErrUnavailable and context.DeadlineExceeded", err)
	}
	// The worker waits for ever: its log has to say for what, and not at each attempt.
	if n := strings.Count(logs.String(), "no connection to the broker yet"); n != 2 || !strings.Contains(logs.String(), "connect to 127.0.0.1") {
		t.Errorf("the log says %d times why there is no connection, want once for each of 2:\n%s", n, logs.String())
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	time.AfterFunc(200*time.Millisecond, func() { p.refuse.Store(false) })
	r.open(cfg)
}
