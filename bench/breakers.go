package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/limiter"
)

const destinations = 100_000

// breakers measures one admission and its result, and memory per destination, beside the two breakers that Go programs usually take.
// What is compared: a call that succeeds on a closed breaker with a time window.
func breakers(c config) error {
	var bare, own, registry, gob, failsafe []float64
	for range c.rounds {
		n, err := ownBreaker(false)
		if err != nil {
			return err
		}
		bare = append(bare, n)
		if n, err = ownBreaker(true); err != nil {
			return err
		}
		own = append(own, n)
		if n, err = ownRegistry(); err != nil {
			return err
		}
		registry = append(registry, n)
		gob = append(gob, goBreaker())
		failsafe = append(failsafe, failsafeBreaker())
	}
	fmt.Println("breaker, admit and record one success:")
	row("breaker.Breaker, time passed in", bare, "ns", "aim 70")
	row("breaker.Breaker, clock read once", own, "ns", "")
	row("pools.Destinations, with lookup and all limits", registry, "ns", "")
	row("gobreaker, with its window", gob, "ns", "")
	row("failsafe-go, time-based window", failsafe, "ns", "")
	mine, err := ownBytes()
	if err != nil {
		return err
	}
	fmt.Printf("bytes per destination, %d of them, window in use:\n", destinations)
	row("pools.Destinations, everything counted", []float64{mine}, "B", "aim 256")
	row("gobreaker alone", []float64{bytesOf(func() any { return gobreaker.NewTwoStepCircuitBreaker[any](goSettings()) })}, "B", "")
	row("failsafe-go alone", []float64{bytesOf(func() any { return failsafeOne() })}, "B", "")
	return nil
}

const calls = 500_000

func perCall(fn func()) float64 {
	start := time.Now()
	for range calls {
		fn()
	}
	return float64(time.Since(start).Nanoseconds()) / calls
}

// ownBreaker is measured with the time passed in, which is its own cost, and with the clock read once per call, as the others read it
// themselves.
func ownBreaker(readClock bool) (float64, error) {
	b, err := breaker.New(breaker.Config{})
	if err != nil {
		return 0, err
	}
	now := time.Now()
	return perCall(func() {
		if readClock {
			now = time.Now()
		} else {
			now = now.Add(time.Microsecond)
		}
		p, _ := b.Admit(now)
		p.Done(now, breaker.OutcomeSuccess)
	}), nil
}

func ownRegistry() (float64, error) {
	r, err := pools.NewDestinations(pools.DestinationsConfig{Default: pools.DestinationConfig{Concurrency: new(3), Rate: limiter.Config{Rate: new(1e6), Burst: 1000}}})
	if err != nil {
		return 0, err
	}
	return perCall(func() {
		now := time.Now()
		p, _ := r.Admit(now, pools.Request{Destination: "hooks.example.com"})
		p.Done(now, breaker.OutcomeSuccess)
	}), nil
}

func goSettings() gobreaker.Settings {
	return gobreaker.Settings{Interval: 30 * time.Second, BucketPeriod: 3 * time.Second, Timeout: 30 * time.Second}
}

func goBreaker() float64 {
	b := gobreaker.NewTwoStepCircuitBreaker[any](goSettings())
	return perCall(func() {
		if done, err := b.Allow(); err == nil {
			done(nil)
		}
	})
}

func failsafeOne() circuitbreaker.CircuitBreaker[any] {
	return circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(0.5, 20, 30*time.Second).WithDelay(30 * time.Second).Build()
}

func failsafeBreaker() float64 {
	b := failsafeOne()
	return perCall(func() {
		if b.TryAcquirePermit() {
			b.RecordSuccess()
		}
	})
}

func ownBytes() (float64, error) {
	r, err := pools.NewDestinations(pools.DestinationsConfig{Max: 2 * destinations})
	if err != nil {
		return 0, err
	}
	now := time.Now()
	before := heap()
	for i := range destinations {
		p, v := r.Admit(now, pools.Request{Destination: "endpoint-" + strconv.Itoa(i)})
		if !v.OK() {
			return 0, errors.New("refused: " + v.Reason.String())
		}
		p.Done(now, breaker.OutcomeFailure)
	}
	used := heap() - before
	runtime.KeepAlive(r)
	return used / destinations, nil
}

func bytesOf(build func() any) float64 {
	list := make([]any, destinations)
	before := heap()
	for i := range list {
		list[i] = build()
	}
	used := heap() - before
	runtime.KeepAlive(list)
	return used / destinations
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
