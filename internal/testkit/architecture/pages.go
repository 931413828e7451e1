package architecture

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxColumns bounds the lines of prose in Markdown. Tables, code and the targets of links may be longer.
const MaxColumns = 100

var (
	linkTarget = regexp.MustCompile(`\]\([^)\s]*\)`)
	plainURL   = regexp.MustCompile(`https?://\S+`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
	heading    = regexp.MustCompile(`^#{1,6} +(.+?) *$`)
)

// prose calls visit for each line of a page that is no code.
func prose(page string, visit func(number int, line string)) {
	fence := ""
	number := 0
	for line := range strings.Lines(page) {
		number++
		line = strings.TrimRight(line, "\n")
		mark := strings.TrimLeft(line, " ")
		switch {
		case fence != "":
			if strings.TrimSpace(mark) == fence {
				fence = ""
			}
		case strings.HasPrefix(mark, "```"):
			fence = mark[:len(mark)-len(strings.TrimLeft(mark, "`"))]
		default:
			visit(number, line)
		}
	}
}

// TooWide returns the lines of a page that have more than MaxColumns.
func TooWide(name, page string) []string {
	var found []string
	prose(page, func(number int, line string) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "|") {
			return
		}
		shown := plainURL.ReplaceAllString(linkTarget.ReplaceAllString(line, "]"), "")
		if n := utf8.RuneCountInString(shown); n > MaxColumns {
			found = append(found, fmt.Sprintf("%s, line %d: %d columns, prose has at most %d", name, number, n, MaxColumns))
		}
	})
	return found
}

// Links returns the targets of a page's links that lead into the repository.
func Links(page string) []string {
	var links []string
	prose(page, func(_ int, line string) {
		for _, target := range linkTarget.FindAllString(codeSpan.ReplaceAllString(line, "``"), -1) {
			target = strings.TrimSuffix(strings.TrimPrefix(target, "]("), ")")
			if !strings.Contains(target, "://") && !strings.HasPrefix(target, "mailto:") {
				links = append(links, target)
			}
		}
	})
	return links
}

// Anchors returns what a link into a page may name after #.
func Anchors(page string) map[string]bool {
	anchors := make(map[string]bool)
	prose(page, func(_ int, line string) {
		if m := heading.FindStringSubmatch(line); m != nil {
			anchors[anchor(m[1])] = true
		}
	})
	return anchors
}

// anchor is the name that a heading gets: lower case, without punctuation, with dashes for spaces.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
