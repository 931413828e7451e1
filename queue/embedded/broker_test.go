package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/internal/testkit/sqlitetest"
	"github.com/caisson-go/caisson/queue"
)

// openTest opens a broker with the test's queue; without a path in memory.
func openTest(t testing.TB, cfg Config) *Broker {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = ":memory:"
	}
	b, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := b.CreateQueue(t.Context(), testQueue); err != nil {
		t.Fatal(err)
	}
	return b
}

func publish(t testing.TB, b *Broker, pubs ...queue.Publication) {
	t.Helper()
	for _, r := range b.Publish(t.Context(), testQueue, pubs) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

func subscribe(t testing.TB, b *Broker, cfg queue.SubscribeConfig) queue.Subscription {
	t.Helper()
	sub, err := b.Subscribe(t.Context(), testQueue, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func receive(t testing.TB, sub queue.Subscription, most int) []*queue.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leases, err := sub.Receive(ctx, most)
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

// TestNothingActsOnOldNews: what ends a lease cannot hit a message that was finished or taken again meanwhile.
func TestNothingActsOnOldNews(t *testing.T) {
	t.Parallel()
	const lease = 10 * time.Second
	t.Run("finished just before its end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := openTest(t, Config{})
			publish(t, b, queue.Publication{})
			sub := subscribe(t, b, queue.SubscribeConfig{Lease: lease})
			l := receive(t, sub, 1)[0]
			time.Sleep(lease - time.Millisecond)
			if err := l.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*lease)
			defer cancel()
			if got, err := sub.Receive(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a finished message came back: %v, %v", got, err)
			}
		})
	})
	t.Run("taken again at its end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := openTest(t, Config{})
			publish(t, b, queue.Publication{})
			first, second := subscribe(t, b, queue.SubscribeConfig{Lease: lease}), subscribe(t, b, queue.SubscribeConfig{Lease: lease})
			var stale queue.Handle
			receive(t, first, 1)[0].Decorate(func(h queue.Handle) queue.Handle { stale = h; return h })
			l := receive(t, second, 1)[0] // waits for the end of the first lease
			for _, s := range []queue.Settlement{
				{Action: queue.ActionAck},
				{Action: queue.ActionRetry, Delay: time.Hour, Uncharged: true},
				{Action: queue.ActionRelease},
			} {
				if err := stale.Settle(t.Context(), s); !errors.Is(err, queue.ErrLeaseLost) {
					t.Errorf("stale %v: %v", s.Action, err)
				}
			}
			if err := stale.Extend(t.Context(), time.Hour); !errors.Is(err, queue.ErrLeaseLost) {
				t.Errorf("stale extend: %v", err)
			}
			if l.Attempts != 2 || l.DeliveryCount != 2 {
				t.Errorf("attempt %d, delivery %d", l.Attempts, l.DeliveryCount)
			}
			time.Sleep(lease - time.Millisecond)
			if err := l.Ack(t.Context()); err != nil {
				t.Errorf("the new lease was touched: %v", err)
			}
		})
	})
	t.Run("over though nobody took it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := openTest(t, Config{})
			publish(t, b, queue.Publication{})
			sub := subscribe(t, b, queue.SubscribeConfig{Lease: lease})
			var late queue.Handle
			receive(t, sub, 1)[0].Decorate(func(h queue.Handle) queue.Handle { late = h; return h })
			time.Sleep(lease)
			if err := late.Settle(t.Context(), queue.Settlement{Action: queue.ActionAck}); !errors.Is(err, queue.ErrLeaseLost) {
				t.Errorf("got %v", err)
			}
			receive(t, sub, 1)
		})
	})
}

