package rabbitmq

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLadder: a delay is never cut short, and made longer by no more than is documented.
func TestLadder(t *testing.T) {
	for octave, most := range map[int]float64{8: 0.091, 4: 0.19} {
		l := newLadder(octave)
		if want := map[int]int{8: 133, 4: 67}[octave]; len(l) != want {
			t.Errorf("%d steps an octave: %d steps in all, want %d", octave, len(l), want)
		}
		if l[0] != shortestDelay || l[len(l)-1] != longestDelay {
			t.Errorf("the ladder goes from %v to %v", l[0], l[len(l)-1])
		}
		rapid.Check(t, func(t *rapid.T) {
			delay := time.Duration(rapid.Int64Range(1, int64(longestDelay)).Draw(t, "delay"))
			step := l.snap(delay)
			switch {
			case step < delay:
				t.Errorf("%v is cut to %v", delay, step)
			case delay < shortestDelay && step != shortestDelay:
				t.Errorf("%v becomes %v, want the shortest", delay, step)
			case delay >= shortestDelay && float64(step) > float64(delay)*(1+most)+float64(time.Millisecond):
				t.Errorf("%v becomes %v, more than %.1f %% longer", delay, step, 100*most)
			case step%time.Millisecond != 0:
				t.Errorf("step %v is no whole millisecond", step)
			}
		})
		if got := l.snap(longestDelay + 1); got != longestDelay {
			t.Errorf("beyond the ladder: %v", got)
		}
	}
}
