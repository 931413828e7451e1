package sqlitefile

import "time"

// Free pages below keepFree stay in the file for reuse; above it they are given back in steps of vacuumStep while the file is idle.
const (
	keepFree     = 256 // pages: 1 MiB
	vacuumStep   = 256
	vacuum       = "PRAGMA incremental_vacuum(256)"
	vacuumPeriod = 20 * time.Millisecond
)

// idle is what the writer does between writes: it looks for the commits of others and gives space back.
type idle struct {
	f       *database
	timer   *time.Timer
	poll    time.Time // next look at data_version; zero while nobody watches
	vacuum  time.Time // next vacuum step; zero while there is nothing to give back
	version int64
}

func newIdle(f *database) *idle {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &idle{f: f, timer: t}
}

// wrote notes that a batch was committed.
func (i *idle) wrote(now time.Time) {
	if !i.f.InMemory() {
		i.vacuum = now.Add(i.f.cfg.IdleDelay)
	}
}

// work does what is due.
func (i *idle) work(now time.Time) {
	if i.f.InMemory() {
		return
	}
	switch {
	case !i.f.watched():
		i.poll = time.Time{}
	case i.poll.IsZero() || !now.Before(i.poll):
		i.poll = now.Add(i.f.cfg.PollInterval)
		i.look()
	}
	if !i.vacuum.IsZero() && !now.Before(i.vacuum) {
		i.vacuum = time.Time{}
		if i.giveBack() {
			i.vacuum = now.Add(vacuumPeriod)
		}
	}
}

// look tells the watches when data_version has moved: on the writer's connection it moves only by commits of others.
func (i *idle) look() {
	tx := Tx{conn: i.f.writer}
	var v int64
	if err := tx.QueryRow("PRAGMA data_version", nil, &v); err != nil {
		return // the next look or write will tell
	}
	if v != i.version {
		i.version = v
		i.f.notify()
	}
}

// giveBack truncates the file by one step and reports whether there is more. It yields to any other writer.
func (i *idle) giveBack() bool {
	c := i.f.writer
	tx := Tx{conn: c}
	var free int64
	if err := tx.QueryRow("PRAGMA freelist_count", nil, &free); err != nil || free <= keepFree {
		return false
	}
	if _, err := c.execute("BEGIN IMMEDIATE", nil); err != nil {
		return busy(err)
	}
	if err := c.script(vacuum); err != nil {
		i.f.rollback()
		return false
	}
	if _, err := c.execute("COMMIT", nil); err != nil {
		i.f.rollback()
		return false
	}
	return free-vacuumStep > keepFree
}

// wait sleeps until somebody signals or something is due.
func (i *idle) wait() {
	next := i.poll
	if next.IsZero() || !i.vacuum.IsZero() && i.vacuum.Before(next) {
		next = i.vacuum
	}
	if next.IsZero() {
		<-i.f.wake
		return
	}
	i.timer.Reset(time.Until(next))
	select {
	case <-i.f.wake:
		i.timer.Stop()
	case <-i.timer.C:
	}
}

// Watch reports the commits of other processes.
type Watch struct {
	// C holds a value after somebody else committed, at most one. It is never closed.
	C <-chan struct{}

	c chan struct{}
	f *database
}

// Watch starts to look for the commits of others, every [Config.PollInterval]. The first
// value comes at once. In memory mode there are no others and nothing comes. Stop it when done.
func (f *database) Watch() *Watch {
	c := make(chan struct{}, 1)
	w := &Watch{C: c, c: c, f: f}
	if !f.InMemory() {
		c <- struct{}{}
	}
	f.mu.Lock()
	f.watches[w] = struct{}{}
	f.mu.Unlock()
	f.signal()
	return w
}

// Stop ends the watch. Stopping twice is a no-op.
func (w *Watch) Stop() {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	delete(w.f.watches, w)
}

func (f *database) watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watches) > 0
}

func (f *database) notify() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watches {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}
