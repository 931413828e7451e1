package sqlitefile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
)

// database is one SQLite file, or one in memory, as all its users in this process have it.
type database struct {
	cfg     Config
	writer  *conn
	readers chan *conn // nil entries are connections not opened yet; nil in memory mode
	tx      Tx         // the writer's, lent to one fn at a time
	full    bool       // the writer connection's synchronous setting; the writer's alone

	mu      sync.Mutex
	queue   []*request
	durable int // durable requests in queue
	closed  bool
	watches map[*Watch]struct{}
	shared  map[string]any

	wake     chan struct{} // 1 slot: queue, watches or closed changed
	done     chan struct{} // closed when the writer has ended
	closeErr error         // the writer's; read after done
	requests sync.Pool     // of *request; its own so that no channel crosses a synctest bubble
}

// openDatabase opens the file and starts its writer.
func openDatabase(ctx context.Context, cfg Config) (*database, error) {
	f := newDatabase(cfg)
	if !inMemory(cfg.Path) {
		f.readers = make(chan *conn, cfg.Readers)
		for range cfg.Readers {
			f.readers <- nil
		}
	}
	if err := makePrivate(cfg.Path); err != nil {
		return nil, err
	}
	c, err := dial(cfg.Path)
	if err != nil {
		return nil, err
	}
	if err := f.setUp(ctx, c); err != nil {
		return nil, errors.Join(err, c.close())
	}
	f.writer = c
	go f.write()
	return f, nil
}

// makePrivate makes a missing file readable for its owner alone, since it holds payloads. SQLite gives the files beside it the same rights, and
// tells what is wrong with a path better than this could.
func makePrivate(path string) error {
	if inMemory(path) {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil // it is there, or opening it is going to fail as well
	}
	return file.Close()
}

func newDatabase(cfg Config) *database {
	f := &database{
		cfg:     cfg,
		watches: make(map[*Watch]struct{}),
		shared:  make(map[string]any),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	f.requests.New = func() any { return &request{done: make(chan error, 1)} }
	return f
}

// setUp brings a new connection, and a new file, into the state that the writer expects.
func (f *database) setUp(ctx context.Context, c *conn) error {
	pragmas := []string{
		"PRAGMA auto_vacuum=INCREMENTAL", // has to come before anything is written
		"PRAGMA journal_mode=WAL",
		"PRAGMA foreign_keys=OFF",
		"PRAGMA wal_autocheckpoint=4000",
		"PRAGMA journal_size_limit=67108864",
		"PRAGMA synchronous=NORMAL",
		"PRAGMA cache_size=-8192", // a larger one is slower: SQLite scans its whole hash table in commits that rebalanced a tree
		"PRAGMA temp_store=MEMORY",
	}
	if f.cfg.MaxSize > 0 {
		pragmas = append(pragmas, fmt.Sprintf("PRAGMA max_page_count=%d", max(1, f.cfg.MaxSize/pageSize)))
	}
	for _, p := range pragmas {
		if err := f.retry(ctx, func() error { return c.script(p) }); err != nil {
			return fmt.Errorf("set up: %w", err)
		}
	}
	return nil
}

// pageSize is SQLite's default, which new files get.
const pageSize = 4096

// Path is what other users of the file open it by, also in memory.
func (f *database) Path() string { return f.cfg.Path }

// InMemory reports whether the database has no file.
func (f *database) InMemory() bool { return f.readers == nil }

// close finishes the writes that were accepted, folds the write-ahead log into the file and ends the writer.
func (f *database) close() error {
	f.mu.Lock()
	f.closed = true
	shared := f.shared
	f.mu.Unlock()
	for _, v := range shared {
		if v, ok := v.(interface{ Stop() }); ok {
			v.Stop()
		}
	}
	f.signal()
	var errs []error
	if f.readers != nil {
		for range cap(f.readers) {
			if c := <-f.readers; c != nil {
				errs = append(errs, c.close())
			}
		}
		close(f.readers)
	}
	<-f.done
	return errors.Join(append(errs, f.closeErr)...)
}

// Read runs fn in a read transaction: one consistent view, which does not wait for writers. Keep it short: a view that
// is held keeps the write-ahead log from being folded in. ctx bounds the wait for a free connection.
func (f *database) Read(ctx context.Context, fn func(tx *Tx) error) error {
	if f.InMemory() {
		return f.Write(ctx, false, fn)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var c *conn
	var open bool
	select {
	case c, open = <-f.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !open {
		return ErrClosed
	}
	defer func() { f.readers <- c }()
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	if closed {
		return ErrClosed
	}
	if c == nil {
		var err error
		if c, err = f.dialReader(ctx); err != nil {
			return err
		}
	}
	return f.read(ctx, c, fn)
}

func (f *database) read(ctx context.Context, c *conn, fn func(tx *Tx) error) (err error) {
	if err := f.retry(ctx, func() error { _, err := c.execute("BEGIN", nil); return err }); err != nil {
		return fmt.Errorf("begin read: %w", err)
	}
	defer func() {
		e := c.closeRows()
		if _, e2 := c.execute("ROLLBACK", nil); e == nil {
			e = e2
		}
		if err == nil && e != nil {
			err = fmt.Errorf("end read: %w", e)
		}
	}()
	return fn(&Tx{conn: c})
}

func (f *database) dialReader(ctx context.Context) (*conn, error) {
	c, err := dial(f.cfg.Path)
	if err != nil {
		return nil, err
	}
	if err := f.retry(ctx, func() error { return c.script("PRAGMA query_only=1; PRAGMA cache_size=-8192") }); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// Shared returns the value that all users of the file in this process share under name. The first to ask makes it. If it has a method
// Stop, that is called when the file closes. It is where a package keeps what SQLite cannot tell two of its users: who waits for what.
func (f *database) Shared(name string, create func() any) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.shared[name]
	if !ok {
		v = create()
		f.shared[name] = v
	}
	return v
}

// signal tells the writer to look around.
func (f *database) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// retry repeats op while another process holds the lock that it needs, for at most the busy timeout.
func (f *database) retry(ctx context.Context, op func() error) error {
	var start time.Time
	for {
		err := op()
		if err == nil || !busy(err) {
			return err
		}
		if start.IsZero() {
			start = time.Now()
		}
		if time.Since(start) >= f.cfg.BusyTimeout {
			return fmt.Errorf("another process held the file for %v: %w", f.cfg.BusyTimeout, err)
		}
		if !pause.For(ctx, 200*time.Microsecond+rand.N(800*time.Microsecond)) {
			return ctx.Err()
		}
	}
}
