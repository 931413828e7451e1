package dlq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// Broker is the part of a [queue.Broker] that takes messages.
type Broker interface {
	Publish(ctx context.Context, queue string, pubs []queue.Publication) []queue.PublishResult
}

// releaseTime is how long a release keeps its entries from others, and how long it may take.
const releaseTime = time.Minute

// releaseBytes is the most bytes of bodies that one release has in hand.
const releaseBytes = 16 << 20

// ReleaseHeld publishes up to n of the oldest jobs held for destination, and up to 16 MiB, back to their queues, and returns how many. Each
// goes as the same run and is due at once; its entry is removed when the message is confirmed. What was not confirmed stays held, and the
// error says why. A crash in between publishes a job again, which its claim makes harmless.
//
// The time that a job was held does not count towards its kind's max age. A deadline still ends it.
//
// Several workers may call it at once, each as an owner of its own. A done ctx stops it before it reserves entries, not between publishing
// and removing.
func ReleaseHeld(ctx context.Context, store Store, broker Broker, destination string, n int, owner string) (int, error) {
	if destination == "" || n < 1 {
		return 0, fmt.Errorf("release %d held jobs of destination %q: both must be set", n, destination)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	f := Filter{States: []State{StateHeld}, Destination: destination}
	entries, err := store.Reserve(ctx, f, Reservation{Owner: owner, For: releaseTime, Limit: n, MaxBytes: releaseBytes})
	if err != nil {
		return 0, fmt.Errorf("reserve held jobs of %s: %w", destination, err)
	}
	confirmed, err := publishHeld(ctx, broker, entries, rand.Text())
	rs := make([]Resolution, len(entries))
	released := 0
	for i, e := range entries {
		rs[i] = Resolution{ID: e.ID, To: StateHeld}
		if confirmed[e.ID] {
			rs[i].To = ""
			released++
		}
	}
	errs := []error{err}
	for _, err := range store.Resolve(ctx, owner, rs) {
		// Not reserved any more: the job came back already and was held, or died, again.
		if err != nil && !errors.Is(err, ErrNotReserved) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return released, fmt.Errorf("release held jobs of %s: %w", destination, err)
	}
	return released, nil
}

// publishHeld publishes entries to their queues and returns the ids of those that were confirmed, and the first error. release makes dedup
// ids unique: a broker must not drop a job that is released twice within its window.
func publishHeld(ctx context.Context, broker Broker, entries []Entry, release string) (confirmed map[string]bool, err error) {
	confirmed = make(map[string]bool, len(entries))
	byQueue := map[string][]Entry{}
	for _, e := range entries {
		byQueue[e.Queue] = append(byQueue[e.Queue], e)
	}
	for name, held := range byQueue {
		pubs := make([]queue.Publication, len(held))
		now := time.Now()
		for i, e := range held {
			pubs[i] = queue.Publication{Message: dueAt(e.Message, now), Group: e.fairGroup(), DedupID: e.ID + ".held." + release}
		}
		for i, result := range broker.Publish(ctx, name, pubs) {
			if result.Err == nil {
				confirmed[held[i].ID] = true
			} else if err == nil {
				err = fmt.Errorf("publish %s to %s: %w", held[i].ID, name, result.Err)
			}
		}
	}
	return confirmed, err
}

// dueAt returns m due at now. A message whose envelope cannot be read has no due time and goes as it is.
func dueAt(m queue.Message, now time.Time) queue.Message {
	env, err := m.Envelope()
	if err != nil || !env.NotBefore.Before(now) {
		return m
	}
	env.NotBefore = now
	encoded, err := env.Encode()
	if err != nil {
		return m // it was decoded a moment ago; better old than lost
	}
	m.Headers = maps.Clone(m.Headers)
	m.Headers[queue.HeaderEnvelope] = encoded
	return m
}
