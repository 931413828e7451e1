package endpoints_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// aSchedule is how long the usual deliveries go on.
const aSchedule = 5*time.Hour + 51*time.Minute + 10*time.Second

// TestFailingEndpointIsDisabled: after the length of its backoff without a success, and not before; its owner hears of it once.
func TestFailingEndpointIsDisabled(t *testing.T) {
	t.Parallel()
	inOffice(t, func(t *testing.T, o *office) {
		p := o.start(nil)
		defer p.stop()
		p.fail("a", 10*time.Minute, aSchedule-time.Minute)
		o.want("a", "active", 0, 0)
		p.fail("a", 10*time.Minute, 11*time.Minute)
		o.want("a", "disabled failing", 1, 1)
		e, err := o.registry.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		want := endpoints.Disabled{ID: "a", Tenant: webhook.DefaultTenant, Reason: webhook.ReasonFailing, Since: e.Since.Truncate(time.Second)}
		if diff := cmp.Diff(want, o.notices[0]); diff != "" {
			t.Errorf("notice (-want +got):\n%s", diff)
		}
		if n := o.log.count("was disabled"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		p.fail("a", 10*time.Minute, 2*time.Hour)
		o.want("a", "disabled failing", 1, 1)
	}, "a")
}

// TestHealthyEndpointIsNotDisabled: what says nothing about the whole endpoint disables nobody, however long it goes on.
func TestHealthyEndpointIsNotDisabled(t *testing.T) {
	t.Parallel()
	for name, day := range map[string]func(p process){
		"one poison event, nothing else": func(p process) {
			for range 10 * 6 {
				p.saw("a", "poison", 500)
				time.Sleep(10 * time.Minute)
			}
		},
		"one poison event among others": func(p process) {
			for i := range 8 * 60 {
				p.saw("a", "poison", 500)
				if i%60 == 0 {
					p.saw("a", fmt.Sprint(i), 204)
				}
				time.Sleep(time.Minute)
			}
		},
		"one success in each five hours": func(p process) {
			for range 3 {
				p.fail("a", time.Minute, 5*time.Hour)
				p.saw("a", "evt", 200)
			}
		},
		"seven failures": func(p process) {
			p.fail("a", time.Hour, 7*time.Hour)
			time.Sleep(3 * time.Hour)
		},
		"a short outage": func(p process) {
			p.fail("a", 10*time.Second, 5*time.Hour)
			time.Sleep(5 * time.Hour)
		},
		"stops and blocked addresses": func(p process) {
			for i := range 8 * 60 {
				a := webhook.Attempt{Endpoint: "a", Event: fmt.Sprint(i), At: time.Now(), CutOff: i%2 == 0}
				if !a.CutOff {
					a.Response.Err = fmt.Errorf("dial: %w", webhook.ErrBlocked)
				}
				p.Observe(a)
				time.Sleep(time.Minute)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(t *testing.T, o *office) {
				p := o.start(nil)
				defer p.stop()
				day(p)
				o.want("a", "active", 0, 0)
			}, "a")
		})
	}
}

// TestEveryFailureCounts: also what the breaker ignores: an endpoint that answers 401 or 429 for hours takes nothing either.
func TestEveryFailureCounts(t *testing.T) {
	t.Parallel()
	ids := []string{"0", "302", "401", "404", "429", "503"} // each answers so
	inOffice(t, func(t *testing.T, o *office) {
		p := o.start(nil)
		defer p.stop()
		for i := range 8 {
			for _, id := range ids {
				status, err := strconv.Atoi(id)
				if err != nil {
					t.Fatal(err)
				}
				p.saw(id, fmt.Sprint(i), status)
			}
			time.Sleep(time.Hour)
		}
		for _, id := range ids {
			o.want(id, "disabled failing", len(ids), len(ids))
		}
	}, ids...)
}

