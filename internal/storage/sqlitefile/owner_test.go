package sqlitefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stopped counts the calls of Stop.
type stopped struct{ times int }

func (s *stopped) Stop() { s.times++ }

func TestOneOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	first, second := open(t, Config{Path: path}), open(t, Config{Path: filepath.Join(filepath.Dir(path), ".", "test.db")})
	if first.database != second.database {
		t.Fatal("two owners of one path")
	}
	mark := first.Shared("mark", func() any { return &stopped{} }).(*stopped)
	if err := insert(t.Context(), first, true, "a", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is a no-op
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := insert(t.Context(), first, true, "b", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a write through a closed handle: %v", err)
	}
	if err := insert(t.Context(), second, true, "c", nil); err != nil {
		t.Errorf("a write through the handle that is left: %v", err)
	}
	if mark.times != 0 {
		t.Error("stopped while somebody has the file open")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if mark.times != 1 {
		t.Errorf("stopped %d times", mark.times)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the write-ahead log is still there: %v", err)
	}
	if diff := cmp.Diff([]string{"a", "c"}, names(t, open(t, Config{Path: path}))); diff != "" {
		t.Error(diff)
	}
}

func TestOneOwnerHoweverTheDirectoryIsSpelt(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	first := open(t, Config{Path: "test.db"})
	for _, path := range []string{filepath.Join(dir, "test.db"), filepath.Join(link, "test.db"), filepath.Join("..", filepath.Base(dir), "test.db")} {
		if other := open(t, Config{Path: path}); other.database != first.database {
			t.Errorf("another owner by the path %s", path)
		}
	}
}

func TestOpenAndCloseAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	open(t, Config{Path: path})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				f, err := Open(t.Context(), Config{Path: path})
				if err != nil {
					t.Error(err)
					return
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestOtherSettingsAreRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	f := open(t, Config{Path: path, Sync: SyncFull, MaxSize: 1 << 20})
	for name, other := range map[string]Config{"sync": {Path: path, Sync: SyncMixed}, "max size": {Path: path, MaxSize: 2 << 20}} {
		if _, err := Open(t.Context(), other); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	for _, same := range []Config{{Path: path}, {Path: path, Sync: SyncFull, MaxSize: 1 << 20}} {
		if got := open(t, same); got.database != f.database {
			t.Errorf("%+v does not join", same)
		}
	}
}

func TestMemoryByName(t *testing.T) {
	t.Parallel()
	alone, other := open(t, Config{Path: ":memory:"}), open(t, Config{Path: ":memory:"})
	if alone.database == other.database {
		t.Error("two that asked for a database of their own share one")
	}
	if joined := open(t, Config{Path: alone.Path()}); joined.database != alone.database {
		t.Error("the path of a database in memory opens another one")
	}
	named, same := open(t, Config{Path: ":memory:" + t.Name()}), open(t, Config{Path: ":memory:" + t.Name()})
	if named.database != same.database || named.database == alone.database {
		t.Error("a name in memory is not one database")
	}
}
