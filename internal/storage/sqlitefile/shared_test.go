package sqlitefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/sqlitetest"
)

func TestManyStartAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	const users = 8
	var wg sync.WaitGroup
	for i := range users {
		name := sqlitetest.Apart(t, path)
		wg.Go(func() {
			f, err := Open(t.Context(), Config{Path: name})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			if err := f.Migrate(t.Context(), "test", testTables); err != nil {
				t.Errorf("migrate: %v", err)
			}
			for n := range 20 {
				if err := insert(t.Context(), f, n%2 == 0, fmt.Sprint(i, "-", n), nil); err != nil {
					t.Errorf("insert: %v", err)
				}
			}
			if err := f.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	wg.Wait()
	if got := len(names(t, open(t, Config{Path: path}))); got != users*20 {
		t.Errorf("%d items, want %d", got, users*20)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "test.db")
	f := open(t, Config{Path: path})
	if err := insert(ctx, f, true, "old", nil); err != nil {
		t.Fatal(err)
	}
	newer := append(testTables[:1:1], `ALTER TABLE item ADD COLUMN more INTEGER; CREATE INDEX item_more ON item (more);`)
	second := open(t, Config{Path: sqlitetest.Apart(t, path)})
	for range 2 { // the second time it is a no-op
		if err := second.Migrate(ctx, "test", newer); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.Migrate(ctx, "another", []string{`CREATE TABLE another (id INTEGER PRIMARY KEY)`}); err != nil {
		t.Errorf("another package's tables: %v", err)
	}
	if err := insert(ctx, f, true, "new", nil); err != nil {
		t.Errorf("a process that had the file open before: %v", err)
	}
	if err := f.Migrate(ctx, "test", testTables); !errors.Is(err, ErrNewer) {
		t.Errorf("an older program: %v", err)
	}
	broken := append(newer[:2:2], `CREATE TABLE half (id INTEGER); CREATE TABLE item (id INTEGER)`)
	if err := f.Migrate(ctx, "test", broken); err == nil {
		t.Error("a broken step was accepted")
	}
	if err := f.Migrate(ctx, "test", append(newer[:2:2], `CREATE TABLE half (id INTEGER)`)); err != nil {
		t.Errorf("a broken step left something behind: %v", err)
	}
}

func TestBusyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	patient, hurried := open(t, Config{Path: path}), open(t, Config{Path: sqlitetest.Apart(t, path), BusyTimeout: 5 * time.Millisecond})
	waiting := open(t, Config{Path: sqlitetest.Apart(t, path)})
	release := sync.OnceFunc(hold(patient))
	defer release()
	if err := insert(t.Context(), hurried, true, "refused", nil); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) {
		t.Errorf("while another held the file: %v", err)
	}
	// What waits for the lock can still be cancelled: it is not picked up yet.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if err := insert(ctx, waiting, true, "cancelled", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled while another held the file: %v", err)
	}
	if got := names(t, waiting); got != nil { // readers do not wait for the writer
		t.Errorf("found %v", got)
	}
	release()
	// The one that was cancelled may have the lock for a moment yet, and 5 ms are short on a busy machine.
	eventually.NoError(t, func() error { return insert(t.Context(), hurried, true, "accepted", nil) })
	if got := names(t, patient); len(got) != 1 {
		t.Errorf("found %v", got)
	}
}

func TestWatchHearsOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	here, there := open(t, Config{Path: path, PollInterval: time.Millisecond}), open(t, Config{Path: sqlitetest.Apart(t, path)})
	w := here.Watch()
	<-w.C // the first value comes at once
	for i := range 5 {
		if err := insert(t.Context(), there, true, fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
		<-w.C
	}
	w.Stop()
	w.Stop()
	if here.watched() {
		t.Error("still looking after Stop")
	}
}

// TestOwnCommitsAreNoNews: without this a busy process would wake all who wait, all the time.
func TestOwnCommitsAreNoNews(t *testing.T) {
	t.Parallel()
	f := open(t, Config{})
	i := newIdle(f.database)
	looks := func() (news bool) {
		w := &Watch{c: make(chan struct{}, 1), f: f.database}
		err := f.Write(t.Context(), false, func(*Tx) error { // in the writer's goroutine, which owns the connection
			f.mu.Lock()
			f.watches = map[*Watch]struct{}{w: {}}
			f.mu.Unlock()
			i.look()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Stop()
		return len(w.c) > 0
	}
	looks() // learns where it is
	if err := insert(t.Context(), f, true, "own", nil); err != nil {
		t.Fatal(err)
	}
	if looks() {
		t.Error("heard of its own commit")
	}
	if err := insert(t.Context(), open(t, Config{Path: sqlitetest.Apart(t, f.Path())}), true, "other", nil); err != nil {
		t.Fatal(err)
	}
	if !looks() {
		t.Error("did not hear of another's commit")
	}
}

func TestSpaceIsGivenBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	f := open(t, Config{Path: path, IdleDelay: time.Millisecond})
	ctx := t.Context()
	for i := range 100 {
		if err := insert(ctx, f, false, fmt.Sprint(i), make([]byte, 100<<10)); err != nil {
			t.Fatal(err)
		}
	}
	err := f.Write(ctx, false, func(tx *Tx) error {
		_, err := tx.Exec(`DELETE FROM item`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := func() (n int) {
		err := f.Read(ctx, func(tx *Tx) error { return tx.QueryRow(`PRAGMA page_count`, nil, &n) })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for pages() > 2*keepFree { // hangs until the test's deadline if space is never given back
		time.Sleep(time.Millisecond)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 2*keepFree*pageSize {
		t.Errorf("the file still has %d bytes", info.Size())
	}
}

func TestReadIsOneView(t *testing.T) {
	t.Parallel()
	f := open(t, Config{})
	ctx := t.Context()
	err := f.Read(ctx, func(tx *Tx) error {
		var before, after int
		if err := tx.QueryRow(`SELECT count(*) FROM item`, nil, &before); err != nil {
			return err
		}
		if err := insert(ctx, f, true, "meanwhile", nil); err != nil {
			return err
		}
		if err := tx.QueryRow(`SELECT count(*) FROM item`, nil, &after); err != nil {
			return err
		}
		if before != 0 || after != 0 {
			t.Errorf("%d items, then %d", before, after)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(names(t, f)); got != 1 {
		t.Errorf("%d items", got)
	}
}
