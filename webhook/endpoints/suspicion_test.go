package endpoints

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSuspicion(t *testing.T) {
	t.Parallel()
	type step struct {
		after           time.Duration
		called, failing int
		want            bool
	}
	for name, steps := range map[string][]step{
		"a small fleet says nothing":        {{0, 19, 19, false}},
		"half is not most":                  {{0, 20, 10, false}, {time.Minute, 1000, 500, false}},
		"most is":                           {{0, 20, 11, true}},
		"nobody is called":                  {{0, 0, 0, false}},
		"it lasts as long as it is so":      {{0, 100, 60, true}, {10 * time.Hour, 100, 51, true}},
		"and as long again once it is over": {{0, 100, 60, true}, {time.Minute, 100, 50, true}, {10*time.Minute - 1, 100, 1, true}, {1, 100, 1, false}},
		"a relapse counts anew":             {{0, 100, 60, true}, {0, 100, 1, true}, {9 * time.Minute, 100, 60, true}, {time.Minute, 100, 1, true}, {9 * time.Minute, 100, 1, true}, {time.Minute, 100, 1, false}},
		"open breakers leave few to call":   {{0, 100, 60, true}, {time.Hour, 3, 2, true}, {time.Hour, 3, 1, true}, {10 * time.Minute, 3, 1, false}},
		"silence is no failure":             {{0, 100, 60, true}, {time.Minute, 0, 0, true}, {10 * time.Minute, 0, 0, false}},
		"it can come again":                 {{0, 100, 60, true}, {0, 100, 1, true}, {10 * time.Minute, 100, 1, false}, {0, 100, 99, true}},
	} {
		s := suspicion{least: 20, calm: 10 * time.Minute}
		now, before := time.Unix(0, 0), false
		for i, st := range steps {
			now = now.Add(st.after)
			if changed := s.step(now, st.called, st.failing); s.raised != st.want || changed != (st.want != before) {
				t.Errorf("%s, step %d: raised %v, changed %v", name, i+1, s.raised, changed)
			}
			before = st.want
		}
	}
}

// TestSuspicionFollowsTheFleet: it is up after each look that shows a large fleet mostly failing, it goes only after a time without one, and it
// never comes of a small fleet or of one that is mostly well.
func TestSuspicionFollowsTheFleet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const calm = 10 * time.Minute
		s := suspicion{least: 20, calm: calm}
		now := time.Unix(0, 0)
		var bad time.Time // the last look that showed most failing
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds")) * time.Second)
			called := rapid.IntRange(0, 60).Draw(t, "called")
			failing := rapid.IntRange(0, called).Draw(t, "failing")
			before := s.raised
			changed := s.step(now, called, failing)
			most := 2*failing > called
			if most {
				bad = now
			}
			switch {
			case changed != (before != s.raised):
				t.Fatalf("changed %v from %v to %v", changed, before, s.raised)
			case most && called >= 20 && !s.raised:
				t.Fatal("most of a large fleet fails, and nobody suspects us")
			case s.raised && !before && (!most || called < 20):
				t.Fatalf("%d of %d raise it", failing, called)
			case before && !s.raised && now.Sub(bad) < calm:
				t.Fatalf("gone %s after most failed", now.Sub(bad))
			}
		}
	})
}
