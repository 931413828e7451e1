package reference

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// table is a generated part of a page: its name in the marker, and what makes its text.
type table struct {
	page, name string
	render     func() (string, error)
}

// markers enclose a table. The first one names it.
var markers = regexp.MustCompile(`(?ms)^<!-- generated: ([a-z -]+); make docs -->\n(.*?)^<!-- end -->$`)

// Update brings the tables of all pages in docs up to date and returns the pages that it has changed.
func Update(docs string) ([]string, error) {
	var changed []string
	for _, name := range pages() {
		file := filepath.Join(docs, name)
		old, err := os.ReadFile(file)
		if err != nil {
			return changed, err
		}
		text, err := refresh(name, old)
		if err != nil {
			return changed, err
		}
		if bytes.Equal(old, text) {
			continue
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return changed, err
		}
		changed = append(changed, name)
	}
	return changed, nil
}

// pages are the names of the pages that have a table.
func pages() []string {
	var names []string
	for _, t := range tables() {
		names = append(names, t.page)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// refresh returns a page with its tables as they have to be. Each table of the page has its place, once.
func refresh(page string, text []byte) ([]byte, error) {
	fresh := make(map[string]string)
	for _, t := range tables() {
		if t.page != page {
			continue
		}
		body, err := t.render()
		if err != nil {
			return nil, fmt.Errorf("table %q of %s: %w", t.name, page, err)
		}
		fresh[t.name] = body
	}
	var wrong error
	text = markers.ReplaceAllFunc(text, func(old []byte) []byte {
		name := string(markers.FindSubmatch(old)[1])
		body, ok := fresh[name]
		if !ok {
			wrong = fmt.Errorf("%s has a table %q that nothing makes, or has it twice", page, name)
		}
		delete(fresh, name)
		return []byte("<!-- generated: " + name + "; make docs -->\n" + body + "<!-- end -->")
	})
	for name := range fresh {
		wrong = fmt.Errorf("%s has no place for the table %q: add the two markers", page, name)
	}
	return text, wrong
}
