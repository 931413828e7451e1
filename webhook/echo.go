package webhook

import (
	"encoding/base64"
	"html"
	"net/url"
	"strconv"
	"strings"
)

// Receivers like to echo what they were sent, and an endpoint's header values, and its URL's path and query, may be secret. They are taken out of
// what a receiver says, whole and in parts, also where they were escaped for JSON, HTML, a URL or a log.

const (
	// minEcho is the shortest value that is worth hiding: shorter ones are no secrets and occur by chance.
	minEcho = 6
	// minPart is the same for a part of one, such as a word.
	minPart = 8
	// minTail is the least that is hidden of either: where a text was cut off in the middle of it, or where escapes made it longer than it is.
	minTail = 4
	// escapings is how often a text is unescaped at most: JSON in HTML is two, a URL within that three.
	escapings = 4
	// separators stand between the parts of a header value, such as scheme and token, or a name and what is secret.
	separators = " \t:,;=\""
)

// quotedError is a transport's error with what is not for showing taken out: net/http quotes what it could not read as HTTP.
type quotedError struct {
	text string
	err  error
}

func (q *quotedError) Error() string { return q.text }

func (q *quotedError) Unwrap() error { return q.err }

// cleaned returns err, or an error like it that does not quote what e was sent, and names no address.
func cleaned(err error, e Endpoint) error {
	if err == nil {
		return nil
	}
	if text := withoutAddresses(leaveOut(err.Error(), e, false)); text != err.Error() {
		return &quotedError{text, err}
	}
	return err
}

// leaveOut returns text without what it echoes. cut says that the text may end in the middle of something.
func leaveOut(text string, e Endpoint, cut bool) string {
	if text == "" {
		return ""
	}
	list := echoes(e)
	hidden := make([]bool, len(text))
	any := false
	for r, more := (reading{text: text}), true; more; r, more = r.unescape() {
		for _, echo := range list {
			any = r.hide(echo, cut, hidden) || any
		}
	}
	if !any {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString("[left out]")
		}
	}
	return b.String()
}

// reading is a text that was unescaped some times.
type reading struct {
	text  string
	at    []int // where each byte was in the text as it came, and the end; nil if nothing was unescaped
	times int
}

func (r reading) origin(i int) int {
	if r.at == nil {
		return i
	}
	return r.at[i]
}

// hide marks where the reading has an echo, and reports whether it does.
func (r reading) hide(echo string, cut bool, hidden []bool) (found bool) {
	mark := func(from, to int) {
		found = true
		for i := r.origin(from); i < to; i++ {
			hidden[i] = true
		}
	}
	for from := 0; ; {
		i := strings.Index(r.text[from:], echo)
		if i < 0 {
			break
		}
		from += i
		mark(from, r.origin(from+len(echo)))
		from++ // it may overlap itself
	}
	if !cut {
		return found
	}
	for _, text := range []string{r.text, beforeEscape(r.text)} {
		for n := min(len(echo)-1, len(text)); n >= minTail; n-- {
			if strings.HasSuffix(text, echo[:n]) {
				mark(len(text)-n, len(hidden))
				break
			}
		}
	}
	return found
}

// beforeEscape leaves out an escape at the end that was cut off.
func beforeEscape(text string) string {
	if i := strings.LastIndexAny(text, `\%&`); i >= 0 && len(text)-i < maxEntity {
		return text[:i]
	}
	return text
}

// unescape returns the text as one reads it who takes away one layer of escapes of all kinds. It reports whether there was one.
func (r reading) unescape() (reading, bool) {
	if r.times == escapings || !strings.ContainsAny(r.text, `\%&`) {
		return r, false
	}
	next := reading{at: make([]int, 0, len(r.text)+1), times: r.times + 1}
	var b strings.Builder
	for i := 0; i < len(r.text); {
		char, n := unescaped(r.text[i:])
		b.WriteString(char)
		for range len(char) {
			next.at = append(next.at, r.origin(i))
		}
		i += n
	}
	next.at, next.text = append(next.at, r.origin(len(r.text))), b.String()
	return next, next.text != r.text
}

// maxEntity is the longest escape that is known: &quot; with some room.
const maxEntity = 10

// unescaped returns what text begins with, and how many bytes that takes.
func unescaped(text string) (char string, n int) {
	code := func(from, digits int) (uint64, bool) {
		if len(text) < from+digits {
			return 0, false
		}
		v, err := strconv.ParseUint(text[from:from+digits], 16, 32)
		return v, err == nil
	}
	switch {
	case text[0] == '%':
		if v, ok := code(1, 2); ok {
			return string([]byte{byte(v)}), 3
		}
	case strings.HasPrefix(text, `\u`):
		if v, ok := code(2, 4); ok {
			return string(rune(v)), 6 //nolint:gosec // four digits
		}
	case strings.HasPrefix(text, `\x`):
		if v, ok := code(2, 2); ok {
			return string([]byte{byte(v)}), 4
		}
	case strings.HasPrefix(text, `\t`):
		return "\t", 2
	case text[0] == '\\' && len(text) > 1:
		return text[1:2], 2
	case text[0] == '&':
		end := 1 + strings.IndexAny(text[1:min(len(text), maxEntity)], ";&")
		if entity := text[:end+1]; end > 1 && text[end] == ';' {
			if char := html.UnescapeString(entity); char != entity {
				return char, len(entity)
			}
		}
	}
	return text[:1], 1
}

// echoes lists what a response may not repeat.
func echoes(e Endpoint) []string {
	var list echoList
	if u, err := url.Parse(e.URL); err == nil {
		for _, whole := range []string{u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery} {
			list.add(whole, minEcho)
		}
		for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
			list.addParts(segment, minPart)
		}
		for field := range strings.SplitSeq(u.RawQuery, "&") {
			name, value, _ := strings.Cut(field, "=")
			for _, text := range []string{name, value} {
				list.addParts(text, minPart)
				list.addParts(strings.ReplaceAll(text, "+", " "), minPart)
			}
		}
	}
	for _, value := range e.Headers {
		list.addParts(strings.Trim(value, " \t"), minEcho)
		if scheme, token, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "Basic") {
			if pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(token)); err == nil {
				list.addParts(string(pair), minPart)
			}
		}
	}
	return list
}

type echoList []string

// add adds a text as it was sent, and as one reads it who unescapes it, unless it is too short.
func (l *echoList) add(text string, shortest int) {
	for r, more := (reading{text: text}), len(text) >= shortest; more && len(r.text) >= minTail; r, more = r.unescape() {
		*l = append(*l, r.text)
	}
}

// addParts adds a text, each of its parts, and all that is behind a separator.
func (l *echoList) addParts(text string, shortest int) {
	l.add(text, shortest)
	for r, more := (reading{text: text}), true; more; r, more = r.unescape() {
		for rest := r.text; rest != ""; {
			i := strings.IndexAny(rest, separators)
			if i < 0 {
				l.add(rest, minPart)
				break
			}
			l.add(rest[:i], minPart)
			rest = rest[i+1:]
			l.add(rest, minPart)
		}
	}
}
