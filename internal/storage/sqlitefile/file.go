package sqlitefile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// memoryPath is SQLite's name for a database without a file, and the beginning of ours.
const memoryPath = ":memory:"

func inMemory(path string) bool { return strings.HasPrefix(path, memoryPath) }

// File is one user's handle of a file, safe for concurrent use. All handles of one path in a process have one writer and share its
// commits.
type File struct {
	*database
	entry  *entry
	closed atomic.Bool
}

// entry is a path that somebody in this process has open, or is opening.
type entry struct {
	key   string
	path  string // as its first user spelt it
	users int    // handles, and calls of Open on their way to one; guarded by entries

	mu   sync.Mutex // held while the file opens
	file *database
}

// entries are the files that this process has open, by canonical path.
var entries = struct {
	sync.Mutex
	byPath  map[string]*entry
	unnamed int // databases in memory that were asked for without a name
}{byPath: make(map[string]*entry)}

// Open opens the file, creating it if needed, or joins those of this process who have its path open. ctx bounds only the call.
//
// A path is one file however its directory is spelt: relative, absolute or through links. A link to the file itself counts as another
// file: their users are to each other what two processes are.
func Open(ctx context.Context, cfg Config) (*File, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("sqlite file: %w", err)
	}
	e, err := enter(cfg.Path)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.file == nil {
		cfg.Path = e.path
		e.file, err = openDatabase(ctx, cfg.withDefaults())
	} else if err = cfg.follows(e.file.cfg); err != nil {
		err = fmt.Errorf("sqlite file %s: %w", cfg.Path, err)
	}
	if err != nil {
		return nil, errors.Join(err, e.leave())
	}
	return &File{database: e.file, entry: e}, nil
}

// OpenTables opens a file and brings the tables of the package called name to their newest version: see [database.Migrate].
func OpenTables(ctx context.Context, cfg Config, name string, statements []string) (*File, error) {
	f, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := f.Migrate(ctx, name, statements); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenMemory opens a database that lives in memory and ends with its last handle. Others open it by its Path. Reads go through the
// writer. It works in testing/synctest bubbles.
func OpenMemory(ctx context.Context) (*File, error) {
	return Open(ctx, Config{Path: memoryPath})
}

// enter counts the caller among the users of a path.
func enter(path string) (*entry, error) {
	name := path
	if !inMemory(path) {
		var err error
		if name, err = canonical(path); err != nil {
			return nil, err
		}
	}
	entries.Lock()
	defer entries.Unlock()
	if path == memoryPath {
		entries.unnamed++
		path = fmt.Sprintf("%s#%d", memoryPath, entries.unnamed)
		name = path
	}
	e, ok := entries.byPath[name]
	if !ok {
		e = &entry{key: name, path: path}
		entries.byPath[name] = e
	}
	e.users++
	return e, nil
}

// canonical is path as an absolute one whose directory has no links. A directory that cannot be read stays as it is spelt: opening the
// file says what is wrong with it.
func canonical(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("path %q: %w", path, err)
	}
	dir, file := filepath.Split(abs)
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	return filepath.Join(dir, file), nil
}

// leave takes the caller out of the count. The last one closes the file.
func (e *entry) leave() error {
	entries.Lock()
	e.users--
	last := e.users == 0
	if last {
		delete(entries.byPath, e.key)
	}
	entries.Unlock()
	if !last || e.file == nil {
		return nil
	}
	return e.file.close()
}

// Close gives the handle back. With the last handle the file closes: writes that were accepted are finished, and the write-ahead log is
// folded into the file. Later calls return [ErrClosed]. Closing twice is a no-op.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return nil
	}
	return f.entry.leave()
}

// Owner is the same for all handles of one file.
func (f *File) Owner() any { return f.database }

// Write is [database.Write] while this handle is open.
func (f *File) Write(ctx context.Context, durable bool, fn func(tx *Tx) error) error {
	if f.closed.Load() {
		return ErrClosed
	}
	return f.database.Write(ctx, durable, fn)
}

// Read is [database.Read] while this handle is open.
func (f *File) Read(ctx context.Context, fn func(tx *Tx) error) error {
	if f.closed.Load() {
		return ErrClosed
	}
	return f.database.Read(ctx, fn)
}
