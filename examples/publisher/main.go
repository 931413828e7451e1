package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/webhook"
)

func main() {
	if err := publish(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func publish(ctx context.Context, invoice string) (err error) {
	opening, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	publisher, err := app.OpenPublisher(opening, app.Config{}) // as CAISSON_CONFIG and CAISSON_* say; open it once for many events
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()

	published, err := publisher.Publish(ctx, webhook.Event{
		ID: "invoice-" + invoice + "-paid", Type: "invoice.paid", Body: fmt.Appendf(nil, `{"invoice":%s}`, invoice),
	})
	if err != nil {
		return err // publish it again under the same id: nobody gets it twice
	}
	fmt.Printf("%s is for %d endpoint(s)\n", published.ID, published.Endpoints)
	return nil
}
