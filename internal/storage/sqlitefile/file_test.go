package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testTables = []string{`CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT UNIQUE, data BLOB)`}

const insertItem = `INSERT INTO item (name, data) VALUES (?, ?)`

func open(t testing.TB, cfg Config) *File {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "test.db")
	}
	f, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := f.Migrate(t.Context(), "test", testTables); err != nil {
		t.Fatal(err)
	}
	return f
}

func insert(ctx context.Context, f *File, durable bool, name string, data []byte) error {
	return f.Write(ctx, durable, func(tx *Tx) error {
		_, err := tx.Exec(insertItem, name, data)
		return err
	})
}

func names(t testing.TB, f *File) []string {
	t.Helper()
	var got []string
	err := f.Read(context.Background(), func(tx *Tx) error {
		got = nil
		rows, err := tx.Query(`SELECT name FROM item ORDER BY name`)
		if err != nil {
			return err
		}
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				return err
			}
			got = append(got, s)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// hold blocks the writer inside a write until the returned function is called.
func hold(f *File) (release func()) {
	in, out, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Write(context.Background(), false, func(*Tx) error {
			close(in)
			<-out
			return nil
		})
	}()
	<-in
	return func() { close(out); <-done }
}

// together makes the writes meet in one batch and returns their errors.
func together(f *File, writes ...func() error) []error {
	release := hold(f)
	errs := make([]error, len(writes))
	var wg sync.WaitGroup
	for i, w := range writes {
		wg.Go(func() { errs[i] = w() })
	}
	for {
		f.mu.Lock()
		n := len(f.queue)
		f.mu.Unlock()
		if n == len(writes) {
			break
		}
		time.Sleep(100 * time.Microsecond) // polls a condition; no assertion hangs on the length
	}
	release()
	wg.Wait()
	return errs
}

func TestFailedWriteCostsOnlyItself(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"file", "memory"} {
		t.Run(mode, func(t *testing.T) {
			path := ""
			if mode == "memory" {
				path = memoryPath
			}
			f := open(t, Config{Path: path})
			ctx := t.Context()
			boom := errors.New("boom")
			errs := together(f,
				func() error { return insert(ctx, f, true, "a", nil) },
				func() error {
					return f.Write(ctx, false, func(tx *Tx) error {
						if _, err := tx.Exec(insertItem, "undone", nil); err != nil {
							return err
						}
						return boom
					})
				},
				func() error { return insert(ctx, f, false, "b", []byte{}) },
				func() error { return insert(ctx, f, false, "c", nil) },
			)
			for i, err := range errs {
				if want := i == 1; errors.Is(err, boom) != want || (err != nil) != want {
					t.Errorf("write %d: %v", i, err)
				}
			}
			if diff := cmp.Diff([]string{"a", "b", "c"}, names(t, f)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConstraintErrorIsTheWritersOwn(t *testing.T) {
	t.Parallel()
	f := open(t, Config{})
	ctx := t.Context()
	errs := together(f,
		func() error { return insert(ctx, f, true, "same", nil) },
		func() error { return insert(ctx, f, true, "same", nil) },
		func() error { return insert(ctx, f, true, "other", nil) },
	)
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
			if errors.Is(err, ErrUnavailable) {
				t.Errorf("a broken constraint is not temporary: %v", err)
			}
		}
	}
	if failed != 1 {
		t.Errorf("%d writes failed, want 1: %v", failed, errs)
	}
	if diff := cmp.Diff([]string{"other", "same"}, names(t, f)); diff != "" {
		t.Error(diff)
	}
}

func TestPanicReachesItsCaller(t *testing.T) {
	t.Parallel()
	f := open(t, Config{})
	var got any
	errs := together(f,
		func() error { return insert(t.Context(), f, true, "kept", nil) },
		func() error {
			defer func() { got = recover() }()
			return f.Write(t.Context(), false, func(tx *Tx) error {
				_, _ = tx.Exec(insertItem, "undone", nil)
				panic("oops")
			})
		},
	)
	if errs[0] != nil {
		t.Error(errs[0])
	}
	if !strings.Contains(fmt.Sprint(got), "oops") {
		t.Errorf("recovered %v", got)
	}
	if diff := cmp.Diff([]string{"kept"}, names(t, f)); diff != "" {
		t.Error(diff)
	}
}

func TestCancelBeforePickUp(t *testing.T) {
	t.Parallel()
	f := open(t, Config{})
	release := hold(f)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- insert(ctx, f, true, "cancelled", nil) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	release()
	if got := names(t, f); got != nil {
		t.Errorf("a cancelled write was made: %v", got)
	}
}

func TestCancelAfterPickUpWaitsForTheAnswer(t *testing.T) {
	t.Parallel()
	f := open(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	err := f.Write(ctx, true, func(tx *Tx) error {
		cancel()
		_, err := tx.Exec(insertItem, "kept", nil)
		return err
	})
	if err != nil {
		t.Errorf("the write was committed, but reported %v", err)
	}
	if diff := cmp.Diff([]string{"kept"}, names(t, f)); diff != "" {
		t.Error(diff)
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	f := open(t, Config{MaxSize: 40 * pageSize})
	ctx := t.Context()
	var err error
	stored := 0
	for err == nil {
		if err = insert(ctx, f, true, fmt.Sprint(stored), make([]byte, pageSize)); err == nil {
			stored++
		}
	}
	if !errors.Is(err, ErrFull) || !errors.Is(err, ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	if stored == 0 {
		t.Fatal("nothing was stored")
	}
	errs := together(f, // what frees space goes through though it shares its batch with what cannot
		func() error { return insert(ctx, f, true, "too much", make([]byte, 60*pageSize)) },
		func() error {
			return f.Write(ctx, false, func(tx *Tx) error {
				_, err := tx.Exec(`DELETE FROM item WHERE name IN ('0', '1', '2')`)
				return err
			})
		},
	)
	if !errors.Is(errs[0], ErrFull) || errs[1] != nil {
		t.Errorf("got %v", errs)
	}
	if err := insert(ctx, f, true, "fits again", make([]byte, pageSize)); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
	if got := len(names(t, f)); got != stored-2 {
		t.Errorf("%d items, want %d", got, stored-2)
	}
}

func TestCloseFlushesAndRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a ?%#b.db")
	f := open(t, Config{Path: path})
	release := hold(f)
	done := make(chan error)
	go func() { done <- insert(context.Background(), f, true, "accepted", nil) }()
	for n := 0; n == 0; {
		f.mu.Lock()
		n = len(f.queue)
		f.mu.Unlock()
	}
	closed := make(chan error)
	go func() { closed <- f.Close() }()
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := insert(t.Context(), f, true, "late", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("write: %v", err)
	}
	if err := f.Read(t.Context(), func(*Tx) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the write-ahead log is still there: %v", err)
	}
	if diff := cmp.Diff([]string{"accepted"}, names(t, open(t, Config{Path: path}))); diff != "" {
		t.Error(diff)
	}
}

func TestScan(t *testing.T) {
	t.Parallel()
	f := open(t, Config{})
	err := f.Read(t.Context(), func(tx *Tx) error {
		var (
			i    int
			b    bool
			fl   float64
			s    string
			blob []byte
			null sql.NullInt64
			none []byte
		)
		err := tx.QueryRow(`SELECT ?, ?, ?, ?, ?, ?, ?`, []any{7, true, 1.5, "x\x00y", []byte{0, 255}, nil, []byte{}}, &i, &b, &fl, &s, &blob, &null, &none)
		if err != nil {
			return err
		}
		if i != 7 || !b || fl != 1.5 || s != "x\x00y" || string(blob) != "\x00\xff" || null.Valid || len(none) != 0 {
			t.Errorf("got %v %v %v %q %q %v %v", i, b, fl, s, blob, null, none)
		}
		if err := tx.QueryRow(`SELECT 'text'`, nil, &i); err == nil {
			t.Error("text was stored in an int")
		}
		if err := tx.QueryRow(`SELECT 1 WHERE false`, nil, &i); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("no rows: %v", err)
		}
		outer, err := tx.Query(`SELECT 1 UNION SELECT 2`)
		if err != nil {
			return err
		}
		for outer.Next() { // the same statement inside its own cursor
			if err := tx.QueryRow(`SELECT 1 UNION SELECT 2`, nil, &i); err != nil || i != 1 {
				t.Errorf("nested: %d, %v", i, err)
			}
		}
		return outer.Err()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestReadsCannotWrite(t *testing.T) {
	t.Parallel()
	f := open(t, Config{})
	err := f.Read(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec(insertItem, "x", nil)
		return err
	})
	if err == nil {
		t.Error("a read wrote")
	}
}

func TestMemoryInBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, err := OpenMemory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Migrate(t.Context(), "test", testTables); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for i := range 5 {
			time.Sleep(time.Hour)
			if err := insert(t.Context(), f, true, fmt.Sprint(i), nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(start); got != 5*time.Hour {
			t.Errorf("%v passed, want 5h", got)
		}
		if got := len(names(t, f)); got != 5 {
			t.Errorf("%d items", got)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Open(t.Context(), Config{}); err == nil {
		t.Error("no path")
	}
	_, err := Open(t.Context(), Config{Path: filepath.Join(dir, "missing", "x.db")})
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("missing directory: %v", err)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Path: text}); err == nil || errors.Is(err, ErrUnavailable) {
		t.Errorf("not a database: %v", err)
	}
}

// The file holds payloads: it is nobody else's to read, and neither are the files beside it.
func TestNewFileIsPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "private.db")
	f, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Migrate(t.Context(), "x", []string{`CREATE TABLE x (y)`}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %o", filepath.Base(name), mode)
		}
	}
}
