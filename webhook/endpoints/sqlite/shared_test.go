package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/caisson-go/caisson/internal/testkit/sqlitetest"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// TestSeveralOwnersOfOneFile are as several processes on a host: revisions are in the order of commits over all of them.
func TestSeveralOwnersOfOneFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	reader, _ := open(t, path)
	const owners, each = 3, 20
	var all sync.WaitGroup
	for i := range owners {
		store, _ := open(t, sqlitetest.Apart(t, path))
		all.Go(func() {
			for j := range each {
				if _, err := store.Insert(t.Context(), endpoints.Record{ID: fmt.Sprintf("%d-%d", i, j)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	seen, since := 0, int64(0)
	look := func() {
		changes, err := reader.Changes(t.Context(), since, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range changes {
			if r.Revision <= since {
				t.Errorf("revision %d after %d", r.Revision, since)
			}
			since = r.Revision
			seen++
		}
	}
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
		}
		look()
	}
	if seen != owners*each || since != owners*each {
		t.Errorf("seen %d of %d records, the last with revision %d", seen, owners*each, since)
	}
}
