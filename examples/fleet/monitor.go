package main

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/worker"
)

// monitor counts what the worker does. It is a [worker.Observer].
type monitor struct {
	plan plan
	quit chan struct{}
	done chan struct{}

	mu   sync.Mutex
	seen work
}

func newMonitor(p plan) *monitor {
	return &monitor{
		plan: p, quit: make(chan struct{}), done: make(chan struct{}),
		seen: work{Transitions: map[string]int{}, Deferred: map[string]int{}, Outcomes: map[string]int{}},
	}
}

// start looks at the number of goroutines each second, until end.
func (w *monitor) start() {
	go func() {
		defer close(w.done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-w.quit:
				return
			case <-tick.C:
				n := runtime.NumGoroutine() - 1
				w.mu.Lock()
				w.seen.GoroutinesPeak = max(w.seen.GoroutinesPeak, n)
				w.mu.Unlock()
			}
		}
	}()
}

func (w *monitor) end() {
	close(w.quit)
	<-w.done
}

// attempt is told of each call that was made.
func (w *monitor) attempt(a webhook.Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Requests[w.plan.classOf(a.Endpoint)]++
}

// Observe implements [worker.Observer].
func (w *monitor) Observe(e worker.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := e.(type) {
	case *worker.BreakerChanged:
		w.seen.Transitions[w.plan.classOf(e.Destination).String()+" "+e.To.String()]++
	case *worker.Settled:
		w.seen.Outcomes[e.Outcome.String()]++
		if e.Outcome == worker.OutcomeDeferred && e.Job != nil {
			w.seen.Deferred[w.plan.classOf(e.Job.Destination).String()+" "+string(e.Reason)]++
		}
	}
}

func (w *monitor) report() work {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.seen
	r.RSS = peakRSS()
	return r
}

// peakRSS is the most memory that this process had resident, in bytes; 0 where nobody says.
func peakRSS() int64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}
