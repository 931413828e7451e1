package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-go/caisson/queue"
)

// Queues implements [queue.Broker]: the queues that this process has made or used and, with the management API, all others with the prefix.
func (b *Broker) Queues(ctx context.Context) ([]queue.QueueInfo, error) {
	if b.isClosed() {
		return nil, queue.ErrClosed
	}
	names := b.knownNames()
	if b.management != nil {
		others, err := b.management.queues(ctx, b.cfg.Prefix)
		if err != nil {
			return nil, fmt.Errorf("list queues: %w", err)
		}
		for _, q := range others {
			if name := strings.TrimPrefix(q.Name, b.cfg.Prefix); b.topology.check(name) == nil {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	var infos []queue.QueueInfo
	for _, name := range names {
		depth, err := b.Depth(ctx, name)
		if errors.Is(err, queue.ErrQueueNotFound) {
			b.forget(name)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list queues: %w", err)
		}
		infos = append(infos, queue.QueueInfo{Name: name, Depth: depth})
	}
	return infos, nil
}
