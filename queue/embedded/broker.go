package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/queue"
)

// Broker is a [queue.Broker] on one SQLite file. It is safe for concurrent use.
type Broker struct {
	cfg  Config
	file *sqlitefile.File
	hub  *hub

	done    chan struct{} // closed by Close
	changes sync.Pool     // of *changeWrite

	mu     sync.Mutex
	closed bool
	watch  *sqlitefile.Watch // from the first Subscribe on
	wg     sync.WaitGroup    // the goroutine that follows watch
	depths map[int64]*depthCache
}

var _ queue.Broker = (*Broker)(nil)

// Open opens the queue file at cfg.Path, creating it if needed. The file closes with the last in this process who has it open.
//
// In memory it works in testing/synctest bubbles.
func Open(ctx context.Context, cfg Config) (*Broker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("embedded queue: %w", err)
	}
	fc := sqlitefile.Config{Path: cfg.Path, Sync: sqlitefile.Sync(cfg.Sync), MaxSize: cfg.MaxSize}
	file, err := sqlitefile.OpenTables(ctx, fc, schemaName, schema)
	if err != nil {
		return nil, fmt.Errorf("embedded queue %s: %w", cfg.Path, translate(err))
	}
	return &Broker{
		cfg:     cfg,
		file:    file,
		hub:     hubOf(file),
		done:    make(chan struct{}),
		changes: sync.Pool{New: newChangeWrite},
		depths:  make(map[int64]*depthCache),
	}, nil
}

// Path is where the queue lives, for stores that are to share its file. In memory it is the name by which they do.
func (b *Broker) Path() string { return b.file.Path() }

// Database returns the file that the queues live in: claims in the same file are completed in one transaction with the ack.
func (b *Broker) Database() any { return b.file.Owner() }

// Capabilities implements [queue.Broker].
func (b *Broker) Capabilities(string) queue.Capabilities {
	return queue.Capabilities{
		Name:           "embedded",
		MaxBody:        b.cfg.MaxBody,
		Ordered:        true,
		CountsAttempts: true,
		SingleHost:     true,
		Depth:          queue.DepthFieldReady | queue.DepthFieldDelayed | queue.DepthFieldInFlight,
	}
}

// maxQueueName is the longest name in bytes.
const maxQueueName = 255

// CreateQueue implements [queue.Broker]. A name is 1 to 255 bytes of UTF-8.
func (b *Broker) CreateQueue(ctx context.Context, name string) error {
	if name == "" || len(name) > maxQueueName || !utf8.ValidString(name) {
		return fmt.Errorf("queue name %q: use 1 to %d bytes of UTF-8", name, maxQueueName)
	}
	_, err := b.find(ctx, name)
	if !errors.Is(err, queue.ErrQueueNotFound) {
		return err
	}
	err = b.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		_, err := tx.Exec(sqlCreateQueue, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("create queue %q: %w", name, translate(err))
	}
	return nil
}

// find returns the local side of a queue, or queue.ErrQueueNotFound.
func (b *Broker) find(ctx context.Context, name string) (*line, error) {
	if b.isClosed() {
		return nil, queue.ErrClosed
	}
	if l := b.hub.line(name); l != nil {
		return l, nil
	}
	var id int64
	err := b.file.Read(ctx, func(tx *sqlitefile.Tx) error { return tx.QueryRow(sqlFindQueue, []any{name}, &id) })
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("queue %q: %w", name, queue.ErrQueueNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("find queue %q: %w", name, translate(err))
	}
	return b.hub.add(name, id), nil
}

func (b *Broker) isClosed() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// follow wakes waiting receives when other processes have committed, until Close. It is called by each Subscribe.
func (b *Broker) follow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return queue.ErrClosed
	}
	if b.watch != nil || b.file.InMemory() {
		return nil
	}
	b.watch = b.file.Watch()
	b.wg.Go(func() {
		for {
			select {
			case <-b.watch.C:
				b.hub.wakeAll()
			case <-b.done:
				return
			}
		}
	})
	return nil
}

// Close implements [queue.Broker].
func (b *Broker) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	close(b.done)
	if b.watch != nil {
		b.watch.Stop()
	}
	b.mu.Unlock()
	b.wg.Wait()
	if err := b.file.Close(); err != nil {
		return fmt.Errorf("close embedded queue: %w", err)
	}
	return nil
}

// translate puts the file's errors into the words of package queue.
func translate(err error) error {
	switch {
	case errors.Is(err, sqlitefile.ErrClosed):
		return fmt.Errorf("%w: %w", queue.ErrClosed, err)
	case errors.Is(err, sqlitefile.ErrUnavailable):
		return fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	return err
}
