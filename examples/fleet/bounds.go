package main

import (
	"errors"
	"fmt"
	"time"
)

// What has to hold.
const (
	mostRatio      = 1.5
	mostP99        = 250 * time.Millisecond
	mostRSS        = 400 << 20
	moreGoroutines = 5 // than before, of the runtime's own
)

// scope says which bounds are judged.
type scope int

const (
	counting scope = iota // those that hold on any machine
	timing                // and those of time and memory
)

// judge returns what did not hold.
func (c comparison) judge(s scope) error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for _, o := range []outcome{c.without, c.with} {
		what := "without sick endpoints"
		if o.plan.Sick {
			what = "with sick endpoints"
		}
		check(o.account.Lost == 0, "%s: %d events are lost, among them %q", what, o.account.Lost, o.account.LostKeys)
		check(o.arrivals.SignatureFailures == 0, "%s: %d requests were not signed as they should be", what, o.arrivals.SignatureFailures)
		check(o.arrivals.Doubled[healthy] == 0, "%s: %d deliveries to healthy endpoints were doubled", what, o.arrivals.Doubled[healthy])
		check(o.work.GoroutinesAfter <= o.work.GoroutinesBefore+moreGoroutines, "%s: %d goroutines before and %d after", what,
			o.work.GoroutinesBefore, o.work.GoroutinesAfter)
		if s == counting {
			continue
		}
		check(o.account.UndeliveredHealthy == 0, "%s: %d events for healthy endpoints were not delivered in time", what, o.account.UndeliveredHealthy)
		check(o.p99() <= mostP99, "%s: p99 of healthy endpoints is %s, more than %s", what, milli(o.p99()), milli(mostP99))
		check(o.work.RSS <= mostRSS, "%s: the worker had %d MB resident, more than %d", what, o.work.RSS>>20, mostRSS>>20)
	}
	if s == timing {
		check(c.ratio() <= mostRatio, "p99 of healthy endpoints with sick ones is %.2f times that without, more than %.2f", c.ratio(), mostRatio)
	}
	return errors.Join(errs...)
}
