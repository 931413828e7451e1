package embedded

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/queue"
)

// The test binary starts itself with these set, to have a process that can be killed.
const (
	envChild = "EMBEDDED_TEST_CHILD" // what the child does
	envPath  = "EMBEDDED_TEST_PATH"  // the queue file
	envFirst = "EMBEDDED_TEST_FIRST" // the first message number
)

const (
	testQueue  = "test"
	childLease = 300 * time.Millisecond
)

func TestMain(m *testing.M) {
	if what := os.Getenv(envChild); what != "" {
		if err := child(what, os.Getenv(envPath)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// startChild runs the test binary as a child and calls each for every line that it prints, until it ends. The returned function
// waits for that.
func startChild(t *testing.T, what, path string, first int, each func(word string, n int)) (cmd *exec.Cmd, wait func()) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+what, envPath+"="+path, envFirst+"="+strconv.Itoa(first))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var word string
			var n int
			if _, err := fmt.Sscan(lines.Text(), &word, &n); err != nil {
				t.Errorf("child says %q", lines.Text())
				continue
			}
			each(word, n)
		}
	}()
	return cmd, func() {
		<-done
		_ = cmd.Wait() // killed children return an error
	}
}

func child(what, path string) error {
	ctx := context.Background()
	b, err := Open(ctx, Config{Path: path})
	if err != nil {
		return err
	}
	if err := b.CreateQueue(ctx, testQueue); err != nil {
		return err
	}
	switch what {
	case "work":
		return childWork(ctx, b)
	case "die":
		return childDie(ctx, b)
	}
	return fmt.Errorf("unknown child %q", what)
}

// say prints one line in one write, so that a kill cannot cut it.
func say(word string, n int) { fmt.Fprintf(os.Stdout, "%s %d\n", word, n) }

// childWork publishes and acks until it is killed. It says what it is about to do and what it was told has been done.
func childWork(ctx context.Context, b *Broker) error {
	first, err := strconv.Atoi(os.Getenv(envFirst))
	if err != nil {
		return err
	}
	var next atomic.Int64
	next.Store(int64(first))
	sub, err := b.Subscribe(ctx, testQueue, queue.SubscribeConfig{Lease: childLease, Slots: 64})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				last := int(next.Add(3))
				pubs := make([]queue.Publication, 3)
				for i := range pubs {
					pubs[i].Body = strconv.AppendInt(nil, int64(last-2+i), 10)
				}
				for i, r := range b.Publish(ctx, testQueue, pubs) {
					if r.Err == nil {
						say("published", last-2+i)
					}
				}
			}
		})
		wg.Go(func() {
			for {
				leases, err := sub.Receive(ctx, 2)
				if err != nil {
					say("failed", 0)
				}
				for i, l := range leases {
					n, _ := strconv.Atoi(string(l.Body))
					if i == 1 && n%3 == 0 {
						continue // left to its lease
					}
					say("settling", n)
					if err := l.Ack(ctx); err == nil {
						say("acked", n)
					}
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// childDie receives one message, says its attempt, and dies with the message in its hands.
func childDie(ctx context.Context, b *Broker) error {
	sub, err := b.Subscribe(ctx, testQueue, queue.SubscribeConfig{Lease: childLease})
	if err != nil {
		return err
	}
	leases, err := sub.Receive(ctx, 1)
	if err != nil {
		return err
	}
	say("attempt", leases[0].Attempts)
	os.Exit(137)
	return nil
}
