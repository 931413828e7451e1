package backends_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func load(t *testing.T, path string) *config.Config {
	t.Helper()
	cfg, _, err := config.Load(config.Sources{Flags: map[string]string{"embedded.path": path}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestOneFileHoldsEverything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "one.db")
	s, err := backends.Open(t.Context(), load(t, path), backends.Create, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Broker.CreateQueue(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	entry := dlq.Entry{Job: "j", State: dlq.StateDead, Queue: "q", Kind: "k", Cause: dlq.CauseRejected}
	if err := errors.Join(s.DeadLetters.Put(t.Context(), []dlq.Entry{entry})...); err != nil {
		t.Fatal(err)
	}
	if err := s.Claims.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatalf("closing twice: %v", err)
	}
	if _, err := s.Broker.Queues(t.Context()); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("the broker is open after Close: %v", err)
	}

	again, err := backends.Open(t.Context(), load(t, path), backends.Existing, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}()
	if n, err := again.Letters.Count(t.Context(), dlq.Filter{}); n != 1 || err != nil {
		t.Errorf("dead letters after reopening: %d, %v; want 1", n, err)
	}
	if queues, err := again.Broker.Queues(t.Context()); len(queues) != 1 || err != nil {
		t.Errorf("queues after reopening: %v, %v; want q", queues, err)
	}
}

func TestExistingMakesNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	s, err := backends.Open(t.Context(), load(t, path), backends.Existing, nil)
	if err == nil {
		t.Fatal(errors.Join(errors.New("opened a file that is not there"), s.Close()))
	}
	if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "--db") {
		t.Errorf("error %q names neither the file nor the way out", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was left: %v", err)
	}
}

func TestUnknownBroker(t *testing.T) {
	t.Parallel()
	if _, err := backends.Open(t.Context(), &config.Config{Broker: "carrier-pigeon"}, backends.Create, nil); err == nil || !strings.Contains(err.Error(), "carrier-pigeon") {
		t.Errorf("error %v does not name the broker", err)
	}
}
