package sqlite_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/idempotency/storetest"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, cfg sqlitefile.Config) *sqlite.Store {
	t.Helper()
	var file *sqlitefile.File
	var err error
	if cfg.Path == "" {
		file, err = sqlitefile.OpenMemory(t.Context())
	} else {
		file, err = sqlitefile.Open(t.Context(), cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return newStore(t, file)
}

func newStore(t testing.TB, file *sqlitefile.File) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: file.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{Finder: true, Open: func(t *testing.T) idempotency.Store {
		return open(t, sqlitefile.Config{Path: filepath.Join(t.TempDir(), "test.db")})
	}})
}

func TestConformanceInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{Finder: true, Open: func(t *testing.T) idempotency.Store { return open(t, sqlitefile.Config{}) }})
}
