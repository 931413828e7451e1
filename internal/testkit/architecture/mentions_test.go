package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testFunc = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)

// What pages name is where they say.
func mentionsExist(t *testing.T) {
	t.Helper()
	pages := readPages(t)
	tests := map[string]map[string]bool{}
	for _, m := range MentionedTests(pages["docs/field-cases.md"]) {
		if tests[m.Package] == nil {
			tests[m.Package] = testsIn(t, m.Package)
		}
		if !tests[m.Package][m.Name] {
			t.Errorf("docs/field-cases.md: no test %s in %s", m.Name, m.Package)
		}
	}
	for _, m := range MentionedFiles(pages["docs/architecture.md"]) {
		if _, err := os.Stat(filepath.Join("../../..", m.Package, m.Name)); err != nil {
			t.Errorf("docs/architecture.md: %v", err)
		}
	}
}

// testsIn returns the tests of a package.
func testsIn(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	files, err := filepath.Glob(filepath.Join("../../..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
	}
	return found
}

func TestMentions(t *testing.T) {
	t.Parallel()
	page := "TestProse\n| A1 | x | `worker`: TestA, the same (b); `queue/sqs`: TestB |\n| `worker` | the flow | `attempt.go` |\n"
	if diff := cmp.Diff([]Mention{{"worker", "TestA"}, {"queue/sqs", "TestB"}}, MentionedTests(page)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Mention{{"worker", "attempt.go"}}, MentionedFiles(page)); diff != "" {
		t.Error(diff)
	}
}
