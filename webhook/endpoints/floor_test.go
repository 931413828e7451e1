package endpoints_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/schedule"
)

// addHasty adds an endpoint that gives up after seconds.
func (o *office) addHasty(id string) {
	o.t.Helper()
	e := endpoint(id)
	var err error
	if e.Backoff, err = schedule.ParseBackoff("fixed(1s, 5s, 10s)"); err != nil {
		o.t.Fatal(err)
	}
	add(o.t, o.registry, e)
}

// TestShortSchedule: an endpoint that is away for minutes is not disabled, and one that is dead is, after an hour.
func TestShortSchedule(t *testing.T) {
	t.Parallel()
	inOffice(t, func(t *testing.T, o *office) {
		o.addHasty("a")
		p := o.start(nil)
		defer p.stop()
		time.Sleep(20 * time.Minute)
		p.saw("a", "evt", 200)
		p.fail("a", 10*time.Second, 2*time.Minute)
		o.want("a", "active", 0, 0)
		p.saw("a", "evt", 200)
		p.fail("a", 10*time.Second, time.Hour-everyTick)
		o.want("a", "active", 0, 0)
		p.fail("a", 10*time.Second, 3*everyTick)
		o.want("a", "disabled failing", 1, 1)
	})
}

// TestOwnOutage: when our own network is away the fleet guard sees it at once, and nobody is disabled.
func TestOwnOutage(t *testing.T) {
	t.Parallel()
	inOffice(t, func(t *testing.T, o *office) {
		ids := make([]string, 40)
		for i := range ids {
			ids[i] = fmt.Sprintf("e%02d", i)
			o.addHasty(ids[i])
		}
		p := o.start(nil)
		defer p.stop()
		call := func(status int, lasting time.Duration) {
			for end := time.Now().Add(lasting); time.Now().Before(end); time.Sleep(10 * time.Second) {
				for _, id := range ids {
					p.saw(id, fmt.Sprint(time.Now()), status)
				}
			}
			synctest.Wait()
		}
		call(200, 20*time.Minute)
		if p.Frozen() {
			t.Error("frozen while all are well")
		}
		call(0, time.Minute)
		if !p.Frozen() {
			t.Error("not frozen after all failed for a minute")
		}
		call(0, 4*time.Minute)
		for _, id := range ids {
			o.want(id, "active", 0, 0)
		}
		call(200, 11*time.Minute)
		if p.Frozen() {
			t.Error("frozen although all are well again")
		}
	})
}

// TestSilenceIsNoFailure: a machine that slept for hours between two failures has seen none in that time.
func TestSilenceIsNoFailure(t *testing.T) {
	t.Parallel()
	inOffice(t, func(t *testing.T, o *office) {
		p := o.start(nil)
		defer p.stop()
		p.fail("a", 10*time.Second, 20*time.Minute)
		time.Sleep(8 * time.Hour)
		p.fail("a", 10*time.Second, 10*time.Minute)
		o.want("a", "active", 0, 0)
		p.fail("a", 10*time.Second, time.Hour)
		o.want("a", "disabled failing", 1, 1)
	}, "a")
}
