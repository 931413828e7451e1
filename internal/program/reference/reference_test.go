package reference

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const docs = "../../../docs"

// The pages hold what the code says.
func TestPagesAreFresh(t *testing.T) {
	t.Parallel()
	for _, page := range pages() {
		text, err := os.ReadFile(filepath.Join(docs, page))
		if err != nil {
			t.Fatal(err)
		}
		want, err := refresh(page, text)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(string(want), "\n")); diff != "" {
			t.Errorf("docs/%s is stale: run make docs (-page +code):\n%s", page, diff)
		}
	}
}

// A table without a place, and a place without a table, are told.
func TestMarkers(t *testing.T) {
	t.Parallel()
	page := "<!-- generated: keys; make docs -->\nold\n<!-- end -->\nby hand\n"
	text, err := refresh("configuration.md", []byte(page))
	if err != nil || !strings.Contains(string(text), "| `broker` |") || !strings.HasSuffix(string(text), "<!-- end -->\nby hand\n") || strings.Contains(string(text), "\nold\n") {
		t.Errorf("%v:\n%s", err, text)
	}
	for _, wrong := range []string{"", page + page, strings.Replace(page, "keys", "kees", 1)} {
		if _, err := refresh("configuration.md", []byte(wrong)); err == nil {
			t.Errorf("no error for\n%s", wrong)
		}
	}
}

// Help is read to its last command: a format that changes must not empty the page.
func TestHelpIsUnderstood(t *testing.T) {
	t.Parallel()
	root, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	if len(root.flags) < 4 || len(root.children) < 10 {
		t.Errorf("%d flags and %d commands", len(root.flags), len(root.children))
	}
	for _, c := range root.children {
		for _, leaf := range c.leaves() {
			if leaf.usage == "" || leaf.short == "" {
				t.Errorf("%v: usage %q, short %q", leaf.path, leaf.usage, leaf.short)
			}
		}
	}
}

var metricName = regexp.MustCompile(`(?:Name: |NewDesc\(|metric\{)\s*"(caisson_[a-z_]+)"`)

// metrics.md names every metric that the code makes, in a table or by hand, and none that it does not make.
func TestEveryMetricIsOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(docs, "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	made := make(map[string]bool)
	err = filepath.WalkDir("../../..", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		source, err := os.ReadFile(name)
		for _, m := range metricName.FindAllStringSubmatch(string(source), -1) {
			made[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range made {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/metrics.md has no %s", name)
		}
	}
	for _, m := range regexp.MustCompile("`(caisson_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		if !made[m[1]] && !strings.HasPrefix(m[1], "caisson_broker_") {
			t.Errorf("docs/metrics.md names %s, which nothing makes", m[1])
		}
	}
}
