package breaker

import "math"

// buckets is how many parts a breaker's window has: a call leaves the count at most a tenth of the window early.
const buckets = 10

// tally counts completed calls.
type tally struct{ calls, failures, slow uint64 }

// reaches reports whether part is at least percent of the calls. Integers only: 9,999 of 20,000 is below 50 %.
func (t tally) reaches(part uint64, percent int) bool {
	return percent > 0 && part*100 >= uint64(percent)*t.calls
}

const (
	cellCalls = iota
	cellFailures
	cellSlow
	cellFields
)

type cell[N uint16 | uint32] [cellFields]N

// counts is a ring of buckets with its sum.
type counts[N uint16 | uint32] struct {
	cells [buckets]cell[N]
	sum   cell[N]
}

func (c *counts[N]) drop(i int) {
	for f := range c.sum {
		c.sum[f] -= c.cells[i][f]
	}
	c.cells[i] = cell[N]{}
}

func (c *counts[N]) bump(i, field int) {
	c.cells[i][field]++
	c.sum[field]++
}

// gather moves everything into bucket i.
func (c *counts[N]) gather(i int) {
	sum := c.sum
	*c = counts[N]{sum: sum}
	c.cells[i] = sum
}

// window counts the calls that completed in the last ten buckets. It starts with 16-bit counters, which is 88 bytes in all,
// and moves to 32-bit ones when a window holds more than 65,535 calls.
type window struct {
	head  uint32 // slot of the newest bucket
	pos   uint8  // index of the newest bucket
	small counts[uint16]
	large *counts[uint32]

	endings *endings // nil while the newest call that ended was answered
}

// advance moves to slot n. Time that runs backwards stays in the newest bucket.
func (w *window) advance(n uint32) {
	steps := int32(n - w.head)
	if steps <= 0 {
		return
	}
	w.head = n
	if steps >= buckets {
		w.small, w.large = counts[uint16]{}, nil
		return
	}
	for range steps {
		w.pos = (w.pos + 1) % buckets
		if w.large != nil {
			w.large.drop(int(w.pos))
		} else {
			w.small.drop(int(w.pos))
		}
	}
}

// record adds one completed call.
func (w *window) record(n uint32, o Outcome) {
	w.advance(n)
	if w.large == nil && w.small.sum[cellCalls] == math.MaxUint16 {
		w.widen()
	}
	if w.large != nil {
		if w.large.sum[cellCalls] < math.MaxUint32 {
			note(w.large, int(w.pos), o)
		}
		return
	}
	note(&w.small, int(w.pos), o)
}

func note[N uint16 | uint32](c *counts[N], pos int, o Outcome) {
	c.bump(pos, cellCalls)
	switch o {
	case OutcomeFailure:
		c.bump(pos, cellFailures)
	case OutcomeSlow:
		c.bump(pos, cellSlow)
	}
}

func (w *window) widen() {
	large := new(counts[uint32])
	for f := range cellFields {
		large.sum[f] = uint32(w.small.sum[f])
		for i := range buckets {
			large.cells[i][f] = uint32(w.small.cells[i][f])
		}
	}
	w.large = large
}

// tally sums the window as of slot n.
func (w *window) tally(n uint32) tally {
	if w == nil {
		return tally{}
	}
	w.advance(n)
	return w.sum()
}

func (w *window) sum() tally {
	if w.large != nil {
		s := w.large.sum
		return tally{uint64(s[cellCalls]), uint64(s[cellFailures]), uint64(s[cellSlow])}
	}
	s := w.small.sum
	return tally{uint64(s[cellCalls]), uint64(s[cellFailures]), uint64(s[cellSlow])}
}

// rebase keeps the counts when the bucket width changes: they count as completed in slot n of the new width.
func (w *window) rebase(n uint32) {
	w.head = n
	if w.large != nil {
		w.large.gather(int(w.pos))
		return
	}
	w.small.gather(int(w.pos))
}
