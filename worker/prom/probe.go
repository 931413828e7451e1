package prom

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errNoAnswer means that a measurement is still under way when the scrape has to end.
var errNoAnswer = errors.New("no answer in time")

// probe asks broker or store at most one question at a time and remembers the answer for a while. A question that is never answered costs
// one goroutine, however often it is scraped.
type probe[T any] struct {
	ask func(context.Context) (T, error)
	cfg *Config

	mu      sync.Mutex
	answer  T
	err     error
	at      time.Time
	running chan struct{} // closed when the question under way is answered; nil if there is none
}

// get returns an answer that is at most Config.CacheFor old, or an error after Config.ScrapeTimeout.
func (p *probe[T]) get() (T, error) {
	var none T
	p.mu.Lock()
	if p.running == nil && !p.at.IsZero() && time.Since(p.at) < p.cfg.CacheFor {
		defer p.mu.Unlock()
		return p.answer, p.err
	}
	if p.running == nil {
		p.running = make(chan struct{})
		go p.run(p.running)
	}
	running := p.running
	p.mu.Unlock()

	maxWait := time.NewTimer(p.cfg.ScrapeTimeout)
	defer maxWait.Stop()
	select {
	case <-running:
	case <-maxWait.C:
		return none, errNoAnswer
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer, p.err
}

func (p *probe[T]) run(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.ScrapeTimeout)
	defer cancel()
	answer, err := p.ask(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.err, p.at, p.running = answer, err, time.Now(), nil
	close(done)
}
