package architecture

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func wordsAreOurs(t *testing.T) {
	t.Helper()
	fset := token.NewFileSet()
	files := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		for _, fault := range Retired(fset, file) {
			t.Error(strings.TrimPrefix(filepath.ToSlash(fault), root+"/"))
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("read %d files: %v", files, err)
	}
}

func TestRetiredWordsAreFound(t *testing.T) {
	t.Parallel()
	const src = `package p

type fateBoard struct{ heartBeat, inFlight, HTTPBoard int }

func hearsay(patience int) (site int) {
	for seat := range 3 {
		crewSize := seat
		_ = crewSize
	}
	return 0
}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, fault := range Retired(fset, file) {
		names = append(names, strings.Split(fault, ": ")[1])
	}
	want := []string{"fateBoard", "fateBoard", "heartBeat", "heartBeat", "HTTPBoard", "patience", "crewSize"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
