package pools

import (
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// judgeGap is the longest time between two calls of Judge after which ages still tell something.
const judgeGap = int64(2 * time.Second)

// Judge opens the breakers of destinations whose calls hang: they are told by age, long before a timeout ends them, and while
// nobody may ask for another call since all places are taken. Call it half a second after a call begins, and every half second while it
// reports that calls are in flight. After a gap of more than 2 s, when the process stood still and its calls with it, ages count anew.
func (r *Destinations) Judge(now time.Time) (inFlight bool) {
	at := stamp.Of(now)
	if last := r.judged.Swap(at); last == 0 || at-last > judgeGap {
		r.armed.Store(at)
	}
	armed := r.armed.Load()
	for i := range r.shards {
		inFlight = r.shards[i].judge(now, armed) || inFlight
	}
	return r.overflow.judge(now, armed) || inFlight
}

func (s *shard) judge(now time.Time, armed int64) (inFlight bool) {
	s.mu.Lock()
	defer s.unlock()
	if s.out == 0 {
		return false
	}
	for _, d := range s.m {
		if d.out > 0 && d.circuit.State() == breaker.StateClosed {
			d.notify(&s.guard, now, d.circuit.Judge(&d.s.breaker, stamp.Of(now), armed))
		}
	}
	return true
}
