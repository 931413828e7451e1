package postgres_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/endpoints/postgres"
)

// TestAMirrorOutlivesItsServer follows the registry of another process, goes on while the server is dead, and hears what was changed once it is back.
func TestAMirrorOutlivesItsServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	pool, schema := testserver.SchemaAt(t, pgdb.Config{URL: server.URL()})
	other, err := pgdb.Open(t.Context(), pgdb.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	keys, err := endpoints.ParseKeyring(endpoints.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	registry := func(store endpoints.Store) *endpoints.Registry {
		r, err := endpoints.NewRegistry(endpoints.RegistryConfig{Store: store, Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	admin, worker := registry(postgres.New(other, postgres.Config{Schema: schema})), registry(postgres.New(pool, postgres.Config{Schema: schema}))
	add := func(id string) error {
		_, err := admin.Add(t.Context(), webhook.Endpoint{ID: id, URL: "https://example.com/" + id})
		return err
	}
	if err := add("a"); err != nil {
		t.Fatal(err)
	}

	got := make(chan webhook.Endpoint, 100)
	logs := &lines{seen: make(chan string, 100)}
	mirror, err := endpoints.NewMirror(endpoints.MirrorConfig{
		Registry: worker, Interval: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(logs, nil)),
		OnChange: func(e webhook.Endpoint, _ bool) { got <- e },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		if err := mirror.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	await := func(id string, state webhook.State) {
		t.Helper()
		select {
		case e := <-got:
			if e.ID != id || e.State != state {
				t.Fatalf("got of %s, %s, want %s, %s", e.ID, e.State, id, state)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("never got of %s", id)
		}
	}
	await("a", webhook.StateActive)
	if _, err := admin.Pause(t.Context(), "a", "moving"); err != nil {
		t.Fatal(err)
	}
	await("a", webhook.StatePaused)

	server.Kill(t)
	if line := <-logs.seen; !strings.Contains(line, "level=WARN") {
		t.Errorf("while the server is dead: %s", line)
	}
	if e, err := mirror.Get(t.Context(), "a"); err != nil || e.Reason != "moving" {
		t.Errorf("while the server is dead: %v, %v", e, err)
	}
	if found, err := mirror.Matching("", "any"); err != nil || len(found) != 1 {
		t.Errorf("while the server is dead: %v, %v", found, err)
	}
	server.Start(t)
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if err := add("b"); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	await("b", webhook.StateActive)
	if line := <-logs.seen; !strings.Contains(line, "level=INFO") || len(logs.seen) > 0 {
		t.Errorf("after the server was dead: %s", line)
	}
}

// lines hands over each log line.
type lines struct{ seen chan string }

func (l *lines) Write(p []byte) (int, error) {
	l.seen <- string(p)
	return len(p), nil
}
