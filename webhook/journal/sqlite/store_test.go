package sqlite_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/internal/testkit/journaltest"
	"github.com/caisson-go/caisson/webhook/journal/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, path string) (*sqlite.Store, *sqlitefile.File) {
	t.Helper()
	var file *sqlitefile.File
	var err error
	if path == "" {
		file, err = sqlitefile.OpenMemory(t.Context())
	} else {
		file, err = sqlitefile.Open(t.Context(), sqlitefile.Config{Path: path})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: file.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, file
}

func conformance(t *testing.T, path func(t *testing.T) string) {
	t.Helper()
	journaltest.Run(t, journaltest.Harness{Open: func(t *testing.T) journaltest.Store {
		store, _ := open(t, path(t))
		return store
	}})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, func(t *testing.T) string { return filepath.Join(t.TempDir(), "test.db") })
}

func TestConformanceInMemory(t *testing.T) {
	t.Parallel()
	conformance(t, func(*testing.T) string { return "" })
}
