package dlq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Breakers tells for which destinations a replay would be in vain for now.
type Breakers interface {
	// Open returns a function that reports whether a destination's breaker is not closed, as workers last told. Its error means that nobody
	// knows for now, for example since no worker runs: then every job that has a destination is held.
	Open(ctx context.Context) (open func(destination string) bool, err error)
}

// BreakerWait has a replay hold the jobs whose destination's breaker is open, while it goes on with the others.
type BreakerWait struct {
	// Breakers tells which ones are open. Nil means that nothing is held.
	Breakers Breakers
	// For is how long to wait when nothing but held jobs is left; it begins anew when a breaker closes. Zero means for ever.
	For time.Duration
	// Poll is how often to ask. Zero means 1 s.
	Poll time.Duration
}

// ErrBreakerOpen means that held jobs stayed dead, since their destinations' breakers did not close in time.
var ErrBreakerOpen = errors.New("breaker still open")

// hold is what a pass knows of breakers.
type hold struct {
	BreakerWait
	asked time.Time
	open  func(destination string) bool
	// blind is why nobody knows which breakers are open.
	blind error
	// aside are the entries that are held, by destination. They stay reserved, so that the pass does not meet them again.
	aside map[string][]Resolution
}

// begin asks for the first time. A replay that cannot tell what to hold does not begin.
func (h *hold) begin(ctx context.Context) error {
	if h.Breakers == nil {
		return nil
	}
	h.ask(ctx)
	if h.blind != nil {
		return fmt.Errorf("wait for breakers: %w", h.blind)
	}
	return nil
}

func (h *hold) ask(ctx context.Context) {
	h.asked = time.Now()
	h.open, h.blind = h.Breakers.Open(ctx)
}

// holds reports whether jobs for destination must wait.
func (h *hold) holds(ctx context.Context, destination string) bool {
	if h.Breakers == nil || destination == "" {
		return false
	}
	if time.Since(h.asked) >= h.Poll {
		h.ask(ctx)
	}
	return h.blind != nil || h.open(destination)
}

// setAside holds an entry.
func (p *pass) setAside(destination, id string) {
	p.seen[id] = true
	p.hold.aside[destination] = append(p.hold.aside[destination], Resolution{ID: id, To: StateDead})
	p.countHeld()
}

func (p *pass) countHeld() {
	p.report.Held, p.report.HeldFor, p.report.Unreported = 0, nil, ""
	for destination, rs := range p.hold.aside {
		if p.report.HeldFor == nil {
			p.report.HeldFor = map[string]int{}
		}
		p.report.Held += len(rs)
		p.report.HeldFor[destination] = len(rs)
	}
	if p.hold.blind != nil {
		p.report.Unreported = p.hold.blind.Error()
	}
}

// awaitBreakers waits until a breaker with held jobs has closed, and frees those jobs.
func (p *pass) awaitBreakers(ctx context.Context) error {
	start := time.Now()
	for {
		for _, destination := range slices.Sorted(maps.Keys(p.hold.aside)) {
			if !p.hold.holds(ctx, destination) {
				return p.freeAside(ctx, destination)
			}
		}
		p.countHeld()
		if p.Progress != nil {
			p.Progress(p.copyReport())
		}
		if p.hold.For > 0 && time.Since(start) >= p.hold.For {
			return p.stillOpen()
		}
		sleep(ctx, p.hold.Poll)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// stillOpen is the error after a wait that led to nothing.
func (p *pass) stillOpen() error {
	names := slices.Sorted(maps.Keys(p.hold.aside))
	if p.hold.blind != nil {
		return fmt.Errorf("%w: %d jobs were held for %v and stay dead, since nobody told which breakers are open: %w", ErrBreakerOpen, p.report.Held, p.hold.For, p.hold.blind)
	}
	text := strings.Join(names[:min(len(names), 10)], ", ")
	return fmt.Errorf("%w after %v: %d jobs for %s stay dead: replay them later", ErrBreakerOpen, p.hold.For, p.report.Held, text)
}

// freeAside gives the held entries of a destination back, so that the pass meets them again.
func (p *pass) freeAside(ctx context.Context, destination string) error {
	rs := p.hold.aside[destination]
	delete(p.hold.aside, destination)
	for _, r := range rs {
		delete(p.seen, r.ID)
	}
	p.countHeld()
	return p.giveBack(ctx, rs)
}
