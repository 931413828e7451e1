package webhooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/ordering"
	"github.com/caisson-go/caisson/worker"
)

// numbered is an event of the load.
func numbered(n int) webhook.Event {
	kind := "n.even"
	if n%2 == 1 {
		kind = "n.odd"
	}
	return webhook.Event{ID: fmt.Sprintf("evt_%05d", n), Type: kind, Body: fmt.Appendf(nil, `{"n":%d}`, n)}
}

// crowd is how much may wait in all lines before the publisher waits, too: what is there at the last kill has to be worked off.
const crowd = 90

// publish publishes one event after the other until ctx ends. It begins with the one that the publisher before it had begun and was not told of
// to be published.
func (o orders) publish(ctx context.Context, settings *Settings, open *backends.Set) error {
	book, begun, confirmed, err := openPublished(o.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = book.Close() }() // each line is written
	registry, err := settings.Registry(open.Endpoints)
	if err != nil {
		return err
	}
	mirror, err := endpoints.NewMirror(endpoints.MirrorConfig{Registry: registry, Logger: o.logger()})
	if err != nil {
		return err
	}
	ordering, err := o.ordering(settings.cfg, open)
	if err != nil {
		return err
	}
	client, err := worker.NewClient(worker.ClientConfig{Broker: open.Broker, DefaultQueue: settings.cfg.Queues[0].Name})
	if err != nil {
		return err
	}
	publisher, err := webhook.NewPublisher(webhook.PublisherConfig{Client: client, Subscribers: mirror, Events: open.Journal, Ordering: ordering})
	if err != nil {
		return err
	}
	batch := batches{publisher: publisher, size: 1}
	if o.Mutation == unconfirmed {
		batch.size = unconfirmedBatch
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return mirror.Run(ctx) })
	group.Go(func() error {
		select {
		case <-mirror.Loaded():
		case <-ctx.Done():
			return nil
		}
		for n := confirmed; ctx.Err() == nil || n < begun; n++ {
			if err := publishOne(context.WithoutCancel(ctx), book, &batch, n); err != nil {
				return err
			}
			if err := awaitRoom(ctx, open.Queues); err != nil {
				return err
			}
		}
		return batch.flush(context.WithoutCancel(ctx))
	})
	return group.Wait()
}

// publishOne writes down that it publishes an event, and that this is confirmed. Each line is one write, which a kill cannot cut.
func publishOne(ctx context.Context, book *os.File, batch *batches, n int) error {
	if _, err := fmt.Fprintf(book, "begun %d\n", n); err != nil {
		return err
	}
	if err := batch.add(ctx, n); err != nil {
		return err
	}
	_, err := fmt.Fprintf(book, "confirmed %d\n", n)
	return err
}

// unconfirmedBatch is how many events are confirmed before the last of them has them published, where that is broken.
const unconfirmedBatch = 10

// batches publishes events, one at a time unless it is broken.
type batches struct {
	publisher *webhook.Publisher
	size      int
	kept      []webhook.Event
}

func (b *batches) add(ctx context.Context, n int) error {
	if b.kept = append(b.kept, numbered(n)); (n+1)%b.size != 0 {
		return nil
	}
	return b.flush(ctx)
}

func (b *batches) flush(ctx context.Context) error {
	for _, e := range b.kept {
		if _, err := b.publisher.Publish(ctx, e); err != nil {
			return err
		}
	}
	b.kept = nil
	return nil
}

// awaitRoom waits until the lines are not crowded.
func awaitRoom(ctx context.Context, lines ordering.Queues) error {
	for ctx.Err() == nil {
		waiting := 0
		for _, e := range killEndpoints {
			n, err := lines.Len(context.WithoutCancel(ctx), e.id)
			if err != nil {
				return err
			}
			waiting += n
		}
		if waiting < crowd {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond): // between looks at what the workers do
		}
	}
	return nil
}

// openPublished opens the book of all publishers, and says how many events were begun and how many of them confirmed: all but the last, or all.
func openPublished(dir string) (book *os.File, begun, confirmed int, err error) {
	name := filepath.Join(dir, "published")
	begun, confirmed, _, err = readPublished(dir)
	if err != nil {
		return nil, 0, 0, err
	}
	book, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return book, begun, confirmed, err
}

// readPublished reads the book. cut is how often an event was begun and not confirmed by the same process.
func readPublished(dir string) (begun, confirmed, cut int, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "published"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, 0, 0, err
	}
	lines := slices.Collect(strings.Lines(string(text)))
	for i, line := range lines {
		var what string
		var n int
		if _, err := fmt.Sscanf(line, "%s %d\n", &what, &n); err != nil {
			return 0, 0, 0, fmt.Errorf("line %d of the publishers' book, %q: %w", i+1, line, err)
		}
		if what == "confirmed" {
			confirmed = n + 1
			continue
		}
		begun = n + 1
		if i+1 == len(lines) || strings.HasPrefix(lines[i+1], "begun") {
			cut++
		}
	}
	return begun, confirmed, cut, nil
}
