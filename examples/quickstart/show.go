package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// look is what an operator would see.
type look struct {
	dead, held, deferred, handled int
	breaker                       string // of the dead receiver: no other opens
}

// look asks the dead-letter store and the worker's metrics.
func (s *scene) look(ctx context.Context) (look, error) {
	var l look
	depth, err := s.stack.Letters.Depth(ctx)
	if err != nil {
		return l, err
	}
	for _, d := range depth.Dead {
		l.dead += d.Count
	}
	for _, h := range depth.Held {
		l.held += h.Count
	}
	l.handled, _ = s.tally.sum()
	seen := s.metrics(ctx, `caisson_jobs_deferred_total{`, `caisson_destinations{state="open"}`,
		`caisson_destinations{state="half_open"}`)
	l.deferred, l.breaker = seen[0], "closed"
	switch {
	case seen[1] > 0:
		l.breaker = "open"
	case seen[2] > 0:
		l.breaker = "half-open"
	}
	return l, nil
}

// metrics sums, for each prefix, the series that begin with it; 0 while the worker's admin server does not answer.
func (s *scene) metrics(ctx context.Context, prefixes ...string) []int {
	sums := make([]int, len(prefixes))
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/metrics", nil)
	if err != nil {
		return sums
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return sums
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		for i, prefix := range prefixes {
			if !strings.HasPrefix(line, prefix) {
				continue
			}
			if value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64); err == nil {
				sums[i] += int(value)
			}
		}
	}
	return sums
}

// follow shows a line twice a second until done says so.
func (s *scene) follow(ctx context.Context, done func() (bool, error)) error {
	fmt.Fprintln(s.out, header)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case code := <-s.exited:
			s.exited <- code
			return s.stopWorker()
		case <-tick.C:
		}
		if err := s.show(ctx); err != nil {
			return err
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
}

// header names the columns of show.
const header = "              healthy  flaky (refused)   dead (refused)  its breaker  deferrals  held  dead letters  our handler"

func (s *scene) show(ctx context.Context) error {
	l, err := s.look(ctx)
	if err != nil {
		return err
	}
	h, f, d := s.receivers[healthy].count(), s.receivers[flaky].count(), s.receivers[dead].count()
	fmt.Fprintf(s.out, "%6.1fs  %13s  %15s  %15s  %-11s  %9d  %4d  %12d  %11s\n", time.Since(s.start).Seconds(), of(h.delivered, h.expected),
		fmt.Sprintf("%s (%d)", of(f.delivered, f.expected), f.refused), fmt.Sprintf("%s (%d)", of(d.delivered, d.expected), d.refused),
		l.breaker, l.deferred, l.held, l.dead, of(l.handled, s.total))
	return nil
}

func of(n, all int) string { return fmt.Sprintf("%d/%d", n, all) }

func (s *scene) say(format string, args ...any) {
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}
