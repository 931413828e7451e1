package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/pause"
)

// Breakers knows for which destinations a replay would be in vain for now.
type Breakers interface {
	// Open returns a function that reports whether a destination's breaker is not closed, as workers last reported. An error means that
	// nobody knows, for example because no worker runs: then every job that has a destination is held.
	Open(ctx context.Context) (open func(destination string) bool, err error)
}

// BreakerWait makes a replay hold the jobs whose destination's breaker is open, while it goes on with the others.
type BreakerWait struct {
	// Breakers knows which ones are open. Nil holds nothing.
	Breakers Breakers
	// For is how long to wait when only held jobs are left; it starts again when a breaker closes. Zero means forever.
	For time.Duration
	// Poll is how often to ask. Zero means 1 s.
	Poll time.Duration
}

// ErrBreakerOpen means that held jobs stayed dead, since their destinations' breakers did not close in time.
var ErrBreakerOpen = errors.New("breaker still open")

// heldJobs are entries whose destination's breaker is open.
type heldJobs struct {
	BreakerWait
	asked time.Time
	open  func(destination string) bool
	// unknown is why nobody knows which breakers are open.
	unknown error
	// byDestination has them. They stay reserved, so that no chunk meets them again.
	byDestination map[string][]dlq.Resolution
}

// begin asks for the first time. A replay that cannot tell what to hold does not begin.
func (h *heldJobs) begin(ctx context.Context) error {
	if h.Breakers == nil {
		return nil
	}
	h.ask(ctx)
	if h.unknown != nil {
		return fmt.Errorf("wait for breakers: %w", h.unknown)
	}
	return nil
}

func (h *heldJobs) ask(ctx context.Context) {
	h.asked = time.Now()
	h.open, h.unknown = h.Breakers.Open(ctx)
}

// holds reports whether jobs for destination must wait.
func (h *heldJobs) holds(ctx context.Context, destination string) bool {
	if h.Breakers == nil || destination == "" {
		return false
	}
	if time.Since(h.asked) >= h.Poll {
		h.ask(ctx)
	}
	return h.unknown != nil || h.open(destination)
}

// setAside holds an entry.
func (r *runner) setAside(destination, id string) {
	r.seen[id] = true
	r.held.byDestination[destination] = append(r.held.byDestination[destination], dlq.Resolution{ID: id, To: dlq.StateDead})
	r.countHeld()
}

func (r *runner) countHeld() {
	r.report.Held, r.report.HeldFor, r.report.Unreported = 0, nil, ""
	for destination, rs := range r.held.byDestination {
		if r.report.HeldFor == nil {
			r.report.HeldFor = map[string]int{}
		}
		r.report.Held += len(rs)
		r.report.HeldFor[destination] = len(rs)
	}
	if r.held.unknown != nil {
		r.report.Unreported = r.held.unknown.Error()
	}
}

// awaitBreakers waits until a breaker with held jobs has closed, and frees those jobs.
func (r *runner) awaitBreakers(ctx context.Context) error {
	start := time.Now()
	for {
		for _, destination := range slices.Sorted(maps.Keys(r.held.byDestination)) {
			if !r.held.holds(ctx, destination) {
				return r.freeAside(ctx, destination)
			}
		}
		r.countHeld()
		if r.Progress != nil {
			r.Progress(r.copyReport())
		}
		if r.held.For > 0 && time.Since(start) >= r.held.For {
			return r.stillOpen()
		}
		pause.For(ctx, r.held.Poll)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// stillOpen is the error after a wait that led to nothing.
func (r *runner) stillOpen() error {
	names := slices.Sorted(maps.Keys(r.held.byDestination))
	if r.held.unknown != nil {
		return fmt.Errorf("%w: %d jobs were held for %v and stay dead, since nobody told which breakers are open: %w", ErrBreakerOpen, r.report.Held, r.held.For, r.held.unknown)
	}
	text := strings.Join(names[:min(len(names), 10)], ", ")
	return fmt.Errorf("%w after %v: %d jobs for %s stay dead: replay them later", ErrBreakerOpen, r.held.For, r.report.Held, text)
}

// freeAside gives the held entries of a destination back, so that the next chunk meets them again.
func (r *runner) freeAside(ctx context.Context, destination string) error {
	rs := r.held.byDestination[destination]
	delete(r.held.byDestination, destination)
	for _, held := range rs {
		delete(r.seen, held.ID)
	}
	r.countHeld()
	return r.giveBack(ctx, rs)
}
