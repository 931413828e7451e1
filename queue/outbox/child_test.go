package outbox

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/queue/embedded"
)

// The test binary starts itself with these set, to have a relay that can be killed.
const (
	envChild  = "OUTBOX_TEST_CHILD"  // the database's URL
	envSchema = "OUTBOX_TEST_SCHEMA" // the schema
	envFile   = "OUTBOX_TEST_FILE"   // the embedded queue's file
)

const childBatch = 64

// child relays until it is killed.
func child() error {
	ctx := context.Background()
	pool, err := pgdb.Open(ctx, pgdb.Config{URL: os.Getenv(envChild)})
	if err != nil {
		return err
	}
	broker, err := embedded.Open(ctx, embedded.Config{Path: os.Getenv(envFile)})
	if err != nil {
		return err
	}
	relay, err := NewRelay(RelayConfig{
		Pool: pool, Schema: os.Getenv(envSchema), Broker: broker, DirectURL: os.Getenv(envChild),
		Batch: childBatch, Parallel: 2, Lease: time.Second, Poll: 100 * time.Millisecond, Backoff: quickBackoff(),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	return relay.Run(ctx)
}

// startChild starts a relay process. kill ends it with SIGKILL and waits for it.
func (r *rig) startChild(url, file string) (kill func()) {
	r.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(r.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+url, envSchema+"="+r.schema, envFile+"="+file)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	return func() {
		if err := cmd.Process.Kill(); err != nil {
			r.Errorf("a relay process has ended by itself: %v", err)
		}
		_ = cmd.Wait() // a killed child returns an error
	}
}
