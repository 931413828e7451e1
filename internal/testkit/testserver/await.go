package testserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// server is one that was started and has to answer.
type server interface {
	answers(ctx context.Context) error
}

// runner is where it runs.
type runner interface {
	// alive says why the server cannot answer any more, or nil.
	alive(ctx context.Context) error
	// log returns what the server had to say.
	log(ctx context.Context) string
}

// await returns when the server answers everything that it is for.
func await(ctx context.Context, s server, r runner) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.answers(ctx)
		if err == nil {
			return nil
		}
		if dead := r.alive(ctx); dead != nil {
			return errors.Join(dead, fmt.Errorf("its log ends with:\n%s", lastLines(r.log(ctx), 100)))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err, fmt.Errorf("its log ends with:\n%s", lastLines(r.log(context.WithoutCancel(ctx)), 100)))
		}
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
