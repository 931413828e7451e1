package rabbitmq

import (
	"context"
	"sync"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
)

// Close implements [queue.Broker]. It takes a few milliseconds, and about 6 s at most while the broker does not answer.
func (b *Broker) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		<-b.done
		return nil
	}
	b.closed = true
	if b.calls == 0 {
		close(b.idle)
	}
	subs := make([]*subscription, 0, len(b.all))
	for s := range b.all {
		subs = append(subs, s)
	}
	b.mu.Unlock()
	defer close(b.done)

	// Subscriptions first: what nobody asked for is published back.
	var wg sync.WaitGroup
	for _, s := range subs {
		wg.Go(func() { _ = s.Close() })
	}
	wg.Wait()
	flush, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	select {
	case <-b.idle: // everything that was accepted is confirmed or has failed
	case <-flush.Done():
	}
	for _, s := range subs {
		s.flush(flush)
	}
	close(b.pub.closed)
	b.stop()
	b.links.Wait()
	b.subs.Wait()
	<-b.idle
	return nil
}

// flush waits until what was settled is written.
func (s *subscription) flush(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		c := s.cur
		if c == nil || c.gone || len(c.endings) == 0 && !c.writing {
			s.mu.Unlock()
			return
		}
		c.signal()
		s.mu.Unlock()
		pause.For(ctx, time.Millisecond)
	}
}
