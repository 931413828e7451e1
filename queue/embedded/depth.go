package embedded

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/queue"
)

// depthAge is how long a count is good: counting a million messages takes about 0.1 s.
const depthAge = time.Second

// depthCache remembers the depth of one queue. Its mutex makes those who ask at the same time count once.
type depthCache struct {
	mu    sync.Mutex
	at    time.Time
	depth queue.Depth
}

// Depth implements [queue.Broker]. Counts are up to a second old.
func (b *Broker) Depth(ctx context.Context, name string) (queue.Depth, error) {
	l, err := b.find(ctx, name)
	if err != nil {
		return queue.Depth{}, err
	}
	b.mu.Lock()
	c := b.depths[l.id]
	if c == nil {
		c = &depthCache{}
		b.depths[l.id] = c
	}
	b.mu.Unlock()

	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.at.IsZero() || now.Sub(c.at) >= depthAge {
		depth, err := b.count(ctx, l.id)
		if err != nil {
			return queue.Depth{}, fmt.Errorf("count %q: %w", name, translate(err))
		}
		c.at, c.depth = now, depth
	}
	return c.depth, nil
}

func (b *Broker) count(ctx context.Context, id int64) (queue.Depth, error) {
	var ready, later, leased int64
	err := b.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		now := floorMilli(time.Now())
		if err := tx.QueryRow(sqlCountReady, []any{id, now}, &ready); err != nil {
			return err
		}
		return tx.QueryRow(sqlCountWaiting, []any{id, now}, &later, &leased)
	})
	return queue.Depth{
		Ready:    queue.CountOf(ready),
		Delayed:  queue.CountOf(later - leased),
		InFlight: queue.CountOf(leased),
	}, err
}

// Queues implements [queue.Broker].
func (b *Broker) Queues(ctx context.Context) ([]queue.QueueInfo, error) {
	if b.isClosed() {
		return nil, queue.ErrClosed
	}
	var infos []queue.QueueInfo
	err := b.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		infos = nil
		rows, err := tx.Query(sqlListQueues)
		if err != nil {
			return err
		}
		for rows.Next() {
			var info queue.QueueInfo
			if err := rows.Scan(&info.Name); err != nil {
				return err
			}
			infos = append(infos, info)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", translate(err))
	}
	for i := range infos {
		if infos[i].Depth, err = b.Depth(ctx, infos[i].Name); err != nil {
			return nil, err
		}
	}
	return infos, nil
}
