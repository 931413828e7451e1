package brokerdlq

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

// fate is what a pass has decided about a letter.
type fate uint8

const (
	fresh  fate = iota // matches, and was not handed to anybody yet
	handed             // reserved by the pass
	kept               // stays dead; leased until the end of the pass
	gone               // confirmed elsewhere, or given up
)

// letter is a dead letter, with all copies of it that the pass has met.
type letter struct {
	dlq.Entry
	fate fate
	// matches says that the pass is after it.
	matches bool
	// mirror says that it is the copy of an entry in a store.
	mirror bool
	leases []*queue.Lease // unsettled copies
}

// drain is one pass over the dead-letter queues of some queues, one after the other. It has one user and a goroutine that keeps what is in
// hand leased.
type drain struct {
	cfg   Config
	queue []string // still to go through
	sub   queue.Subscription
	// came says that the queue has handed out something, and doubted how often it has not although its count speaks of messages.
	came    bool
	doubted int
	// trouble is since when receives have failed; zero if they have not.
	trouble time.Time
	// end is when the pass began: what is newer is left. Zero leaves nothing.
	end time.Time

	letters map[string]*letter // by name
	order   []*letter          // those that match, as they came
	byID    map[string]*letter
	// runs holds the runs that this pass has published, by job: one that died again meanwhile is left.
	runs map[string]int

	looked, matched, passed, copies, later int

	mu   sync.Mutex // guards hand and changes of sub
	hand hand
	stop context.CancelFunc
	beat sync.WaitGroup
}

// slots is how many messages one subscription of a pass holds. When they are all kept, the next subscription follows: brokers that prefetch
// must not send all that a pass may keep at once.
const slots = 256

// drain begins a pass. It must be closed.
func (q *Queues) drain(ctx context.Context, f dlq.Filter) (*drain, error) {
	names, err := q.sources(ctx, f)
	if err != nil {
		return nil, err
	}
	d := &drain{
		cfg: q.cfg, queue: names, end: q.cfg.Now(), letters: map[string]*letter{}, byID: map[string]*letter{}, runs: map[string]int{},
		hand: hand{leases: map[*queue.Lease]queue.Subscription{}},
	}
	ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	d.beat.Go(func() { d.heartbeat(ctx) })
	return d, nil
}

