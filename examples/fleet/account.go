package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue/inspect"
)

// account says where each event is that was sent.
type account struct {
	Delivered             int
	Waiting, Held, Dead   int
	Lost                  int
	UndeliveredHealthy    int      // wherever they are
	LostKeys              []string // a few of them
	DeliveredHealthyCount int
}

// accountFor looks for every event that was sent and not delivered: in the store of dead letters, then in the queue itself. The worker and
// the sender have ended.
func accountFor(ctx context.Context, p plan, first []int64) (a account, err error) {
	missing := map[string]bool{}
	for n, at := range first {
		switch well := p.class(p.endpoint(n)) == healthy; {
		case !p.sent(n):
		case at != 0:
			a.Delivered++
			if well {
				a.DeliveredHealthyCount++
			}
		default:
			missing[p.key(n)] = true
			if well {
				a.UndeliveredHealthy++
			}
		}
	}
	l, err := openBackend(ctx, p)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := a.inLetters(ctx, l.letters, missing); err != nil {
		return a, err
	}
	if finder, ok := l.broker.(inspect.Finder); ok {
		err = a.inQueue(ctx, finder, missing)
	} else {
		err = a.inRabbitMQ(ctx, p, missing)
	}
	a.Lost = len(missing)
	for key := range missing {
		if len(a.LostKeys) < 5 {
			a.LostKeys = append(a.LostKeys, key)
		}
	}
	return a, err
}

const page = 500

func (a *account) inLetters(ctx context.Context, letters dlq.Store, missing map[string]bool) error {
	for _, state := range []dlq.State{dlq.StateHeld, dlq.StateDead} {
		for after := ""; ; {
			list, next, err := letters.List(ctx, dlq.Filter{States: []dlq.State{state}}, after, page)
			if err != nil {
				return fmt.Errorf("list what is %s: %w", state, err)
			}
			for _, e := range list {
				if !missing[e.Key] {
					continue
				}
				delete(missing, e.Key)
				if state == dlq.StateHeld {
					a.Held++
				} else {
					a.Dead++
				}
			}
			if after = next; after == "" {
				break
			}
		}
	}
	return nil
}

// inQueue looks in a broker that can be searched. It asks for half of what one search may find, since a job may have two copies there.
func (a *account) inQueue(ctx context.Context, finder inspect.Finder, missing map[string]bool) error {
	keys := make([]string, 0, len(missing))
	for key := range missing {
		keys = append(keys, key)
	}
	for some := range slices.Chunk(keys, inspect.MaxFound/2) {
		found, err := finder.Find(ctx, some, 10_000_000)
		if err != nil {
			return err
		}
		for _, at := range found.Locations {
			a.waits(at.Envelope.Key, missing)
		}
	}
	return nil
}

func (a *account) waits(key string, missing map[string]bool) {
	if missing[key] {
		delete(missing, key)
		a.Waiting++
	}
}
