package recipes

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/worker"
)

// Digest is sent to a customer. It holds the id and nothing else: two payloads under one key are a conflict.
type Digest struct {
	Customer string `json:"customer"`
}

// SendDigest is the kind of job that sends it.
var SendDigest = worker.Kind[Digest]{Name: "digest.send"}

// RequestDigest may be called at every click: in each hour one digest goes out.
func RequestDigest(ctx context.Context, client *worker.Client, customer string, now time.Time) error {
	job := SendDigest.New(Digest{Customer: customer})
	job.Key = fmt.Sprintf("%s/%s", customer, now.UTC().Format("2006-01-02T15"))
	_, err := client.Enqueue(ctx, job)
	return err
}