// TestWakeFromAnotherProcess: the two brokers know of each other only through the file.
func TestWakeFromAnotherProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queue.db")
	here, there := openTest(t, Config{Path: path}), openTest(t, Config{Path: sqlitetest.Apart(t, path)})
	sub := subscribe(t, here, queue.SubscribeConfig{})
	for range 10 {
		got := make(chan *queue.Lease)
		go func() { got <- receive(t, sub, 1)[0] }()
		waitInLine(here)
		publish(t, there, queue.Publication{})
		if err := (<-got).Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// waitInLine returns when a receive of b waits.
func waitInLine(b *Broker) {
	l := b.hub.line(testQueue)
	for n := 0; n == 0; time.Sleep(100 * time.Microsecond) {
		l.mu.Lock()
		n = len(l.waiting)
		l.mu.Unlock()
	}
}

func TestFullFile(t *testing.T) {
	t.Parallel()
	b := openTest(t, Config{Path: filepath.Join(t.TempDir(), "queue.db"), MaxSize: 1 << 20})
	body := queue.Publication{Message: queue.Message{Body: make([]byte, 64<<10)}}
	stored := 0
	var err error
	for err == nil {
		if err = b.Publish(t.Context(), testQueue, []queue.Publication{body})[0].Err; err == nil {
			stored++
		}
	}
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "full") || stored == 0 {
		t.Fatalf("after %d messages: %v", stored, err)
	}
	sub := subscribe(t, b, queue.SubscribeConfig{Slots: stored})
	leases := receive(t, sub, stored)
	if len(leases) != stored {
		t.Errorf("%d of %d messages", len(leases), stored)
	}
	for _, l := range leases {
		if err := l.Ack(t.Context()); err != nil {
			t.Errorf("ack in a full file: %v", err)
		}
	}
	publish(t, b, body) // there is space again
}

// TestSpaceIsReused keeps a short queue for a long time: the file must not grow with what went through it.
func TestSpaceIsReused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queue.db")
	b := openTest(t, Config{Path: path})
	sub := subscribe(t, b, queue.SubscribeConfig{Slots: 100})
	pubs := make([]queue.Publication, 20)
	for i := range pubs {
		pubs[i].Body = make([]byte, 500<<(i%7))
	}
	through := 0
	for range 280 {
		publish(t, b, pubs...)
		for _, p := range pubs {
			through += len(p.Body)
		}
		for n := 0; n < len(pubs); {
			leases := receive(t, sub, 100)
			n += len(leases)
			for _, l := range leases {
				if err := l.Ack(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	size := int64(0)
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if limit := int64(20 << 20); size > limit || through < 2*int(limit) {
		t.Errorf("%d bytes went through and left a file of %d, want at most %d", through, size, limit)
	}
}

// TestPlans proves that no statement looks at more messages than it returns or changes, and that none sorts.
func TestPlans(t *testing.T) {
	t.Parallel()
	b := openTest(t, Config{Path: filepath.Join(t.TempDir(), "queue.db")})
	for _, query := range []string{sqlPeek, sqlLease, sqlNextDue, sqlAck, sqlReturn, sqlExtend, sqlCountReady, sqlCountWaiting} {
		var plan []string
		err := b.file.Read(t.Context(), func(tx *sqlitefile.Tx) error {
			args := make([]any, strings.Count(query, "?"))
			for i := range args {
				args[i] = 2
			}
			rows, err := tx.Query("EXPLAIN QUERY PLAN "+query, args...)
			if err != nil {
				return err
			}
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					return err
				}
				plan = append(plan, detail)
			}
			return rows.Err()
		})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for _, step := range plan {
			if strings.Contains(step, "SCAN messages") || strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s:\n%s", query, strings.Join(plan, "\n"))
			}
		}
	}
}

func TestBigBatchKeepsOrder(t *testing.T) {
	t.Parallel()
	b := openTest(t, Config{})
	pubs := make([]queue.Publication, 2*chunkMessages+7)
	for i := range pubs {
		pubs[i].Body = fmt.Append(nil, i)
	}
	publish(t, b, pubs...)
	leases := receive(t, subscribe(t, b, queue.SubscribeConfig{Slots: len(pubs)}), len(pubs))
	if len(leases) != len(pubs) {
		t.Fatalf("%d of %d messages", len(leases), len(pubs))
	}
	for i, l := range leases {
		if string(l.Body) != fmt.Sprint(i) {
			t.Fatalf("message %q at place %d", l.Body, i)
		}
	}
}

func TestConfigIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queue.db")
	for name, cfg := range map[string]Config{
		"no path":       {},
		"unknown sync":  {Path: path, Sync: "sometimes"},
		"negative body": {Path: path, MaxBody: -1},
		"huge body":     {Path: path, MaxBody: largestMaxBody + 1},
		"negative size": {Path: path, MaxSize: -1},
	} {
		if b, err := Open(t.Context(), cfg); err == nil {
			t.Errorf("%s: accepted", name)
			_ = b.Close()
		}
	}
}
