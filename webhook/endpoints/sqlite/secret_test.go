package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-go/caisson/internal/testkit/endpointtest"
)

// TestTheFileHoldsNothingInTheClear looks through every byte of the file and of its write-ahead log.
func TestTheFileHoldsNothingInTheClear(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, _ := open(t, filepath.Join(dir, "test.db"))
	endpointtest.NothingInTheClear(t, store, func(t *testing.T) []byte {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(names) < 2 {
			t.Fatalf("files are %v, %v", names, err)
		}
		var all []byte
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, data...)
		}
		return all
	})
}
