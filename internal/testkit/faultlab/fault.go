package faultlab

import (
	"bytes"
	"fmt"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// Fault is one thing that breaks while jobs are enqueued and worked.
type Fault struct {
	// Name of the row.
	Name string
	// Inject breaks it, leaves it broken for a while, mends it, and returns. name is the queue that the load goes through.
	Inject func(t testing.TB, name string)
	// Destroys says that messages go with it, as with a queue that somebody deletes. What has not ended is then enqueued again under the
	// same ids when it is over, which is all that a producer can do.
	Destroys bool
	// Recover is how long after the end a handler must run again. Zero means what the rig says.
	Recover time.Duration
}

// Rig is the broker, and where it says so the stores, that faults are injected into.
type Rig struct {
	// Open opens the broker through whatever can be disturbed. Called once for each fault; the lab closes it. Required.
	Open func(t testing.TB) queue.Broker
	// Stores opens claims and dead letters through whatever can be disturbed. Called once for each fault; the lab closes them. Nil means a file
	// of their own.
	Stores func(t testing.TB) Stores
	// QueueName maps the lab's queue names (lower-case letters, digits and hyphens, at most 40 bytes) to names that the broker takes.
	// Nil leaves them.
	QueueName func(name string) string
	// Drop removes a queue from a server that others use too. Nil if the server goes with the test.
	Drop func(t testing.TB, name string)
	// Connections counts the broker's connections now. Nil if they are not counted.
	Connections func(t testing.TB) int

	// Jobs for each fault. Zero means 200, and 5,000 with SOAK set.
	Jobs int
	// Groups spreads the jobs over so many destinations, which are the groups of a FIFO queue; the order in each is then checked, so a fault
	// must let publications alone. Zero gives jobs no destination.
	Groups int
	// Lease of the worker. Zero means 3 s.
	Lease time.Duration
	// Recover is how long after the fault a handler must run again. Zero means 10 s.
	Recover time.Duration
	// Rest is how long goroutines and connections may take to come down to what they were. Zero means 15 s.
	Rest time.Duration
	// Limit is how long all jobs of one fault may take. Zero means 5 min, and 10 with SOAK set.
	Limit time.Duration
}

// slack is how many goroutines or connections more than before are no leak.
const slack = 5

// Row is what one fault did.
type Row struct {
	Fault                   string
	Jobs, Lost              int
	Absorbed                int           // deliveries of jobs that were completed already, which ran nothing
	RanAgain                int           // runs after or beside the completed one
	Recovered               time.Duration // from the fault's end to the first run after it; negative if there was none
	Took                    time.Duration
	Goroutines, Connections [2]int // before and after
	Counted                 bool   // whether Connections are
}

// table prints rows for people.
func table(rows []Row) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "fault\tjobs\tlost\tran again\tdoubles absorbed\tconsuming after\tgoroutines\tconnections\ttook\t")
	for _, r := range rows {
		recovered, connections := "never", "not counted"
		if r.Recovered >= 0 {
			recovered = fmt.Sprintf("%.1fs", r.Recovered.Seconds())
		}
		if r.Counted {
			connections = fmt.Sprintf("%d, %d", r.Connections[0], r.Connections[1])
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%d, %d\t%s\t%.0fs\t\n", r.Fault, r.Jobs, r.Lost, r.RanAgain, r.Absorbed, recovered,
			r.Goroutines[0], r.Goroutines[1], connections, r.Took.Seconds())
	}
	_ = w.Flush() // to memory
	return b.String()
}
