package endpointtest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/webhook/endpoints"
)

func healthTests() []testCase {
	return []testCase{
		{"Health/nothing was reported", testNoHealth},
		{"Health/a success ends earlier failures, whoever saw it", testSuccessEnds},
		{"Health/failures before a later success do not count", testLateReport},
		{"Health/adds as the reference does", testHealthModel},
		{"Health/reports at once add up", testReportsAtOnce},
		{"Health/several reports of one endpoint in a batch", testRepeatedReports},
		{"Health/unknown and deleted endpoints have none", testHealthOfUnknown},
		{"Health/those of many that fail", testFailing},
		{"Health/an endpoint that recovers forgets", testRecovered},
	}
}

func (e *env) report(deltas ...endpoints.Delta) []endpoints.Health {
	e.Helper()
	seen, err := e.store.Report(e.Context(), deltas)
	if err != nil {
		e.Fatalf("report: %v", err)
	}
	return seen
}

func (e *env) health(id string) endpoints.Health {
	e.Helper()
	h, err := e.store.Health(e.Context(), id)
	if err != nil {
		e.Fatalf("health of %q: %v", id, err)
	}
	return h
}

func at(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }

func testNoHealth(e *env) {
	id := e.some(1)[0].ID
	e.want("health", e.health(id), endpoints.Health{Endpoint: id})
	e.want("of nobody", e.health("nobody"), endpoints.Health{Endpoint: "nobody"})
	if seen := e.report(); len(seen) != 0 {
		e.Errorf("an empty report returns %+v", seen)
	}
}

func testSuccessEnds(e *env) {
	id := e.some(1)[0].ID
	e.report(endpoints.Delta{Endpoint: id, Failures: 3, FirstFailure: at(1), LastFailure: at(3)})
	e.report(endpoints.Delta{Endpoint: id, Failures: 2, FirstFailure: at(0), LastFailure: at(2)}) // another worker, heard of later
	want := endpoints.Health{Endpoint: id, Failures: 5, FailingSince: at(0), LastFailure: at(3)}
	e.want("failing", e.health(id), want)
	got := e.report(endpoints.Delta{Endpoint: id, Success: at(4)})
	want = endpoints.Health{Endpoint: id, LastSuccess: at(4), LastFailure: at(3)}
	e.want("after the success", got, []endpoints.Health{want})
	e.want("after the success", e.health(id), want)
	e.report(endpoints.Delta{Endpoint: id, Failures: 1, FirstFailure: at(6), Success: at(5)})
	e.want("failing again", e.health(id), endpoints.Health{Endpoint: id, Failures: 1, FailingSince: at(6), LastSuccess: at(5), LastFailure: at(6)})
}

func testFailing(e *env) {
	list := e.some(4)
	a, b, c, d := list[0].ID, list[1].ID, list[2].ID, list[3].ID
	e.report(
		endpoints.Delta{Endpoint: a, Failures: 3, FirstFailure: at(1), LastFailure: at(3)},
		endpoints.Delta{Endpoint: b, Failures: 1, FirstFailure: at(1), Success: at(2)},
		endpoints.Delta{Endpoint: d, Failures: 1, FirstFailure: at(1)},
	)
	failing := func(ids ...string) []endpoints.Health {
		found, err := e.store.Failing(e.Context(), ids)
		if err != nil {
			e.Fatalf("failing: %v", err)
		}
		return found
	}
	e.want("of those asked for", failing(a, b, c, "nobody"), []endpoints.Health{{Endpoint: a, Failures: 3, FailingSince: at(1), LastFailure: at(3)}})
	e.want("of more", len(failing(a, b, c, d)), 2)
	e.want("of none", len(failing()), 0)
}

func testLateReport(e *env) {
	id := e.some(1)[0].ID
	e.report(endpoints.Delta{Endpoint: id, Success: at(10)})
	e.report(endpoints.Delta{Endpoint: id, Failures: 4, FirstFailure: at(2), LastFailure: at(9)})
	want := endpoints.Health{Endpoint: id, LastSuccess: at(10), LastFailure: at(9)}
	e.want("failures before the success", e.health(id), want)
	e.report(endpoints.Delta{Endpoint: id, Failures: 4, FirstFailure: at(8), LastFailure: at(12)})
	want.Failures, want.FailingSince, want.LastFailure = 1, at(12), at(12)
	e.want("failures around the success", e.health(id), want)
	e.report(endpoints.Delta{Endpoint: id, Success: at(11)}) // of a worker that reports late
	want.LastSuccess = at(11)
	e.want("a success before the last failure", e.health(id), want)
	e.report(endpoints.Delta{Endpoint: id, Failures: 1, FirstFailure: at(11)})
	e.want("a failure as old as the success", e.health(id), want)
}

