package architecture

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readPages returns the texts of all pages by their names in the repository.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	repository := os.DirFS(root)
	names, err := fs.Glob(repository, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"docs", "examples"} {
		err := fs.WalkDir(repository, dir, func(name string, _ fs.DirEntry, err error) error {
			if err == nil && path.Ext(name) == ".md" {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pages := make(map[string]string)
	for _, name := range names {
		text, err := fs.ReadFile(repository, name)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(text)
	}
	return pages
}

// Prose can be read side by side, and in a terminal.
func pagesAreNarrow(t *testing.T) {
	t.Helper()
	pages := readPages(t)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		for _, fault := range TooWide(name, pages[name]) {
			t.Error(fault)
		}
	}
	wide := strings.Repeat("x", MaxColumns+1)
	page := "| " + wide + "\n```\n" + wide + "\n```\n[a](" + wide + ")\nhttps://" + wide + "\n"
	if found := TooWide("page", page); found != nil {
		t.Errorf("tables, code and URLs may be wide, got %q", found)
	}
	if found := TooWide("page", page+wide); len(found) != 1 {
		t.Errorf("one line is too wide, got %q", found)
	}
}

// Each link into the repository leads to a file, and to a heading if it names one.
func linksLead(t *testing.T) {
	t.Helper()
	pages := readPages(t)
	repository := os.DirFS(root)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		for _, link := range Links(pages[name]) {
			file, fragment, _ := strings.Cut(link, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := fs.Stat(repository, target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", name, link)
				continue
			}
			if text, ok := pages[target]; ok && fragment != "" && !Anchors(text)[fragment] {
				t.Errorf("%s: the link %s leads to a heading that %s does not have", name, link, target)
			}
		}
	}
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	page := "# The worker's own `cost`\n```sh\n# a comment\n```\n## 7. Exactly once, with X\n"
	if diff := cmp.Diff(map[string]bool{"the-workers-own-cost": true, "7-exactly-once-with-x": true}, Anchors(page)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a.md#b", "#c"}, Links("[x](a.md#b) `[y](z)` [w](https://x.test) [v](#c)")); diff != "" {
		t.Error(diff)
	}
}

// A stranger reads README.md to its end.
func readmeIsShort(t *testing.T) {
	t.Helper()
	words := 0
	prose(readPages(t)["README.md"], func(_ int, line string) {
		if !strings.HasPrefix(line, "|") {
			words += len(strings.Fields(line))
		}
	})
	if words == 0 || words >= 1000 {
		t.Errorf("README.md has %d words of prose, want fewer than 1,000: move what few readers need to the page that answers their question", words)
	}
}
