package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/internal/testkit/endpointtest"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/endpoints/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, path string) (*sqlite.Store, *sqlitefile.File) {
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
	return store, file
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conform(t, filepath.Join(t.TempDir(), "test.db"))
}

func TestConformanceInMemory(t *testing.T) {
	t.Parallel()
	conform(t, ":memory:")
}

func conform(t *testing.T, path string) {
	t.Helper()
	store, file := open(t, path)
	endpointtest.Run(t, endpointtest.Harness{
		Open: func(*testing.T) endpoints.Store { return store },
		Age: func(t *testing.T, id string, d time.Duration) {
			t.Helper()
			err := file.Write(t.Context(), false, func(tx *sqlitefile.Tx) error {
				_, err := tx.Exec(`UPDATE caisson_webhook_endpoints SET updated_at = updated_at - ? WHERE id = ?`, int64(d), []byte(id))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	})
}
