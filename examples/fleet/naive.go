package main

import (
	"time"

	"github.com/caisson-go/caisson/schedule"
)

// naiveHang is how long a retrier without anything else waits for an endpoint that does not answer: as long as our sender.
const naiveHang = 15 * time.Second

// naive counts the requests that a retrier would send in the same time, of the same events and by the same schedule, but with neither breaker nor
// gate: it tries each event again until it arrives or its attempts are over. It is computed, not measured.
func naive(p plan, until time.Time) (requests [classes]int) {
	attempts := schedule.WebhookBackoff.Len() + 1
	for n := range p.events() {
		kind := p.class(p.endpoint(n))
		if !p.sent(n) {
			continue
		}
		at := p.due(n)
		for attempt := 1; attempt <= attempts && at.Before(until); attempt++ {
			requests[kind]++
			if kind == healthy || kind == flapping && !down(at) {
				break
			}
			if kind == hanging {
				at = at.Add(naiveHang)
			}
			at = at.Add(schedule.WebhookBackoff.Nominal(attempt))
		}
	}
	return requests
}
