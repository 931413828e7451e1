package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// Limits on the lines of a non-test Go file.
const (
	MaxLines = 500
	// MostLines bounds nine files of ten.
	MostLines = 300
)

// TooLong returns what is wrong with the sizes of files, given as lines by name.
func TooLong(lines map[string]int) []string {
	var found, over []string
	for name, n := range lines {
		if n > MaxLines {
			found = append(found, fmt.Sprintf("%s has %d lines: cut it by its nouns, no file has more than %d", name, n, MaxLines))
		}
		if n > MostLines {
			over = append(over, name)
		}
	}
	slices.Sort(found)
	if len(over)*10 > len(lines) {
		slices.Sort(over)
		found = append(found, fmt.Sprintf("%d of %d files have more than %d lines, at most a tenth may: %s",
			len(over), len(lines), MostLines, strings.Join(over, ", ")))
	}
	return found
}

// topLevel is what the repository's root may hold.
var topLevel = []string{
	"app", "cmd", "dlq", "idempotency", "migrations", "pools", "queue", "schedule", "webhook", "worker",
	"bench", "deploy", "docs", "examples", "internal",
	"AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "go.mod", "go.sum",
	".ci", ".gitattributes", ".gitignore", ".golangci.yml",
}

// Misplaced returns the names that do not belong at the top level. What .gitignore leaves out is not asked for.
func Misplaced(names []string) []string {
	var misplaced []string
	for _, name := range names {
		if !slices.Contains(topLevel, name) {
			misplaced = append(misplaced, name)
		}
	}
	return misplaced
}
