package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// publish offers rows to the broker, the queues side by side, until deadline.
func (r *Relay) publish(ctx context.Context, rows []row, deadline time.Time) outcomes {
	all := outcomes{list: make([]outcome, len(rows))}
	byQueue := make(map[string][]int)
	for i := range rows {
		byQueue[rows[i].queue] = append(byQueue[rows[i].queue], i)
	}
	// A stop lets the call under way end: what it has sent and was not told about would be published twice.
	ctx, cancel := lingering(ctx, r.cfg.PublishTimeout)
	defer cancel()
	ctx, cancelLate := context.WithDeadline(ctx, deadline)
	defer cancelLate()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for name, indexes := range byQueue {
		wg.Go(func() {
			p := &queueBatch{relay: r, queue: name, rows: rows, list: all.list, indexes: indexes, caps: r.cfg.Broker.Capabilities(name)}
			p.run(ctx)
			if p.fatal != nil {
				mu.Lock()
				defer mu.Unlock()
				all.fatal = p.fatal
			}
		})
	}
	wg.Wait()
	return all
}

// queueBatch is the way of one queue's rows to the broker. It writes only to its own places of list.
type queueBatch struct {
	relay   *Relay
	queue   string
	rows    []row
	list    []outcome
	indexes []int
	caps    queue.Capabilities
	fatal   error
}

// run publishes in groups. A group holds what needs no order and, of each key, one row: the next one goes out only when that is confirmed, so
// that a key's jobs arrive in order whatever happens to the broker, to this relay or to another one that believes to hold the shard.
func (p *queueBatch) run(ctx context.Context) {
	lanes := make(map[lane][]int)
	var group []int
	for _, i := range p.indexes {
		row := &p.rows[i]
		if row.key == nil {
			if p.ready(i) {
				group = append(group, i)
			}
			continue
		}
		lanes[row.lane()] = append(lanes[row.lane()], i)
	}
	for first := true; first || len(lanes) > 0; first = false {
		for key, line := range lanes {
			if i := line[0]; p.ready(i) {
				group = append(group, i)
			} else {
				p.block(line)
				delete(lanes, key)
			}
		}
		if len(group) > 0 && !p.offer(ctx, group) {
			return
		}
		for key, line := range lanes {
			switch {
			case p.list[line[0]].what != published:
				p.block(line)
				delete(lanes, key)
			case len(line) == 1:
				delete(lanes, key)
			default:
				lanes[key] = line[1:]
			}
		}
		group = group[:0]
	}
}

// ready reports whether row i can be offered now. If not, it has its outcome.
func (p *queueBatch) ready(i int) bool {
	row := &p.rows[i]
	switch {
	case row.behind:
		p.list[i] = outcome{what: behind}
	case row.damaged != nil:
		p.refuse(i, row.damaged)
	case row.pub.Delay > 0 && p.caps.FIFO: // which takes no delay of a message's own
		p.list[i] = outcome{what: postponed, delay: row.pub.Delay}
	default:
		if longest := p.caps.MaxDelay; longest > 0 { // the envelope's not_before carries the rest
			row.pub.Delay = min(row.pub.Delay, longest)
		}
		return true
	}
	return false
}

// block has the rest of a key wait behind its first row, unless that stays where it is.
func (p *queueBatch) block(line []int) {
	if p.list[line[0]].what == untouched {
		return
	}
	for _, i := range line[1:] {
		p.list[i] = outcome{what: behind}
	}
}

// offer publishes one group, and reports whether the queue takes more.
func (p *queueBatch) offer(ctx context.Context, group []int) bool {
	pubs := make([]queue.Publication, len(group))
	for n, i := range group {
		pubs[n] = p.rows[i].pub
	}
	calling, cancel := context.WithTimeout(ctx, p.relay.cfg.PublishTimeout)
	defer cancel()
	answers := p.relay.cfg.Broker.Publish(calling, p.queue, pubs)
	event := Event{Queue: p.queue}
	var away []int
	for n, i := range group {
		err := answers[n].Err
		switch {
		case err == nil:
			p.list[i] = outcome{what: published}
			event.Published++
			continue
		case errors.Is(err, queue.ErrClosed):
			p.fatal = err
			away = append(away, n)
		case errors.Is(err, queue.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			away = append(away, n)
		default:
			p.refuse(i, err)
		}
		event.Err = err
	}
	if event.Published > 0 && calling.Err() == nil && p.fatal == nil {
		for _, n := range away { // the queue takes others: were this one left at the head, a few of its kind would block the rest
			p.refuse(group[n], answers[n].Err)
		}
		away = nil
	}
	event.Unavailable = len(away) > 0
	p.report(ctx, group, &event)
	return !event.Unavailable
}

// report tells log, observer and pauses what became of a group.
func (p *queueBatch) report(ctx context.Context, group []int, event *Event) {
	log := p.relay.cfg.Logger.With("queue", p.queue)
	for _, i := range group {
		switch o := p.list[i]; o.what {
		case parked:
			event.Parked++
			event.Refused++
			log.ErrorContext(ctx, "outbox relay has parked a job that the broker refuses: mend the cause, then retry or discard it",
				"row", p.rows[i].id, "attempts", p.rows[i].attempts+1, "error", o.err)
		case refused:
			event.Refused++
			if p.rows[i].attempts == 0 {
				log.WarnContext(ctx, "the broker refuses a job of the outbox: it is tried again", "row", p.rows[i].id, "delay", o.delay, "error", o.err)
			}
		}
	}
	if event.Unavailable && p.relay.pauses.failed(p.queue, time.Now()) {
		log.WarnContext(ctx, "the broker takes no jobs from the outbox at present: they wait", "error", event.Err)
	}
	if !event.Unavailable && p.relay.pauses.worked(p.queue) {
		log.InfoContext(ctx, "the broker takes jobs from the outbox again")
	}
	if o := p.relay.cfg.Observer; o != nil {
		o.Observe(*event)
	}
}

// refuse counts an attempt of row i.
func (p *queueBatch) refuse(i int, err error) {
	attempt := int(p.rows[i].attempts) + 1
	if attempt >= p.relay.cfg.MaxAttempts {
		p.list[i] = outcome{what: parked, err: err}
		return
	}
	p.list[i] = outcome{what: refused, err: err, delay: p.relay.cfg.Backoff.Delay(attempt, 0, nil)}
}
