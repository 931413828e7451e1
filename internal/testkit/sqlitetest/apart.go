package sqlitetest

import (
	"os"
	"path/filepath"
	"testing"
)

// Apart returns another name of the file at path, which need not exist yet. In one process, users of two names of a file are to each
// other what two processes are.
func Apart(t testing.TB, path string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	return link
}
