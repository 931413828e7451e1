package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// TestMain also serves as the program's own processes.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "fleet:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// A shortened form, in which nothing is judged that depends on the machine.
func TestFleet(t *testing.T) {
	t.Parallel()
	small := plan{Endpoints: 300, Rate: 60, For: 8 * time.Second, Seed: 7}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		p := small
		p.Broker = brokerEmbedded
		tell(t, p)
	})
	t.Run("rabbitmq", func(t *testing.T) {
		t.Parallel()
		p := small
		p.Broker, p.URL, p.For = brokerRabbitMQ, testserver.AMQP(t), 4*time.Second
		tell(t, p)
	})
}

func tell(t *testing.T, p plan) {
	t.Helper()
	var out strings.Builder
	r, err := both(t.Context(), p, false, &out)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.judge(counting); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := lines[len(lines)-1]
	if !regexp.MustCompile(`^healthy_p99_ratio=\d+\.\d\d lost=0 doubled=\d+ signature_failures=0$`).MatchString(last) {
		t.Errorf("the last line is %q", last)
	}
	if r.with.account.Delivered == 0 || r.with.account.Waiting == 0 {
		t.Errorf("account: %+v: nothing delivered, or nothing waits although some endpoints are sick", r.with.account)
	}
	for k := hanging; k < classes; k++ {
		if r.with.work.Requests[k] == 0 {
			t.Errorf("endpoints of class %s got no request", k)
		}
	}
}