// fill receives until limit letters that match f are fresh, or there are no more for now. With none at all the pass has come to its end.
// It returns [ErrTooMany] when so many are kept that there is no room for one that matches.
func (d *drain) fill(ctx context.Context, f dlq.Filter, limit int) error {
	for len(d.order) < limit && len(d.queue) > 0 {
		n, bytes := d.held()
		if n >= d.cfg.MaxKept || bytes >= d.cfg.MaxKeptBytes {
			if len(d.order) > 0 {
				return nil
			}
			return fmt.Errorf("%w: %d messages of %d bytes do not match or could not be published: choose a filter that matches more, or move all of "+
				"them to a store that can search (dlq-replay import)", ErrTooMany, n, bytes)
		}
		leases, err := d.receive(ctx, min(limit-len(d.order), d.cfg.MaxKept-n))
		if err != nil {
			return err
		}
		if len(leases) == 0 && len(d.order) > 0 {
			return nil // more may come when these are settled: on a FIFO queue the rest of their groups waits for that
		}
		for _, l := range leases {
			if err := d.judge(ctx, f, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// receive returns leases. None means that the queue had nothing for a while; with nothing fresh the pass then goes on to the next one.
func (d *drain) receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	name := d.queue[0]
	if err := d.subscribe(ctx, name); err != nil || d.sub == nil {
		return nil, err
	}
	idle := d.cfg.Idle
	if len(d.order) > 0 {
		idle /= 3
	}
	waiting, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	leases, err := d.sub.Receive(waiting, min(most, d.free()))
	for _, l := range leases {
		d.hold(l)
	}
	switch {
	case len(leases) > 0:
		d.trouble, d.came = time.Time{}, true
		return leases, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, queue.ErrQueueNotFound): // deleted since
		return nil, d.leave()
	case errors.Is(err, queue.ErrUnavailable):
		return nil, d.endure(fmt.Errorf("read dead letters of %s: %w", name, err))
	case err != nil && waiting.Err() == nil:
		return nil, fmt.Errorf("read dead letters of %s: %w", name, err)
	case waiting.Err() == nil, len(d.order) > 0, !d.trouble.IsZero(): // not silent for as long as Idle
		d.trouble = time.Time{}
		return nil, nil
	}
	if doubtful, err := d.doubts(ctx, name); doubtful || err != nil {
		return nil, err
	}
	return nil, d.leave()
}

// doubts reports whether a queue that has handed out nothing at all may be slow instead of empty: the broker counts messages. Counts may be old,
// so that a queue is doubted twice at most. One that nobody could count is taken for empty.
func (d *drain) doubts(ctx context.Context, name string) (bool, error) {
	if d.came || d.doubted == 2 {
		return false, nil
	}
	depth, err := d.cfg.Broker.Depth(ctx, queue.DLQ(name))
	switch {
	case ctx.Err() != nil: // and not the end of the pass
		return false, ctx.Err()
	case err != nil || depth.Ready.N == 0:
		return false, nil
	}
	d.doubted++
	return true, nil
}

// leave goes on to the next queue.
func (d *drain) leave() error {
	d.queue, d.came, d.doubted = d.queue[1:], false, 0
	return d.unsubscribe()
}

// endure returns err once the broker has been in trouble for as long as a lease; the driver paces the calls until then.
func (d *drain) endure(err error) error {
	now := d.cfg.Now()
	if d.trouble.IsZero() {
		d.trouble = now
	}
	if now.Sub(d.trouble) < d.cfg.Lease {
		return nil
	}
	return err
}

// subscribe sees to a subscription with room. There is none if the queue does not exist, and then the next queue is up.
func (d *drain) subscribe(ctx context.Context, name string) error {
	if d.sub != nil && d.free() < slots/4 {
		if err := d.unsubscribe(); err != nil {
			return err
		}
	}
	if d.sub != nil {
		return nil
	}
	sub, err := d.cfg.Broker.Subscribe(ctx, queue.DLQ(name), queue.SubscribeConfig{Lease: d.lease(name), Slots: slots})
	switch {
	case errors.Is(err, queue.ErrQueueNotFound):
		return d.leave()
	case err != nil:
		return fmt.Errorf("read dead letters of %s: %w", name, err)
	}
	d.use(sub)
	return nil
}

// lease returns how long messages are leased, which some brokers limit.
func (d *drain) lease(name string) time.Duration {
	if most := d.cfg.Broker.Capabilities(queue.DLQ(name)).MaxLease; most > 0 {
		return min(d.cfg.Lease, most)
	}
	return d.cfg.Lease
}

// unsubscribe ends the subscription. What it handed out stays in hand.
func (d *drain) unsubscribe() error {
	sub := d.sub
	if sub == nil {
		return nil
	}
	d.use(nil)
	if err := sub.Close(); err != nil {
		return fmt.Errorf("end of reading dead letters: %w", err)
	}
	return nil
}

// pass tells how the pass went.
func (d *drain) pass() Pass {
	return Pass{PassedOver: d.passed, Later: d.later, Copies: d.copies, Incomplete: len(d.queue) > 0}
}

// judge decides about one message.
func (d *drain) judge(ctx context.Context, f dlq.Filter, l *queue.Lease) error {
	e, named, mirror := entryOf(l, source(l.Queue))
	if !named && d.byID[e.ID] != nil { // never taken for a copy: nobody could tell
		e.Job += "." + rand.Text()
		e.ID = dlq.EntryID(e.Job, e.Run)
	}
	name := nameOf(e)
	if known := d.letters[name]; known != nil { // a copy, or the same message after its lease was lost
		if known.fate == gone {
			d.copies++
			return d.ack(ctx, l)
		}
		known.leases = append(known.leases, l)
		known.mirror = known.mirror && mirror // the broker's own is no mere copy
		return nil
	}
	if d.byID[e.ID] != nil {
		e.ID = dlq.OtherEntryID(e.Job, e.Run, e.Message.Body)
	}
	entry := &letter{Entry: e, leases: []*queue.Lease{l}, mirror: mirror}
	d.letters[name] = entry
	d.byID[e.ID] = entry
	d.looked++
	run, came := d.runs[e.Job]
	switch {
	case came && run <= e.Run, !d.end.IsZero() && e.StoredAt.After(d.end):
		d.later++
		entry.fate = kept
	case !d.selects(f, e):
		d.passed++
		entry.fate = kept
	default:
		entry.matches = true
		d.matched++
		d.order = append(d.order, entry)
	}
	return nil
}

// selects reports whether f selects e. An id selects every payload under it.
func (d *drain) selects(f dlq.Filter, e dlq.Entry) bool {
	if f.Matches(e) {
		return true
	}
	for _, id := range []string{dlq.EntryID(e.Job, e.Run), dlq.OtherEntryID(e.Job, e.Run, e.Message.Body)} {
		if e.ID = id; f.Matches(e) {
			return true
		}
	}
	return false
}

// nameOf tells letters apart: one run of a job and its payload.
func nameOf(e dlq.Entry) string {
	sum := sha256.Sum256(e.Message.Body)
	return dlq.EntryID(e.Job, e.Run) + " " + string(sum[:])
}

// take hands out up to limit letters of at most maxBytes, and one that is larger.
func (d *drain) take(limit, maxBytes int) []*letter {
	n, size := 0, 0
	for n < min(limit, len(d.order)) {
		if size += len(d.order[n].Message.Body); maxBytes > 0 && size > maxBytes && n > 0 {
			break
		}
		d.order[n].fate = handed
		n++
	}
	taken := d.order[:n:n]
	d.order = d.order[n:]
	slices.SortStableFunc(taken, func(a, b *letter) int { return a.StoredAt.Compare(b.StoredAt) })
	return taken
}

// remove acks all copies of letters, many at once, and returns one error for each. It may be called again after an error.
func (d *drain) remove(ctx context.Context, letters []*letter) []error {
	errs := make([]error, len(letters))
	parallel(len(letters), func(i int) {
		l := letters[i]
		l.fate, l.Entry = gone, dlq.Entry{ID: l.ID} // a pass may go over many
		for len(l.leases) > 0 && errs[i] == nil {
			if errs[i] = d.ack(ctx, l.leases[0]); errs[i] == nil {
				l.leases = l.leases[1:]
			}
		}
	})
	return errs
}

// ack removes one message. One whose lease is lost comes again, in this pass or in another.
func (d *drain) ack(ctx context.Context, l *queue.Lease) error {
	err := l.Ack(ctx)
	switch {
	case err == nil, errors.Is(err, queue.ErrLeaseLost), errors.Is(err, queue.ErrSettled):
		d.drop(l)
		return nil
	}
	return fmt.Errorf("remove from %s: %w", l.Queue, unavailable(err))
}
