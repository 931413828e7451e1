package journal_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/ordering"
)

// hanging is a store over a connection that says nothing any more.
type hanging struct{ ordering.Queues }

func (hanging) PutEvent(ctx context.Context, _ webhook.Event) error {
	<-ctx.Done()
	return ctx.Err()
}

func (hanging) Stale(ctx context.Context, _, _ time.Duration, _ int) ([]ordering.Entry, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) Append(ctx context.Context, _, _ string, _ []string) ([]ordering.Entry, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A store that hangs holds neither who publishes nor the look for lost heads.
func TestStoreHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newBareRig(t)
		r.add("line", ordered)
		o := r.ordering(&lines{}, func(cfg *ordering.Config) { cfg.Queues = hanging{} })
		event := webhook.Event{ID: "evt_1", Type: "t"}
		for name, step := range map[string]struct {
			call func() error
			want string
		}{
			"publish": {func() error {
				_, err := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Events, cfg.Ordering = hanging{}, o }).Publish(t.Context(), event)
				return err
			}, "publish it again under the same id"},
			"line": {func() error {
				_, err := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Ordering = o }).Publish(t.Context(), event)
				return err
			}, "publish it again under the same id"},
			"sweep": {func() error { return o.Sweep(t.Context()) }, "deadline"},
		} {
			start := time.Now()
			err := step.call()
			if took := time.Since(start); took != 10*time.Second || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), step.want) {
				t.Errorf("%s: after %s: %v", name, took, err)
			}
		}
		r.close()
	})
}
