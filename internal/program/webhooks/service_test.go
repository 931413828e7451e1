package webhooks

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/endpoints/sqlite"
)

// A worker is not ready before its registry was loaded once, and its jobs wait for that.
func TestReadyOnceLoaded(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	keys, err := endpoints.ParseKeyring(endpoints.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	registry, err := endpoints.NewRegistry(endpoints.RegistryConfig{Store: store, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	mirror, err := endpoints.NewMirror(endpoints.MirrorConfig{Registry: registry, Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r := &Service{mirror: mirror}
	if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "was not loaded yet") {
		t.Errorf("ready before: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mirror.Run(ctx) }()
	r.AwaitLoad(t.Context())
	if err := r.Ready(); err != nil {
		t.Errorf("not ready after: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Where there is no registry there is nothing to wait for.
func TestNothingRuns(t *testing.T) {
	t.Parallel()
	var r *Service
	r.Attach(nil)
	r.AwaitLoad(t.Context())
	if r.Observer() != nil || r.Ready() != nil || r.Run(t.Context()) != nil {
		t.Error("something runs without a registry")
	}
}
