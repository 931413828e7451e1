package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/worker"
)

// What a client enqueues by the workers' configuration, a worker of that configuration finds.
func TestOpenClient(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "q.db")
	client, err := app.OpenClient(t.Context(), app.Config{Env: []string{"CAISSON_QUEUES=mail,slow"}, Set: map[string]string{"embedded.path": db}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Enqueue(t.Context(), worker.NewJob{Kind: "k", ID: "one"}); err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if got := depth(t, db, "mail"); got != [3]int{1, 0, 0} {
		t.Errorf("ready, delayed, in flight: %v; want one that is ready", got)
	}
}

func TestOpenClientRefuses(t *testing.T) {
	t.Parallel()
	_, err := app.OpenClient(t.Context(), app.Config{Env: []string{}, Set: map[string]string{"concurrency": "none"}})
	if err == nil || !strings.Contains(err.Error(), "open client") || !strings.Contains(err.Error(), "concurrency") {
		t.Errorf("error %v, want one that names the key", err)
	}
}
