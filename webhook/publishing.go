package webhook

import "context"

type publisherKey struct{}

// WithPublisher returns a context whose [PublisherFrom] is p. Give it to a worker's Run, and its handlers have p; or to a handler, in its tests.
func WithPublisher(ctx context.Context, p *Publisher) context.Context {
	return context.WithValue(ctx, publisherKey{}, p)
}

// PublisherFrom returns the running program's own publisher, for handlers: it publishes by the registry that the worker has in memory anyway, and
// keeps order where endpoints ask for it. Without one the error wraps [ErrNoPublisher].
//
// A handler may run several times. Give the event an id and a body that are the same each time, and each endpoint gets it once.
func PublisherFrom(ctx context.Context) (*Publisher, error) {
	if p, ok := ctx.Value(publisherKey{}).(*Publisher); ok && p != nil {
		return p, nil
	}
	return nil, ErrNoPublisher
}
