package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue/inspect"
)

// job is one job and what belongs to it. Everything but the id may be unknown.
type job struct {
	id, kind, key, destination, queue string
	// keyAssumed says that key is the job's id for want of anything better: its kind may derive one from the payload.
	keyAssumed bool
	// run is the newest that is known of.
	run    int
	places []inspect.Location
	// claim is the record of the job's key, whoever holds it; nil if there is none.
	claim *idempotency.Record
	// ledgers are the job's own runs, newest first.
	ledgers []idempotency.Record
	// letters are its dead letters, newest run first.
	letters []dlq.Entry
}

// matching are the jobs that match.
func (d *diagnosis) matching() []*job {
	var all []*job
	for _, id := range d.ids() {
		all = append(all, d.factsOf(id))
	}
	return all
}

// factsOf collects what belongs to a job.
func (d *diagnosis) factsOf(id string) *job {
	j := &job{id: id}
	for _, p := range d.places {
		if jobID(p) == id {
			j.places = append(j.places, p)
			j.run = max(j.run, p.Envelope.Run)
			j.know(p.Envelope.Kind, p.Envelope.Key, p.Envelope.Destination, p.Queue)
		}
	}
	for _, e := range d.letters {
		if e.Job == id {
			j.letters = append(j.letters, e)
			j.run = max(j.run, e.Run)
			j.know(e.Kind, e.Key, e.Destination, e.Queue)
		}
	}
	slices.SortFunc(j.letters, func(a, b dlq.Entry) int { return cmp.Or(b.Run-a.Run, strings.Compare(a.ID, b.ID)) })
	for _, r := range d.records {
		if r.Job == id {
			j.ledgers = append(j.ledgers, r)
			j.run = max(j.run, r.Run)
			j.know(r.Key.Scope, r.Key.Value, "", "")
		}
	}
	slices.SortStableFunc(j.ledgers, func(a, b idempotency.Record) int { return b.Run - a.Run })
	j.keyAssumed = j.key == ""
	j.key = cmp.Or(j.key, id)
	for i, r := range d.records {
		if r.Key.Value == j.key && (j.kind == "" || r.Key.Scope == j.kind) && r.Key != (idempotency.Key{}) {
			j.claim = &d.records[i]
			j.kind = r.Key.Scope
			break
		}
	}
	if k, ok := d.kindOf(j); ok {
		j.destination = cmp.Or(j.destination, k.Destination)
	}
	j.destination = pools.NormalizeDestination(j.destination)
	return j
}

// know fills in what was not known yet.
func (j *job) know(kind, key, destination, queue string) {
	j.kind, j.key = cmp.Or(j.kind, kind), cmp.Or(j.key, key)
	j.destination, j.queue = cmp.Or(j.destination, destination), cmp.Or(j.queue, queue)
}

// ledger is that of the newest run; nil if nothing is known of it.
func (j *job) ledger() *idempotency.Record {
	if len(j.ledgers) == 0 || j.ledgers[0].Run != j.run {
		return nil
	}
	return &j.ledgers[0]
}

// letter is the dead letter of the newest run; nil if there is none.
func (j *job) letter() *dlq.Entry {
	if len(j.letters) == 0 || j.letters[0].Run != j.run {
		return nil
	}
	return &j.letters[0]
}

// place is the message of the newest run that comes first: leased before ready before delayed. Nil if none is known.
func (j *job) place() *inspect.Location {
	order := []inspect.State{inspect.StateLeased, inspect.StateReady, inspect.StateDelayed}
	var best *inspect.Location
	for i, p := range j.places {
		if p.Envelope.Run == j.run && (best == nil || slices.Index(order, p.State) < slices.Index(order, best.State)) {
			best = &j.places[i]
		}
	}
	return best
}

// kindOf returns the job's kind as a live worker runs it.
func (d *diagnosis) kindOf(j *job) (fleet.Kind, bool) {
	for _, r := range d.reports {
		for _, k := range r.Kinds {
			if k.Name == j.kind {
				return k, true
			}
		}
	}
	return fleet.Kind{}, false
}

// workersOf returns the live workers of a queue.
func (d *diagnosis) workersOf(queue string) []fleet.Report {
	return slices.DeleteFunc(slices.Clone(d.reports), func(r fleet.Report) bool {
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
func (d *diagnosis) poolOf(j *job) *poolView {
	k, ok := d.kindOf(j)
	if !ok || k.Pool == "" {
		return nil
	}
	v := &poolView{Name: k.Pool}
	for _, r := range d.reports {
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
