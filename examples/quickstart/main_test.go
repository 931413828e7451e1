package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The story as a newcomer sees it, to its last line, on each broker.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		tell(t, target{})
	})
	t.Run("rabbitmq", func(t *testing.T) {
		t.Parallel()
		tell(t, target{broker: "rabbitmq", url: testserver.AMQP(t)})
	})
	t.Run("sqs", func(t *testing.T) {
		t.Parallel()
		tell(t, target{broker: "sqs", url: testserver.SQS(t)})
	})
}

func tell(t *testing.T, at target) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), at, &out)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := lines[len(lines)-1]
	if !regexp.MustCompile(`^delivered=329 dead=0 replayed=[1-9][0-9]* lost=0 duplicates=0 corrupted=0$`).MatchString(last) {
		t.Errorf("the last line is %q", last)
	}
}

// A directory is made if it is missing. One with a queue in it is refused: that queue knows the events, and would deliver none again.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	s, err := open(t.Context(), target{dir: dir}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s, err = open(t.Context(), target{dir: dir}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "from an earlier run") {
		t.Errorf("a used directory: %v", err)
		_ = s.close()
	}
	if _, err := os.Stat(s.queueFile()); err != nil {
		t.Errorf("the queue is gone: %v", err)
	}
}

func TestRecordedEventsAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	events, err := readEvents()
	if err != nil {
		t.Fatal(err)
	}
	bytes := 0
	for _, e := range events {
		bytes += len(e.Payload)
		if e.Name == "" || len(e.Payload) == 0 {
			t.Errorf("event %+v", e)
		}
	}
	if len(events) != 329 || bytes < 3<<20 {
		t.Errorf("%d events of %d bytes in all", len(events), bytes)
	}
}
