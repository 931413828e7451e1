package config

import "time"

// Destinations configures what is called. [Load] completes each override from the default.
type Destinations struct {
	SlowLane  SlowLane               `key:"slow_lane"`
	Default   Destination            `key:"default"`
	Overrides map[string]Destination `key:"overrides" inherit:"destinations.default" doc:"Settings of one destination. What is unset is taken from destinations.default."`
}

// For returns the settings of the destination called name.
func (d Destinations) For(name string) Destination {
	if o, ok := d.Overrides[name]; ok {
		return o
	}
	return d.Default
}

// SlowLane bounds what slow destinations hold together.
type SlowLane struct {
	SharePercent int           `key:"share_percent" default:"25" min:"0" max:"100" doc:"Share of the slots (concurrency) that calls to slow destinations may hold together, at least one; ones that have never answered may hold as many again. For destinations with in_slow_lane, and every webhook endpoint. A worker that delivers webhooks wants concurrency: 512. 0: none is slow."`
	Over         time.Duration `key:"over" min:"10ms" max:"10m" doc:"A destination is slow while its moving latency, or the age of a call in flight, is above this."`
}

// Destination configures breaker and limits of one destination.
type Destination struct {
	Breaker      Breaker       `key:"breaker"`
	Concurrency  int           `key:"concurrency" default:"0" min:"0" max:"1000000" doc:"Calls at once from one worker. 0: no limit of its own."`
	AdaptiveMin  int           `key:"adaptive_min" default:"0" min:"0" max:"1000000" doc:"Lets concurrency find itself between this and what is set: a tenth less after failed, slow or throttled calls, one more after a round of successes. 0: it stays."`
	TimeoutFloor time.Duration `key:"timeout_floor" default:"0s" min:"0s" max:"1h" doc:"Lets the timeout of one attempt follow how long calls to the destination take: twice their 99th percentile, between this and the kind's timeout. 0s: only the kind's holds."`
	Rate         float64       `key:"rate" default:"0" min:"0" max:"1e9" doc:"Calls per second from one worker. 0: no limit."`
	Burst        int           `key:"burst" default:"1" min:"1" doc:"Calls that may come at once where a rate is set."`
	Shared       bool          `key:"shared" default:"false" doc:"Workers that share a store tell each other of it: while the breaker of one is open the others wait too, and rate is for all of them together. It takes some seconds, and where the store is away each worker is on its own."`
	InSlowLane   bool          `key:"in_slow_lane" default:"false" doc:"Its calls count in destinations.slow_lane while it is slow. For what hangs without warning and should not, such as somebody else's endpoints; not for what is slow by nature."`
	Budget       Budget        `key:"budget"`
}

// Breaker configures a circuit breaker.
type Breaker struct {
	FailurePercent int           `key:"failure_percent" min:"1" max:"100" doc:"Share of failed calls in the window at which it opens."`
	SlowPercent    int           `key:"slow_percent" min:"1" max:"100" doc:"Share of slow calls in the window at which it opens."`
	SlowAfter      time.Duration `key:"slow_after" min:"0s" doc:"A call that takes longer is slow. 0s: no call is."`
	Window         time.Duration `key:"window" min:"1s" max:"1h" doc:"How far back calls count."`
	MinCalls       int           `key:"min_calls" min:"0" doc:"Calls in the window below which no percentage opens it. 0: so many that 5 % of failures by chance do it less than once in 100 months (24 at 50 % within 30 s). However few there are, 8 failures in a row open it, or 10 where more than 4 calls can be in flight."`
	HungAfter      time.Duration `key:"hung_after" min:"0s" max:"24h" doc:"Age from which a call in flight counts as failed, where that many in a row are as old or failed; at least twice what answered calls take. 0s: a call that hangs counts when its timeout ends it."`
	Open           time.Duration `key:"open" min:"10ms" max:"24h" doc:"How long it stays open before it probes, +-20 %."`
	OpenGrowth     float64       `key:"open_growth" min:"1" max:"100" doc:"Multiplies the open time each time that the probes fail. 1: it does not grow."`
	OpenMax        time.Duration `key:"open_max" min:"10ms" max:"24h" doc:"What the open time grows to at most; open, if that is longer."`
	Probes         int           `key:"probes" min:"1" max:"100" doc:"Calls let through when it probes."`
	ProbeSuccesses int           `key:"probe_successes" min:"1" max:"100" doc:"How many of them must succeed to close it."`
	Ramp           time.Duration `key:"ramp" min:"0s" max:"24h" doc:"How long the share of calls that it lets through grows, from 10 % to all, once it has closed. 0s: all at once."`
}

// Budget bounds retries against one destination.
type Budget struct {
	Form    string  `key:"form" enum:"finagle,grpc,aws,none" doc:"How retries are bounded: a share of successes (finagle), the token counter of gRPC A6, the quota of the AWS SDKs, or not at all."`
	Percent int     `key:"percent" min:"1" max:"100" doc:"finagle: retries per 100 successes."`
	Floor   float64 `key:"floor" min:"0" max:"1e5" doc:"finagle: retries per second that are always allowed."`
}