// testHealthModel compares with [endpoints.Health.Add].
func testHealthModel(e *env) {
	rapid.Check(e.T, func(t *rapid.T) {
		id := e.insert(e.record()).ID
		want := endpoints.Health{Endpoint: id}
		moment := rapid.Custom(func(t *rapid.T) time.Time { return at(rapid.IntRange(1, 20).Draw(t, "minute")) })
		for range rapid.IntRange(1, 6).Draw(t, "reports") {
			d := endpoints.Delta{Endpoint: id, Failures: rapid.IntRange(0, 3).Draw(t, "failures")}
			if d.Failures > 0 {
				d.FirstFailure = moment.Draw(t, "first")
				if d.Failures > 1 {
					d.LastFailure = d.FirstFailure.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "minutes")) * time.Minute)
				}
			}
			if rapid.Bool().Draw(t, "succeeded") {
				d.Success = moment.Draw(t, "success")
			}
			want = want.Add(d)
			got := e.report(d)
			if len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
				t.Fatalf("after %+v the health is %+v, want %+v", d, got, want)
			}
		}
		if got := e.health(id); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("the health is read as %+v, want %+v", got, want)
		}
	})
}

func testReportsAtOnce(e *env) {
	const workers, times = 6, 10
	kept := e.some(20)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range times {
				deltas := make([]endpoints.Delta, len(kept))
				for j, k := range rand.Perm(len(kept)) {
					deltas[j] = endpoints.Delta{Endpoint: kept[k].ID, Failures: 2, FirstFailure: at(i), LastFailure: at(i + 1)}
				}
				if seen, err := e.store.Report(e.Context(), deltas); err != nil || len(seen) != len(kept) {
					e.Errorf("%d of %d reported: %v", len(seen), len(kept), err)
				}
			}
		})
	}
	all.Wait()
	for _, r := range kept {
		e.want("health", e.health(r.ID), endpoints.Health{Endpoint: r.ID, Failures: 2 * workers * times, FailingSince: at(0), LastFailure: at(times)})
	}
}

func testRepeatedReports(e *env) {
	kept := e.some(2)
	a, b := kept[0].ID, kept[1].ID
	seen := e.report(
		endpoints.Delta{Endpoint: a, Failures: 2, FirstFailure: at(1)}, endpoints.Delta{Endpoint: b, Failures: 1, FirstFailure: at(1)},
		endpoints.Delta{Endpoint: a, Success: at(3)}, endpoints.Delta{Endpoint: a, Failures: 1, FirstFailure: at(4)},
	)
	want := endpoints.Health{Endpoint: a, Failures: 1, FailingSince: at(4), LastSuccess: at(3), LastFailure: at(4)}
	e.want("health", e.health(a), want)
	if len(seen) != 2 {
		e.Errorf("a report of two endpoints returns %+v", seen)
	}
	for _, h := range seen {
		if h.Endpoint == a {
			e.want("reported", h, want)
		}
	}
}

func testHealthOfUnknown(e *env) {
	kept := e.some(2)
	gone := kept[0]
	e.report(endpoints.Delta{Endpoint: gone.ID, Failures: 1, FirstFailure: at(1)})
	e.delete(gone)
	fresh := endpoints.Health{Endpoint: gone.ID}
	e.want("health of a deleted one", e.health(gone.ID), fresh)
	seen := e.report(endpoints.Delta{Endpoint: "nobody", Failures: 1, FirstFailure: at(1)},
		endpoints.Delta{Endpoint: gone.ID, Failures: 1, FirstFailure: at(1)}, endpoints.Delta{Endpoint: kept[1].ID, Success: at(1)})
	e.want("reported", seen, []endpoints.Health{{Endpoint: kept[1].ID, LastSuccess: at(1)}})
	if err := e.store.Recovered(e.Context(), gone.ID); err != nil {
		e.Errorf("recovery of a deleted one: %v", err)
	}
	e.want("health of a deleted one", e.health(gone.ID), fresh)
	again := e.record()
	again.ID = gone.ID
	e.insert(again)
	e.want("health of one that was added again", e.health(gone.ID), fresh)
}

func testRecovered(e *env) {
	kept := e.some(2)
	id, now := kept[0].ID, time.Now().Truncate(time.Second)
	e.report(endpoints.Delta{Endpoint: id, Failures: 9, FirstFailure: at(1), LastFailure: now.Add(time.Hour), Success: at(0)}) // by a clock that is ahead
	for _, r := range kept {                                                                                                   // the second never had any
		if err := e.store.Recovered(e.Context(), r.ID); err != nil {
			e.Fatal(err)
		}
		if h := e.health(r.ID); h.Failures != 0 || !h.FailingSince.IsZero() || h.Recovered.Before(now.Add(-time.Minute)) {
			e.Errorf("recovered with %+v", h)
		}
	}
	if h := e.health(id); !h.LastSuccess.Equal(at(0)) || !h.LastFailure.Equal(now.Add(time.Hour)) {
		e.Errorf("recovery forgets when it succeeded and failed last: %+v", h)
	}
	// A worker that had not reported yet what it saw before.
	if seen := e.report(endpoints.Delta{Endpoint: id, Failures: 9, FirstFailure: at(1), LastFailure: at(2)}); seen[0].Failures != 0 {
		e.Errorf("failures from before the recovery count: %+v", seen)
	}
	failed := now.Add(time.Hour).UTC()
	seen := e.report(endpoints.Delta{Endpoint: id, Failures: 1, FirstFailure: failed})
	if seen[0].Failures != 1 || !seen[0].FailingSince.Equal(failed) {
		e.Errorf("a failure after the recovery does not count: %+v", seen)
	}
}
