package breaker

import (
	"slices"
	"time"

	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// streak numbers the calls of a closed breaker in the order in which they started, and knows which of them are the newest that nobody
// answered. A call that starts after the last answered one is the tail's: it has failed, was ignored, or is in flight.
type streak struct {
	started  uint32 // number of the newest call; the first one is 1
	answered uint32 // number of the newest call that was answered
	full     uint32 // moment since which the tail has had calls enough to open on
	longest  uint32 // how long calls take that are answered, in milliseconds, rather more than less; 0 if none was
}

// ending is a call of the tail that is over.
type ending struct {
	number  uint32
	ignored bool
}

// endings are the calls of the tail that are over, in the order in which they started.
type endings struct {
	calls   []ending
	ignored uint32
}

// How many failures in a row open a breaker: so many that chance alone does it less than once in 100 months where one call in
// twenty fails. At r calls per second that is r * 2.6e8 s * 0.05^n times: below one for 8 up to 100 calls per second, for 9 up to 2,000 and
// for 10 up to 40,000.
const (
	inARow      = 8  // where at most inARowFew calls can be in flight
	inARowMany  = 10 // elsewhere: with the others in flight it is within twice as many
	inARowFew   = 4
	inARowRate  = 100 // calls per second above which 8 need a destination that is well otherwise
	inARowShare = 3   // percent of failures at which it is not
)

// enough is how many failures in a row open the breaker, whatever is known of the calls before them.
func (c *Circuit) enough() uint32 {
	if c.places > 0 && c.places <= inARowFew {
		return inARow
	}
	return inARowMany
}

// needed is enough, or one more for a destination that is both busy and never quite well.
func (c *Circuit) needed(cfg *Rules) uint32 {
	n := c.enough()
	if n > inARow {
		return n
	}
	if c.win == nil {
		return n
	}
	t := c.win.sum()
	before := t.failures - min(t.failures, uint64(c.InARow())) //nolint:gosec // a count
	if float64(t.calls) > inARowRate*cfg.Window.Seconds() && before*100 > inARowShare*t.calls {
		n++
	}
	return n
}

// tail counts the calls after the last answered one, ignored ones left out.
func (c *Circuit) tail() uint32 {
	n := c.streak.started - c.streak.answered
	if e := c.endings(); e != nil {
		n -= e.ignored
	}
	return n
}

func (c *Circuit) endings() *endings {
	if c.win == nil {
		return nil
	}
	return c.win.endings
}

// InARow counts the calls that have failed since one was answered that started before them all.
func (c *Circuit) InARow() int {
	e := c.endings()
	if e == nil {
		return 0
	}
	return len(e.calls) - int(e.ignored)
}

// unheard counts the calls of the tail that are in flight: an answer to them can hardly have come yet.
func (c *Circuit) unheard() int { return int(c.tail()) - c.InARow() }

// SetPlaces says how many calls can be in flight at once; 0 if nobody knows.
func (c *Circuit) SetPlaces(now int64, n int) {
	places := uint16(min(max(n, 0), 1<<16-1)) //nolint:gosec // bounded right here
	if places == c.places {
		return
	}
	before := c.enough()
	c.places = places
	if c.enough() != before {
		c.shorten(now)
	}
}

// Places is what SetPlaces said.
func (c *Circuit) Places() int { return int(c.places) }

// begin numbers a call that starts now.
func (c *Circuit) begin(now int64) uint32 {
	c.streak.started++
	if c.tail() == c.enough() {
		c.streak.full = stamp.Moment(now)
	}
	return c.streak.started
}

// shorten is told that the tail has lost calls: nobody knows when those that are left were enough, but now they are no more.
func (c *Circuit) shorten(now int64) { c.streak.full = stamp.Moment(now) }

// answered ends the streak up to the call of that number, which took so long.
func (c *Circuit) answered(now int64, number uint32, took int64) {
	s := &c.streak
	s.observe(took)
	if int32(number-s.answered) <= 0 { //nolint:gosec // it wraps, which the difference bears
		return
	}
	s.answered = number
	c.shorten(now)
	e := c.endings()
	if e == nil {
		return
	}
	newer := slices.IndexFunc(e.calls, func(x ending) bool { return int32(x.number-number) > 0 }) //nolint:gosec // likewise
	if newer < 0 {
		c.win.endings = nil
		return
	}
	for _, x := range e.calls[:newer] {
		if x.ignored {
			e.ignored--
		}
	}
	e.calls = slices.Delete(e.calls, 0, newer)
}

// observe remembers how long answers take: at once if longer than before, and forgets that slowly.
func (s *streak) observe(took int64) {
	ms := uint32(min(max(took/int64(time.Millisecond), 1), 1<<31)) //nolint:gosec // bounded right here
	if ms >= s.longest {
		s.longest = ms
		return
	}
	s.longest -= (s.longest - ms) / 256
}

// ended adds a call of the tail that failed or was ignored, and returns how many failures in a row it is part of.
func (c *Circuit) ended(now int64, number uint32, ignored bool) (run uint32) {
	if int32(number-c.streak.answered) <= 0 { //nolint:gosec // it wraps, which the difference bears
		return 0
	}
	if c.win.endings == nil {
		c.win.endings = &endings{}
	}
	e := c.win.endings
	at, _ := slices.BinarySearchFunc(e.calls, number, func(x ending, n uint32) int { return int(int32(x.number - n)) }) //nolint:gosec // likewise
	e.calls = slices.Insert(e.calls, at, ending{number, ignored})
	if ignored {
		e.ignored++
		c.shorten(now)
	}
	run = e.around(at)
	c.trim()
	return run
}

// mostEndings is how many calls of the tail that are over are kept; beyond that the oldest are forgotten, and count as answered.
const mostEndings = 512

// trim forgets ignored calls at the tail's beginning, and what is too much.
func (c *Circuit) trim() {
	e := c.win.endings
	for len(e.calls) > 0 && (len(e.calls) > mostEndings || e.calls[0].ignored && e.calls[0].number == c.streak.answered+1) {
		if e.calls[0].ignored {
			e.ignored--
		}
		c.streak.answered = e.calls[0].number
		e.calls = slices.Delete(e.calls, 0, 1)
	}
	if len(e.calls) == 0 {
		c.win.endings = nil
	}
}

// around counts the failures of the run without a gap that holds that call.
func (e *endings) around(at int) (run uint32) {
	from, to := at, at
	for from > 0 && e.calls[from-1].number+1 == e.calls[from].number {
		from--
	}
	for to+1 < len(e.calls) && e.calls[to].number+1 == e.calls[to+1].number {
		to++
	}
	for _, x := range e.calls[from : to+1] {
		if !x.ignored {
			run++
		}
	}
	return run
}

// holds reports whether calls wait until those in flight have told more: with another one, more would be spent on a destination that
// fails than opening takes.
func (c *Circuit) holds(cfg *Rules, out int) bool {
	if c.places == 0 || out == 0 || cfg.failures == 0 {
		return false
	}
	failed := c.InARow()
	return failed > 0 && failed+out >= max(inARow, 2*int(c.places))
}

// Judge opens a breaker whose calls get no answer: of so many in a row, each has failed or is in flight for longer than
// [Config.HungAfter] and than twice what answered calls took at the most. An age counts from armed: a process that stood still meanwhile
// knows nothing. Where no call has ever been answered nobody knows what is long, and only failures count.
func (c *Circuit) Judge(cfg *Rules, now, armed int64) Change {
	if c.state != StateClosed || cfg.failures == 0 || cfg.hungAfter == 0 || c.streak.longest == 0 || c.tail() < c.enough() {
		return Change{}
	}
	long := max(cfg.hungAfter, 2*int64(c.streak.longest)*int64(time.Millisecond))
	if stamp.Since(now, c.streak.full) < long || stamp.Add(armed, long) > now || c.tail() < c.needed(cfg) {
		return Change{}
	}
	return c.trip(cfg, now, TransitionReasonNoAnswer)
}
