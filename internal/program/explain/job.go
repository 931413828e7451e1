package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue"
)

// subject is one job and what belongs to it. Everything but the id may be unknown.
type subject struct {
	job, kind, key, destination, queue string
	// keyAssumed says that key is the job's id for want of anything better: its kind may derive one from the payload.
	keyAssumed bool
	// run is the newest that is known of.
	run    int
	places []queue.Place
	// claim is the record of the job's key, whoever holds it; nil if there is none.
	claim *idempotency.Record
	// ledgers are the job's own runs, newest first.
	ledgers []idempotency.Record
	// letters are its dead letters, newest run first.
	letters []dlq.Entry
}

// subjects are the jobs that match.
func (ev *evidence) subjects() []*subject {
	var all []*subject
	for _, job := range ev.jobs() {
		all = append(all, ev.subject(job))
	}
	return all
}

// subject collects what belongs to a job.
func (ev *evidence) subject(job string) *subject {
	s := &subject{job: job}
	for _, p := range ev.places {
		if jobOf(p) == job {
			s.places = append(s.places, p)
			s.run = max(s.run, p.Envelope.Run)
			s.know(p.Envelope.Kind, p.Envelope.Key, p.Envelope.Destination, p.Queue)
		}
	}
	for _, e := range ev.letters {
		if e.Job == job {
			s.letters = append(s.letters, e)
			s.run = max(s.run, e.Run)
			s.know(e.Kind, e.Key, e.Destination, e.Queue)
		}
	}
	slices.SortFunc(s.letters, func(a, b dlq.Entry) int { return cmp.Or(b.Run-a.Run, strings.Compare(a.ID, b.ID)) })
	for _, r := range ev.records {
		if r.Job == job {
			s.ledgers = append(s.ledgers, r)
			s.run = max(s.run, r.Run)
			s.know(r.Key.Scope, r.Key.Value, "", "")
		}
	}
	slices.SortStableFunc(s.ledgers, func(a, b idempotency.Record) int { return b.Run - a.Run })
	s.keyAssumed = s.key == ""
	s.key = cmp.Or(s.key, job)
	for i, r := range ev.records {
		if r.Key.Value == s.key && (s.kind == "" || r.Key.Scope == s.kind) && r.Key != (idempotency.Key{}) {
			s.claim = &ev.records[i]
			s.kind = r.Key.Scope
			break
		}
	}
	if k, ok := ev.kindOf(s); ok {
		s.destination = cmp.Or(s.destination, k.Destination)
	}
	s.destination = pools.NormalizeDestination(s.destination)
	return s
}

// know fills in what was not known yet.
func (s *subject) know(kind, key, destination, queue string) {
	s.kind, s.key = cmp.Or(s.kind, kind), cmp.Or(s.key, key)
	s.destination, s.queue = cmp.Or(s.destination, destination), cmp.Or(s.queue, queue)
}

// ledger is that of the newest run; nil if nothing is known of it.
func (s *subject) ledger() *idempotency.Record {
	if len(s.ledgers) == 0 || s.ledgers[0].Run != s.run {
		return nil
	}
	return &s.ledgers[0]
}

// letter is the dead letter of the newest run; nil if there is none.
func (s *subject) letter() *dlq.Entry {
	if len(s.letters) == 0 || s.letters[0].Run != s.run {
		return nil
	}
	return &s.letters[0]
}

// place is the message of the newest run that comes first: leased before ready before delayed. Nil if none is known.
func (s *subject) place() *queue.Place {
	order := []queue.PlaceState{queue.PlaceStateLeased, queue.PlaceStateReady, queue.PlaceStateDelayed}
	var best *queue.Place
	for i, p := range s.places {
		if p.Envelope.Run == s.run && (best == nil || slices.Index(order, p.State) < slices.Index(order, best.State)) {
			best = &s.places[i]
		}
	}
	return best
}

// kindOf returns the job's kind as a live worker runs it.
func (ev *evidence) kindOf(s *subject) (fleet.Kind, bool) {
	for _, r := range ev.reports {
		for _, k := range r.Kinds {
			if k.Name == s.kind {
				return k, true
			}
		}
	}
	return fleet.Kind{}, false
}

// workersOf returns the live workers of a queue.
func (ev *evidence) workersOf(queue string) []fleet.Report {
	return slices.DeleteFunc(slices.Clone(ev.reports), func(r fleet.Report) bool {
		return !slices.ContainsFunc(r.Queues, func(q fleet.Queue) bool { return q.Name == queue })
	})
}

// poolView is the bulkhead of a kind over the fleet.
type poolView struct {
	Name string `json:"name"`
	// Workers have it, and Full of them have no free place.
	Workers int `json:"workers"`
	Full    int `json:"full"`
	Size    int `json:"size"`
	InUse   int `json:"in_use"`
	Waiting int `json:"waiting"`
}

// poolOf adds up the pool of the job's kind; nil if it has none.
func (ev *evidence) poolOf(s *subject) *poolView {
	k, ok := ev.kindOf(s)
	if !ok || k.Pool == "" {
		return nil
	}
	v := &poolView{Name: k.Pool}
	for _, r := range ev.reports {
		for _, p := range r.Pools {
			if p.Name != k.Pool {
				continue
			}
			v.Workers++
			v.Size, v.InUse, v.Waiting = v.Size+p.Size, v.InUse+p.InUse, v.Waiting+p.Waiting
			if p.InUse >= p.Size {
				v.Full++
			}
		}
	}
	return v
}
