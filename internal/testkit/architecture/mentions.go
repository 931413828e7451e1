package architecture

import (
	"regexp"
	"strings"
)

// Mention is a test, or a file, that a row of a table says is in a package.
type Mention struct{ Package, Name string }

var (
	packageSpan = regexp.MustCompile("`([a-z][a-z0-9_/]*)`:")
	testName    = regexp.MustCompile(`\bTest[A-Z]\w*`)
)

// MentionedTests returns the tests that the tables of a page name behind their packages, as in "`worker`: TestA, TestB; `queue/sqs`: TestC".
func MentionedTests(page string) []Mention {
	var found []Mention
	prose(page, func(_ int, line string) {
		if !strings.HasPrefix(line, "|") {
			return
		}
		places := packageSpan.FindAllStringSubmatchIndex(line, -1)
		for i, at := range places {
			end := len(line)
			if i+1 < len(places) {
				end = places[i+1][0]
			}
			for _, name := range testName.FindAllString(line[at[1]:end], -1) {
				found = append(found, Mention{line[at[2]:at[3]], name})
			}
		}
	})
	return found
}

var fileRow = regexp.MustCompile("^\\| `([a-z][a-z0-9_/]*)` \\|.*\\| `([a-z_0-9]+\\.go)` \\|$")

// MentionedFiles returns the files that the rows of a page's tables name for a package: the package in the first column, the file in the last.
func MentionedFiles(page string) []Mention {
	var found []Mention
	prose(page, func(_ int, line string) {
		if m := fileRow.FindStringSubmatch(line); m != nil {
			found = append(found, Mention{m[1], m[2]})
		}
	})
	return found
}
