package main

import (
	"context"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/worker"
)

// echo is there to try an installation with: it logs the size and the beginning of its payload.
var echo = worker.Kind[[]byte]{Name: "caisson.echo"}

func main() {
	app.Main(func(r *worker.Registry) error {
		worker.Handle(r, echo, func(ctx context.Context, payload []byte) error {
			worker.Logger(ctx).InfoContext(ctx, "echo", "bytes", len(payload), "payload", string(payload[:min(len(payload), 200)]))
			return nil
		})
		return nil
	})
}
