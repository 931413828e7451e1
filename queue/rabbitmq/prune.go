package rabbitmq

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue/inspect"
)

var _ inspect.Pruner = (*Broker)(nil)

// Older versions declared a whole ladder of delays at once, with 8 or 4 steps in an octave and 24 h at its end. The finer one contains the
// other.
const oldSteps = 8

// oldLongest is in each of their ladders and is removed last: while it is missing there is nothing else to look for.
const oldLongest = 24 * time.Hour

// oldDelays returns the delays of older versions that this one does not use, the longest last.
func oldDelays() []time.Duration {
	var old []time.Duration
	for i := 0; ; i++ {
		step := time.Duration(math.Round(1000*math.Pow(2, float64(i)/oldSteps))) * time.Millisecond
		if step >= oldLongest {
			return append(old, oldLongest)
		}
		if i%oldSteps != 0 || step > longestStep {
			old = append(old, step)
		}
	}
}

// oldNames returns the names of their queues.
func (t *topology) oldNames() []string {
	old := oldDelays()
	names := make([]string, len(old))
	for i, step := range old {
		names[i] = t.delay(step)
	}
	return names
}

// leftovers returns which delay queues of older versions there are. A hasty look ends where the longest delay is missing: each question
// about a queue that does not exist is an error in the broker's log.
func (b *Broker) leftovers(ctx context.Context, hasty bool) ([]inspect.Leftover, error) {
	names := b.topology.oldNames()
	if hasty {
		if b.noOld.Load() {
			return nil, nil
		}
		found, err := b.find(ctx, names[len(names)-1:])
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			b.noOld.Store(true)
			return nil, nil
		}
	}
	found, err := b.find(ctx, names)
	if err != nil {
		return nil, err
	}
	var left []inspect.Leftover
	for _, name := range names {
		if n, ok := found[name]; ok {
			left = append(left, inspect.Leftover{Name: name, Messages: n})
		}
	}
	return left, nil
}

// findChannels is how many channels look for queues side by side.
const findChannels = 4

// find returns which of the queues exist, and how many messages are ready in each.
func (b *Broker) find(ctx context.Context, names []string) (map[string]int64, error) {
	var mu sync.Mutex
	found := make(map[string]int64, len(names))
	errs := make([]error, findChannels)
	var wg sync.WaitGroup
	size := (len(names) + findChannels - 1) / findChannels
	part := 0
	for some := range slices.Chunk(names, size) {
		err := &errs[part]
		wg.Go(func() {
			*err = b.findSome(ctx, some, func(q amqp.Queue) {
				mu.Lock()
				defer mu.Unlock()
				found[q.Name] = int64(q.Messages)
			})
		})
		part++
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (b *Broker) findSome(ctx context.Context, names []string, found func(amqp.Queue)) error {
	for len(names) > 0 {
		rest, err := ask(ctx, b, func(ch *channel) (rest []string, err error) {
			for rest = names; len(rest) > 0; {
				q, err := ch.findQueue(rest[0])
				rest = rest[1:]
				if err != nil {
					return rest, err // the channel is closed: go on with another
				}
				found(q)
			}
			return nil, nil
		})
		if err != nil && !missing(err) {
			return fmt.Errorf("look for queues: %w", err)
		}
		names = rest
	}
	return nil
}

// Prune implements [inspect.Pruner]: it removes the delays of older versions that this one does not use. Messages whose delay has ended are on
// their way for a moment, in which no count shows them. After a restart of a node that may take three minutes, so empty should be more.
func (b *Broker) Prune(ctx context.Context, empty time.Duration) ([]inspect.Leftover, error) {
	left, err := b.leftovers(ctx, false)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	if err := b.admin(ctx, func(ch *channel) error { return b.closeEmpty(ch, left) }); err != nil {
		return nil, fmt.Errorf("prune: %w", err)
	}
	if slices.ContainsFunc(left, func(l inspect.Leftover) bool { return l.Messages == 0 }) {
		if pause.For(ctx, empty); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	stuck, err := b.stuckMessages(ctx)
	if err != nil {
		return nil, fmt.Errorf("prune: %w", err)
	}
	left, err = ask(ctx, b, func(ch *channel) ([]inspect.Leftover, error) { return left, removeEmpty(ch, left, stuck) })
	if err != nil {
		return left, fmt.Errorf("prune: %w", err)
	}
	return left, nil
}

// closeEmpty removes the exchanges of empty delays, so that nothing more comes in. What delays end in is declared first: nothing may stay
// in them for want of it.
func (b *Broker) closeEmpty(ch *channel, left []inspect.Leftover) error {
	d := declarer{ch: ch}
	b.topology.declareShared(&d)
	if d.err != nil {
		return d.err
	}
	for _, l := range left {
		if l.Messages > 0 {
			continue
		}
		if err := ch.deleteExchange(l.Name); err != nil {
			return err
		}
	}
	return nil
}

// stuckMessages returns how many messages the management API sees on their way out of queues; nothing without it.
func (b *Broker) stuckMessages(ctx context.Context) (map[string]int64, error) {
	if b.management == nil {
		return nil, nil //nolint:nilnil // nothing is known
	}
	queues, err := b.management.queues(ctx, b.topology.delayPrefix())
	if err != nil {
		return nil, err
	}
	stuck := make(map[string]int64, len(queues))
	for _, q := range queues {
		stuck[q.Name] = q.Stuck
	}
	return stuck, nil
}

// removeEmpty removes the queues that were and are empty. The last one goes only if all others are gone.
func removeEmpty(ch *channel, left []inspect.Leftover, stuck map[string]int64) error {
	kept := 0
	for i := range left {
		l := &left[i]
		was := l.Messages
		q, err := ch.findQueue(l.Name)
		if err != nil {
			return err
		}
		l.Messages = max(int64(q.Messages), stuck[l.Name])
		if was > 0 || l.Messages > 0 || i == len(left)-1 && kept > 0 {
			kept++
			continue
		}
		if err := ch.deleteQueue(l.Name); err != nil {
			return err
		}
		l.Removed = true
	}
	return nil
}
