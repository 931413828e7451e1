package postgres

import "time"

// SweepNext makes the next Publish look for reports of the dead.
func (b *Store) SweepNext() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep = time.Now()
}
