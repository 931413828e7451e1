package sqlite_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	file, err := sqlitefile.Open(t.Context(), sqlitefile.Config{Path: path})
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
	return store
}

func TestConformance(t *testing.T) {
	t.Parallel()
	dlqtest.Run(t, dlqtest.Harness{Open: func(t *testing.T) dlq.Store { return open(t, filepath.Join(t.TempDir(), "test.db")) }})
}

func TestConformanceInMemory(t *testing.T) {
	t.Parallel()
	dlqtest.Run(t, dlqtest.Harness{Open: func(t *testing.T) dlq.Store { return dlqtest.OpenMemory(t) }})
}