// TestOwnSchedule: an endpoint with a backoff of its own has as long as that.
func TestOwnSchedule(t *testing.T) {
	t.Parallel()
	own, err := schedule.Constant(4*time.Hour, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	inOffice(t, func(t *testing.T, o *office) {
		if _, err := o.registry.Edit(t.Context(), "a", 0, func(e *webhook.Endpoint) error {
			e.Backoff = own
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		p := o.start(nil)
		defer p.stop()
		p.fail("a", time.Hour, 27*time.Hour+time.Minute) // 7 pauses of 4 h are 28 h
		o.want("a", "active", 0, 0)
		p.fail("a", time.Hour, time.Hour)
		o.want("a", "disabled failing", 1, 1)
	}, "a")
}

// TestManyProcesses: what each of them saw counts together, one of them disables, and one notice runs.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	inOffice(t, func(t *testing.T, o *office) {
		var all []process
		for range 4 {
			p := o.start(nil)
			defer p.stop()
			all = append(all, p)
		}
		for i := range 13 { // each alone saw too few
			for j := range 2 {
				all[(i+j)%4].saw("a", fmt.Sprint(i, j), 500)
			}
			time.Sleep(time.Hour)
		}
		o.want("a", "disabled failing", 1, 1)
		time.Sleep(time.Hour) // the sweeps of the others
		o.want("a", "disabled failing", 1, 1)
	}, "a")
}

// TestEnabledEndpointStartsAnew: its failures are forgotten, and the next time it is disabled its owner hears of that, too.
func TestEnabledEndpointStartsAnew(t *testing.T) {
	t.Parallel()
	inOffice(t, func(t *testing.T, o *office) {
		p := o.start(nil)
		defer p.stop()
		p.fail("a", time.Minute, 6*time.Hour)
		o.want("a", "disabled failing", 1, 1)
		if _, err := o.registry.Enable(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * everyTick)
		p.fail("a", time.Minute, 5*time.Hour)
		o.want("a", "active", 1, 1)
		p.fail("a", time.Minute, time.Hour)
		o.want("a", "disabled failing", 2, 2)
	}, "a")
}

// TestGoneIsDisabledAtOnce: one 410 is enough, for all processes, unless the endpoint has moved on.
func TestGoneIsDisabledAtOnce(t *testing.T) {
	t.Parallel()
	inOffice(t, func(t *testing.T, o *office) {
		p := o.start(nil)
		defer p.stop()
		p.saw("a", "evt", 410)
		p.saw("nobody", "evt", 410)
		time.Sleep(2 * everyTick)
		o.want("a", "disabled gone", 1, 1)
		o.want("b", "active", 1, 1)
		o.store.setAway(true)
		p.saw("b", "evt", 410)
		time.Sleep(time.Hour)
		o.want("b", "active", 1, 1)
		o.store.setAway(false)
		time.Sleep(2 * everyTick)
		o.want("b", "disabled gone", 2, 2)
		if n := o.log.count("could not be disabled"); n == 0 || n > 61 {
			t.Errorf("told %d times in an hour", n)
		}
	}, "a", "b")
}

// TestGoneIsOfItsTime: whoever repaired and enabled an endpoint is not overruled by an answer from before, however late it is told.
func TestGoneIsOfItsTime(t *testing.T) {
	t.Parallel()
	inOffice(t, func(t *testing.T, o *office) {
		p := o.start(nil)
		defer p.stop()
		o.store.setAway(true)
		p.saw("a", "evt", 410)
		time.Sleep(2*everyTick + time.Second) // between two steps of the disabler
		o.store.setAway(false)
		if _, _, err := o.registry.DisableAs(t.Context(), "a", webhook.ReasonGone); err != nil {
			t.Fatal(err)
		}
		must(t)(o.registry.Enable(t.Context(), "a"))
		time.Sleep(2 * everyTick)
		o.want("a", "active", 0, 0)
		p.saw("a", "evt", 410)
		time.Sleep(2 * everyTick)
		o.want("a", "disabled gone", 1, 1)
	}, "a")
}

