package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

func enqueue(ctx context.Context) (id string, err error) {
	broker, err := embedded.Open(ctx, embedded.Config{Path: "caisson.db"}) // package queue/embedded
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	if err := broker.CreateQueue(ctx, worker.DefaultQueue); err != nil { // does nothing if it is there
		return "", err
	}
	client, err := worker.NewClient(worker.ClientConfig{Broker: broker})
	if err != nil {
		return "", err
	}
	return client.Enqueue(ctx, SendWelcome.New(Welcome{To: "ada@example.com"}))
}

// The function above is the one of docs/getting-started.md, and puts a job in the queue of the current directory.
func TestEnqueueFromGo(t *testing.T) {
	page, err := os.ReadFile("../../docs/getting-started.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("enqueue_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "func enqueue(")
	body, _, ok := strings.Cut(rest, "\n}\n")
	if !ok || !strings.Contains(string(page), "\n```go\nfunc enqueue("+body+"\n}\n```\n") {
		t.Error("docs/getting-started.md does not quote enqueue as it is")
	}

	t.Chdir(t.TempDir())
	id, err := enqueue(t.Context())
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	broker, err := embedded.Open(t.Context(), embedded.Config{Path: "caisson.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = broker.Close() }()
	if d, err := broker.Depth(t.Context(), worker.DefaultQueue); err != nil || d.Ready.N != 1 {
		t.Errorf("depth %+v, %v", d, err)
	}
}
