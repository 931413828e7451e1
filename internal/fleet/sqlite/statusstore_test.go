package sqlite_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/fleet/sqlite"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/internal/testkit/fleettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg sqlitefile.Config) (*sqlite.Store, *sqlitefile.File) {
	t.Helper()
	file, err := sqlitefile.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	statuses, err := sqlite.Open(t.Context(), sqlite.Config{Path: file.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = statuses.Close() })
	return statuses, file
}

func TestConformance(t *testing.T) {
	t.Parallel()
	fleettest.Run(t, fleettest.Harness{Open: func(t *testing.T) fleet.StatusStore {
		statuses, _ := open(t, sqlitefile.Config{Path: filepath.Join(t.TempDir(), "test.db")})
		return statuses
	}})
}

func TestConformanceInMemory(t *testing.T) {
	t.Parallel()
	fleettest.Run(t, fleettest.Harness{Open: func(t *testing.T) fleet.StatusStore {
		statuses, _ := open(t, sqlitefile.Config{Path: ":memory:"})
		return statuses
	}})
}

func rows(t *testing.T, file *sqlitefile.File) (n int) {
	t.Helper()
	err := file.Read(t.Context(), func(tx *sqlitefile.Tx) error { return tx.QueryRow(`SELECT count(*) FROM caisson_fleet`, nil, &n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func exec(t *testing.T, file *sqlitefile.File, statement string, args ...any) {
	t.Helper()
	err := file.Write(t.Context(), false, func(tx *sqlitefile.Tx) error { _, err := tx.Exec(statement, args...); return err })
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheDeadAreRemoved: a row is no more once a living worker has published after it has become too old.
func TestTheDeadAreRemoved(t *testing.T) {
	t.Parallel()
	statuses, file := open(t, sqlitefile.Config{Path: ":memory:"})
	publish := func(id string) {
		if err := statuses.Publish(t.Context(), fleet.Report{ID: id, Sent: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	publish("dead")
	exec(t, file, `UPDATE caisson_fleet SET at = at - ?`, int64(fleet.Live+time.Second))
	publish("living")
	if n := rows(t, file); n != 1 {
		t.Errorf("%d rows, want the living worker's alone", n)
	}
}

func TestWhatCannotBeReadIsToldBesideTheRest(t *testing.T) {
	t.Parallel()
	statuses, file := open(t, sqlitefile.Config{Path: ":memory:"})
	if err := statuses.Publish(t.Context(), fleet.Report{ID: "good", Sent: time.Now()}); err != nil {
		t.Fatal(err)
	}
	exec(t, file, `INSERT INTO caisson_fleet (id, at, report) VALUES (X'01', ?, X'ff')`, time.Now().UnixNano())
	got, err := statuses.Reports(t.Context())
	if len(got) != 1 || got[0].ID != "good" || err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("%d reports, error %v", len(got), err)
	}
}

func TestAFullDiskIsUnavailable(t *testing.T) {
	t.Parallel()
	statuses, file := open(t, sqlitefile.Config{Path: filepath.Join(t.TempDir(), "test.db"), MaxSize: 64 << 10})
	exec(t, file, `CREATE TABLE filler (data BLOB)`)
	for {
		err := file.Write(t.Context(), true, func(tx *sqlitefile.Tx) error {
			_, err := tx.Exec(`INSERT INTO filler VALUES (zeroblob(3000))`)
			return err
		})
		if errors.Is(err, sqlitefile.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r := fleet.Report{ID: "a", Sent: time.Now()}
	for range fleet.MaxQueues {
		r.Queues = append(r.Queues, fleet.Queue{Name: strings.Repeat("q", fleet.MaxName)})
	}
	if err := statuses.Publish(t.Context(), r); !errors.Is(err, fleet.ErrUnavailable) {
		t.Errorf("published on a full disk: %v", err)
	}
}
