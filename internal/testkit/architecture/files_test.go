package architecture

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func filesAreSmall(t *testing.T) {
	t.Helper()
	lines := map[string]int{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines[strings.TrimPrefix(filepath.ToSlash(name), root+"/")] = bytes.Count(src, []byte{'\n'})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines["internal/testkit/architecture/floors.go"] == 0 {
		t.Fatal("the walk did not find this package's own files")
	}
	for _, v := range TooLong(lines) {
		t.Error(v)
	}
}

func TestTooLongIsFound(t *testing.T) {
	t.Parallel()
	lines := map[string]int{"a.go": 501, "b.go": 301}
	for i := range 17 {
		lines[fmt.Sprintf("small%d.go", i)] = 300
	}
	want := []string{
		"a.go has 501 lines: cut it by its nouns, no file has more than 500",
		"2 of 19 files have more than 300 lines, at most a tenth may: a.go, b.go",
	}
	if diff := cmp.Diff(want, TooLong(lines)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	lines["a.go"], lines["small17.go"] = 500, 1
	if got := TooLong(lines); got != nil {
		t.Fatalf("2 of 20 files at most 500 long are fine, got %q", got)
	}
}

// packagesSayWhatTheyPromise asks each package for a doc.go whose comment says more than one sentence.
func packagesSayWhatTheyPromise(t *testing.T) {
	t.Helper()
	for _, p := range modulePackages(t) {
		doc := filepath.Join(p.dir(), "doc.go")
		file, err := parser.ParseFile(token.NewFileSet(), doc, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Errorf("%s needs a doc.go that states its guarantees: %v", p.Path, err)
			continue
		}
		if sentences(file.Doc.Text()) < 2 {
			t.Errorf("%s: doc.go says too little: state what the package promises, then how it is used", p.Path)
		}
	}
}

// sentences counts full stops and colons that end a word.
func sentences(text string) int {
	n := 0
	for _, word := range strings.Fields(text) {
		if strings.HasSuffix(word, ".") || strings.HasSuffix(word, ":") {
			n++
		}
	}
	return n
}

func topLevelIsKnown(t *testing.T) {
	t.Helper()
	ignored := ignorePatterns(t)
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !matchesAny(t, ignored, e.Name()) {
			names = append(names, e.Name())
		}
	}
	for _, name := range Misplaced(names) {
		t.Errorf("%s does not belong at the top level: move it, or add it to topLevel and docs/architecture.md", name)
	}
	if diff := cmp.Diff([]string{"util"}, Misplaced([]string{"queue", "util", "go.mod"})); diff != "" {
		t.Errorf("Strays (-want +got):\n%s", diff)
	}
}

// ignorePatterns reads the patterns of .gitignore that concern the top level.
func ignorePatterns(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	patterns := []string{".git"}
	for line := range strings.Lines(string(text)) {
		if p := strings.Trim(strings.TrimSpace(line), "/"); p != "" && !strings.HasPrefix(p, "#") {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

func matchesAny(t *testing.T, patterns []string, name string) bool {
	t.Helper()
	for _, p := range patterns {
		ok, err := path.Match(p, name)
		if err != nil {
			t.Fatalf("pattern %q in .gitignore: %v", p, err)
		}
		if ok {
			return true
		}
	}
	return false
}
