package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/worker"
)

// A program that only enqueues. Its configuration is the workers': here it is given in Go, usually CAISSON_CONFIG names it.
func ExampleOpenClient() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "client")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	client, err := app.OpenClient(ctx, app.Config{Set: map[string]string{"embedded.path": filepath.Join(dir, "caisson.db")}})
	if err != nil {
		panic(err)
	}
	id, err := client.Enqueue(ctx, worker.NewJob{Kind: "email.send", ID: "welcome-ann", Payload: Mail{To: "ann@example.com"}})
	fmt.Println(id, errors.Join(err, client.Close()))
	// Output: welcome-ann <nil>
}
