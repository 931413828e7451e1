package embedded

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/queue"
)

// TestKill kills a process 20 times, 200 with SOAK, while it publishes and acks. No message that was confirmed is lost, none whose ack was
// confirmed comes back, and none is there twice.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := 20
	if os.Getenv("SOAK") != "" {
		rounds = 200
	}
	path := filepath.Join(t.TempDir(), "queue.db")
	published, settling, acked := map[int]bool{}, map[int]bool{}, map[int]bool{}
	kills := 0
	for round := range rounds {
		busy := make(chan struct{}, 1)
		cmd, wait := startChild(t, "work", path, round*1_000_000, func(word string, n int) {
			switch word {
			case "published":
				published[n] = true
				select {
				case busy <- struct{}{}:
				default:
				}
			case "settling":
				settling[n] = true
				if acked[n] {
					t.Errorf("round %d: message %d was delivered after its ack was confirmed", round, n)
				}
			case "acked":
				acked[n] = true
			default:
				t.Errorf("child says %s %d", word, n)
			}
		})
		select {
		case <-busy:
			time.Sleep(rand.N(100 * time.Millisecond)) // anywhere in its work
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			kills++
		case <-time.After(2 * time.Minute):
			t.Error("the child published nothing")
			_ = cmd.Process.Kill()
		}
		wait()
		if t.Failed() {
			return
		}
	}
	left := drain(t, path)
	for n := range published {
		if left[n] == 0 && !settling[n] {
			t.Errorf("message %d was confirmed and is lost", n)
		}
	}
	for n, times := range left {
		if acked[n] {
			t.Errorf("message %d is there though its ack was confirmed", n)
		}
		if times > 1 {
			t.Errorf("message %d is there %d times", n, times)
		}
	}
	if kills != rounds || len(acked) == 0 || len(published) <= len(acked) {
		t.Errorf("%d kills, %d published, %d acked: the test did not see enough", kills, len(published), len(acked))
	}
	t.Logf("%d kills, %d published, %d acked, %d left", kills, len(published), len(acked), len(left))
}

// drain acks everything in the file and counts how often it saw each message number.
func drain(t *testing.T, path string) map[int]int {
	t.Helper()
	b, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	sub := subscribe(t, b, queue.SubscribeConfig{Slots: 1000})
	seen := map[int]int{}
	for {
		depth, err := b.count(t.Context(), b.hub.line(testQueue).id)
		if err != nil {
			t.Fatal(err)
		}
		if depth.Ready.N+depth.InFlight.N+depth.Delayed.N == 0 {
			return seen
		}
		for _, l := range receive(t, sub, 1000) {
			n, err := strconv.Atoi(string(l.Body))
			if err != nil {
				t.Fatal(err)
			}
			seen[n]++
			if err := l.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDeathChargesTheAttempt: a message that kills its worker comes back at the end of the lease, and each death counts.
func TestDeathChargesTheAttempt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queue.db")
	b := openTest(t, Config{Path: path})
	publish(t, b, queue.Publication{Message: queue.Message{Body: []byte("bad")}})
	var attempts []int
	for range 3 {
		_, wait := startChild(t, "die", path, 0, func(word string, n int) {
			if word != "attempt" {
				t.Errorf("child says %s", word)
			}
			attempts = append(attempts, n)
		})
		wait()
	}
	l := receive(t, subscribe(t, b, queue.SubscribeConfig{}), 1)[0]
	attempts = append(attempts, l.Attempts)
	if diff := cmp.Diff([]int{1, 2, 3, 4}, attempts); diff != "" {
		t.Error(diff)
	}
	if string(l.Body) != "bad" || l.DeliveryCount != 4 {
		t.Errorf("body %q, delivery %d", l.Body, l.DeliveryCount)
	}
}
