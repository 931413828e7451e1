package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// outcome is what came out of one run.
type outcome struct {
	plan     plan
	ended    time.Time
	sending  sending
	work     work
	arrivals arrivals
	account  account
	cpu      time.Duration   // of the worker
	latency  []time.Duration // of events for healthy endpoints, sorted
}

// latencies returns how long after it was due each event for a healthy endpoint was answered with 2xx. One that was not has taken until now.
func latencies(p plan, first []int64, now time.Time) []time.Duration {
	var list []time.Duration
	for n, at := range first {
		if p.class(p.endpoint(n)) != healthy {
			continue
		}
		arrived := now
		if at != 0 {
			arrived = time.UnixMicro(at)
		}
		list = append(list, arrived.Sub(p.due(n)))
	}
	slices.Sort(list)
	return list
}

func (o outcome) quantile(q float64) time.Duration {
	if len(o.latency) == 0 {
		return 0
	}
	return o.latency[min(int(q*float64(len(o.latency))), len(o.latency)-1)]
}

func (o outcome) p99() time.Duration { return o.quantile(0.99) }

func (o outcome) doubled() int {
	sum := 0
	for _, n := range o.arrivals.Doubled {
		sum += n
	}
	return sum
}

func (o outcome) summary(out io.Writer) {
	fmt.Fprintf(out, "delivered %d of %d, p50 %s, p99 %s, worker %d MB, %.1f s of CPU\n", o.account.Delivered, o.sending.Sent, milli(o.quantile(0.5)),
		milli(o.p99()), o.work.RSS>>20, o.cpu.Seconds())
}

// comparison is both runs side by side.
type comparison struct {
	plan          plan
	without, with outcome
}

func (c comparison) ratio() float64 { return c.with.p99().Seconds() / c.without.p99().Seconds() }

func (c comparison) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, value func(outcome) string) {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", name, value(c.without), value(c.with))
	}
	fmt.Fprintln(out)
	fmt.Fprintln(w, "\twithout sick\twith sick\t")
	row("events sent", func(o outcome) string { return fmt.Sprint(o.sending.Sent) })
	row("delivered", func(o outcome) string { return fmt.Sprint(o.account.Delivered) })
	row("to healthy endpoints", func(o outcome) string { return fmt.Sprint(o.account.DeliveredHealthyCount) })
	row("waiting in the queue", func(o outcome) string { return fmt.Sprint(o.account.Waiting) })
	row("held / dead", func(o outcome) string { return fmt.Sprintf("%d / %d", o.account.Held, o.account.Dead) })
	row("lost", func(o outcome) string { return fmt.Sprint(o.account.Lost) })
	row("healthy: due to 2xx, p50", func(o outcome) string { return milli(o.quantile(0.5)) })
	row("p99", func(o outcome) string { return milli(o.p99()) })
	row("p99.9", func(o outcome) string { return milli(o.quantile(0.999)) })
	row("longest", func(o outcome) string { return milli(o.quantile(1)) })
	row("sender: at most late / longest confirmation", func(o outcome) string { return milli(o.sending.Late) + " / " + milli(o.sending.Confirm) })
	row("worker: most memory", func(o outcome) string { return fmt.Sprintf("%d MB", o.work.RSS>>20) })
	row("CPU", func(o outcome) string { return fmt.Sprintf("%.1f s", o.cpu.Seconds()) })
	row("goroutines before / at most / after", func(o outcome) string {
		return fmt.Sprintf("%d / %d / %d", o.work.GoroutinesBefore, o.work.GoroutinesPeak, o.work.GoroutinesAfter)
	})
	_ = w.Flush() // to a terminal or a buffer
	c.printSick(out)
	fmt.Fprintf(out, "\nhealthy_p99_ratio=%.2f lost=%d doubled=%d signature_failures=%d\n", c.ratio(), c.lost(), c.without.doubled()+c.with.doubled(),
		c.signatureFailures())
}

// printSick shows what each class of sick endpoints was sent.
func (c comparison) printSick(out io.Writer) {
	o := c.with
	endpoints, events := [classes]int{}, [classes]int{}
	for i := range o.plan.Endpoints {
		endpoints[o.plan.class(i)]++
	}
	for n := range o.plan.events() {
		events[o.plan.class(o.plan.endpoint(n))]++
	}
	tried := naive(o.plan, o.ended)
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "endpoints\tof them\tevents\trequests\tnaive retrier\tbreakers opened\thalf-open\tclosed\tdeferred\t")
	for k := healthy; k < classes; k++ {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n", k, endpoints[k], events[k], o.work.Requests[k], tried[k], o.work.Transitions[k.String()+" open"],
			o.work.Transitions[k.String()+" half_open"], o.work.Transitions[k.String()+" closed"], reasons(o.work.Deferred, k))
	}
	_ = w.Flush()
}

// reasons lists why and how often jobs of a class were deferred.
func reasons(deferred map[string]int, k class) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(deferred)) {
		if reason, ok := strings.CutPrefix(key, k.String()+" "); ok {
			list = append(list, fmt.Sprintf("%s %d", reason, deferred[key]))
		}
	}
	return strings.Join(list, ", ")
}

func (c comparison) lost() int { return c.without.account.Lost + c.with.account.Lost }

func (c comparison) signatureFailures() int {
	return c.without.arrivals.SignatureFailures + c.with.arrivals.SignatureFailures
}

func milli(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
