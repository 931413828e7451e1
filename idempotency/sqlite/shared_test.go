package sqlite_test

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/internal/testkit/sqlitetest"
)

func request(job string) idempotency.Request {
	return idempotency.Request{
		Key: idempotency.Key{Scope: "test", Value: job}, Job: job, Fingerprint: idempotency.FingerprintOf([]byte(job)),
		Owner: "test", Lease: time.Minute,
	}
}

// Two users of one file, as two processes are: of each key exactly one claim wins, and both see the completion.
func TestTwoUsersOfOneFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	stores := []idempotency.Store{open(t, sqlitefile.Config{Path: path}), open(t, sqlitefile.Config{Path: sqlitetest.Apart(t, path)})}
	const keys = 100
	var won [keys]atomic.Int32
	var wg sync.WaitGroup
	for _, store := range stores {
		wg.Go(func() {
			for i := range keys {
				r := request(string(rune('a' + i)))
				c := store.Claim(t.Context(), []idempotency.Request{r})[0]
				switch {
				case c.Err != nil:
					t.Errorf("claim: %v", c.Err)
				case c.Status == idempotency.StatusAcquired:
					won[i].Add(1)
					h := idempotency.Handle{Key: r.Key, Job: r.Job, Token: c.Token}
					if err := store.Complete(t.Context(), []idempotency.Completion{{Handle: h}})[0]; err != nil {
						t.Errorf("complete: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range keys {
		if n := won[i].Load(); n != 1 {
			t.Errorf("key %d was acquired %d times", i, n)
		}
	}
	for _, store := range stores {
		c := store.Claim(t.Context(), []idempotency.Request{request("a")})[0]
		if c.Status != idempotency.StatusCompleted {
			t.Errorf("a completed key answers %v, %v", c.Status, c.Err)
		}
	}
}

func TestRecordsSurviveReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	reopen := func() *sqlite.Store {
		store, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	store := reopen()
	r := request("job")
	first := store.Claim(t.Context(), []idempotency.Request{r})[0]
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = reopen()
	t.Cleanup(func() { _ = store.Close() })
	if c := store.Claim(t.Context(), []idempotency.Request{r})[0]; c.Status != idempotency.StatusBusy || !c.Until.Equal(first.Until) {
		t.Errorf("reopened claim answers %v until %v, want busy until %v", c.Status, c.Until, first.Until)
	}
}

func TestUnavailableFileIsUnavailableStore(t *testing.T) {
	t.Parallel()
	cfg := sqlitefile.Config{Path: filepath.Join(t.TempDir(), "test.db"), MaxSize: 64 << 10}
	store := open(t, cfg)
	big := idempotency.NewResult(make([]byte, idempotency.MaxResult))
	for {
		r := request("job" + time.Now().String())
		c := store.Claim(t.Context(), []idempotency.Request{r})[0]
		err := c.Err
		if err == nil {
			h := idempotency.Handle{Key: r.Key, Job: r.Job, Token: c.Token}
			err = store.Complete(t.Context(), []idempotency.Completion{{Handle: h, Result: big}})[0]
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, idempotency.ErrUnavailable) || !errors.Is(err, sqlitefile.ErrFull) {
			t.Errorf("a full file answers %v, want ErrUnavailable and ErrFull", err)
		}
		return
	}
}