// TestAbsentStore: what was seen meanwhile is kept, and reported once; nobody is judged by it before other processes had the time to say theirs.
func TestAbsentStore(t *testing.T) {
	t.Parallel()
	inOffice(t, func(t *testing.T, o *office) {
		p := o.start(nil)
		other := o.start(nil)
		time.Sleep(15 * time.Minute)
		o.store.setAway(true)
		p.fail("a", time.Minute, 7*time.Hour)
		p.fail("b", time.Minute, 7*time.Hour)
		other.saw("a", "evt", 200)
		o.store.setAway(false)
		time.Sleep(2 * everyTick)
		o.want("a", "active", 0, 0)
		o.want("b", "active", 0, 0)
		if h, err := o.registry.Health(t.Context(), "b"); err != nil || h.Failures != 7*60 {
			t.Errorf("%+v, %v", h, err)
		}
		p.fail("b", everyTick, 2*everyTick) // that was the first news of the rest
		o.want("b", "disabled failing", 1, 1)
		p.saw("a", "evt", 500)
		other.stop()
		p.stop() // reports what is left
		if h, err := o.registry.Health(t.Context(), "a"); err != nil || h.Failures != 1 {
			t.Errorf("%+v, %v", h, err)
		}
	}, "a", "b")
}

// TestNoticeSurvivesItsProcess: whoever disabled the endpoint may die before it could say so; the others do.
func TestNoticeSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	inOffice(t, func(t *testing.T, o *office) {
		disable := func(id, reason string) {
			if _, _, err := o.registry.DisableAs(t.Context(), id, reason); err != nil {
				t.Fatal(err)
			}
		}
		disable("old", webhook.ReasonGone)
		time.Sleep(25 * time.Hour)
		disable("a", webhook.ReasonFailing) // and no more
		disable("b", "does not pay")        // an operator's word is no news to operators
		time.Sleep(time.Hour)
		p, other := o.start(nil), o.start(nil)
		defer p.stop()
		defer other.stop()
		time.Sleep(2 * everyTick)
		o.want("a", "disabled failing", 0, 1)
		time.Sleep(23 * time.Hour)
		o.want("a", "disabled failing", 0, 1)
	}, "a", "b", "old")
}

// TestFleetWideFailure: when most of the fleet fails at once nobody is disabled, however long it takes; once the others are well, those that go on
// failing are.
func TestFleetWideFailure(t *testing.T) {
	t.Parallel()
	const fleet = 30
	var ids []string
	for i := range fleet {
		ids = append(ids, fmt.Sprintf("e%02d", i))
	}
	inOffice(t, func(t *testing.T, o *office) {
		p := o.start(nil)
		call := func(minutes, sick int) {
			for m := range minutes {
				for i, id := range ids {
					status := 200
					if i < sick {
						status = 0
					}
					p.saw(id, fmt.Sprint(m), status)
				}
				time.Sleep(time.Minute)
			}
			synctest.Wait()
		}
		call(15, 3)
		if p.Frozen() {
			t.Error("frozen for a few sick endpoints")
		}
		call(7*60, 16)
		o.want("e00", "active", 0, 0)
		if !p.Frozen() || o.log.count("fail at once") != 1 {
			t.Errorf("frozen: %v, told %d times", p.Frozen(), o.log.count("fail at once"))
		}
		p.stop()
		p = o.start(nil) // a process that begins in the middle of it looks around first
		p.fail("e00", everyTick, 5*time.Minute)
		o.want("e00", "active", 0, 0)
		call(60, 16)
		o.want("e00", "active", 0, 0)
		call(9, 3)
		if !p.Frozen() {
			t.Error("not frozen any more while most were sick minutes ago")
		}
		call(15, 3)
		if p.Frozen() || o.log.count("well again") != 1 {
			t.Errorf("frozen: %v, told %d times", p.Frozen(), o.log.count("well again"))
		}
		for i, id := range ids {
			if got, want := o.state(id), map[bool]string{true: "disabled failing", false: "active"}[i < 3]; got != want {
				t.Errorf("%s is %s, want %s", id, got, want)
			}
		}
		o.want("e00", "disabled failing", 3, 3)
		p.stop()
	}, ids...)
}

func TestAutoDisablerConfigRefused(t *testing.T) {
	t.Parallel()
	r := registry(t, open(t), ring(t, endpoints.NewKey()))
	m, err := endpoints.NewMirror(endpoints.MirrorConfig{Registry: r})
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]endpoints.AutoDisablerConfig{
		"no registry":       {Endpoints: m},
		"no endpoints":      {Registry: r},
		"negative interval": {Registry: r, Endpoints: m, Interval: -1},
		"negative failures": {Registry: r, Endpoints: m, Failures: -1},
	} {
		if _, err := endpoints.NewAutoDisabler(cfg); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
