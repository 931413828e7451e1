package queue

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonReader reads JSON of RFC 8259 from s, which is valid UTF-8, and refuses what parsers disagree about: repeated
// keys, keys that differ only in case, lone surrogates, deep nesting. It reads only what the envelope needs.
type jsonReader struct {
	s   string
	pos int
}

const (
	maxNesting = 16
	maxKeys    = 64 // of one object; bounds the search for repeated keys
)

// syntax says where the text stopped to be JSON.
func (r *jsonReader) syntax(want string) error {
	return badField("", r.rest(), "is no JSON at byte "+strconv.Itoa(r.pos)+", where "+want+" must follow")
}

// rest returns the text that was not read yet.
func (r *jsonReader) rest() string { return r.s[r.pos:] }

// peek skips white space and returns the next byte, or 0 at the end.
func (r *jsonReader) peek() byte {
	for ; r.pos < len(r.s); r.pos++ {
		switch c := r.s[r.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take skips white space and consumes c if it is next.
func (r *jsonReader) take(c byte) bool {
	if r.peek() != c || r.pos == len(r.s) {
		return false
	}
	r.pos++
	return true
}

// end asserts that only white space is left.
func (r *jsonReader) end() error {
	if r.peek(); r.pos < len(r.s) {
		return r.syntax("the end")
	}
	return nil
}

// object reads an object and calls value for each key, with the reader at the key's value. field names the object in
// errors.
func (r *jsonReader) object(field string, value func(key string) error) error {
	if !r.take('{') {
		return r.syntax("{")
	}
	if r.take('}') {
		return nil
	}
	var room [16]string
	keys, ascii := room[:0], true
	for {
		key, ok, err := r.text()
		if err != nil {
			return err
		}
		if !ok {
			return r.syntax("a key")
		}
		ascii = ascii && printable(key, ' ')
		for _, other := range keys {
			// ASCII that differs in length differs in more than case.
			if ascii && len(other) != len(key) || !strings.EqualFold(other, key) {
				continue
			}
			if other == key {
				return badField(field, key, "this key comes twice: keep one")
			}
			return badField(field, key, "this key comes twice, in another case: keep one")
		}
		if keys = append(keys, key); len(keys) > maxKeys {
			return badField(field, key, "an object must have at most 64 keys")
		}
		if !r.take(':') {
			return r.syntax(":")
		}
		if err := value(key); err != nil {
			return err
		}
		if r.take('}') {
			return nil
		}
		if !r.take(',') {
			return r.syntax(", or }")
		}
	}
}

// text reads a string. ok is false if something else is next.
func (r *jsonReader) text() (s string, ok bool, err error) {
	if !r.take('"') {
		return "", false, nil
	}
	start := r.pos
	for ; r.pos < len(r.s); r.pos++ {
		switch c := r.s[r.pos]; {
		case c == '"':
			s = r.s[start:r.pos]
			r.pos++
			return s, true, nil
		case c == '\\':
			return r.escapedText(start)
		case c < ' ':
			return "", false, r.syntax("an escape in place of a control character")
		}
	}
	return "", false, r.syntax("the end of a string")
}

// escapedText reads on from the first escape of the string that begins at start.
func (r *jsonReader) escapedText(start int) (string, bool, error) {
	b := append(make([]byte, 0, 64), r.s[start:r.pos]...)
	for r.pos < len(r.s) {
		c := r.s[r.pos]
		switch {
		case c == '"':
			r.pos++
			return string(b), true, nil
		case c < ' ':
			return "", false, r.syntax("an escape in place of a control character")
		case c != '\\':
			b = append(b, c)
			r.pos++
		default:
			char, ok := r.escape()
			if !ok {
				return "", false, r.syntax("a valid escape")
			}
			b = utf8.AppendRune(b, char)
		}
	}
	return "", false, r.syntax("the end of a string")
}

// escape reads one escape, or two that make a surrogate pair. On failure it does not move.
func (r *jsonReader) escape() (rune, bool) {
	rest := r.rest()
	if len(rest) < 2 {
		return 0, false
	}
	if rest[1] != 'u' {
		const letters, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
		i := strings.IndexByte(letters, rest[1])
		if i < 0 {
			return 0, false
		}
		r.pos += 2
		return rune(meanings[i]), true
	}
	char, ok := escapedUnit(rest)
	if !ok {
		return 0, false
	}
	size := 6
	if utf16.IsSurrogate(char) {
		low, ok := escapedUnit(rest[size:])
		if char = utf16.DecodeRune(char, low); !ok || char == utf8.RuneError {
			return 0, false
		}
		size *= 2
	}
	r.pos += size
	return char, true
}

// escapedUnit reads \uXXXX at the start of s.
func escapedUnit(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n := rune(0)
	for i := 2; i < 6; i++ {
		c := s[i]
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 + rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 + rune(c|0x20-'a') + 10
		default:
			return 0, false
		}
	}
	return n, true
}

// number reads a number and returns its text, or nothing if no valid number is next.
func (r *jsonReader) number() string {
	r.peek()
	start, i := r.pos, r.pos
	run := func() bool {
		from := i
		for i < len(r.s) && r.s[i] >= '0' && r.s[i] <= '9' {
			i++
		}
		return i > from
	}
	next := func(set string) bool {
		if i < len(r.s) && strings.IndexByte(set, r.s[i]) >= 0 {
			i++
			return true
		}
		return false
	}
	next("-")
	if !next("0") && !run() {
		return ""
	}
	if next(".") && !run() {
		return ""
	}
	if next("eE") {
		next("+-")
		if !run() {
			return ""
		}
	}
	r.pos = i
	return r.s[start:i]
}

// skip reads one value of any type and drops it.
func (r *jsonReader) skip(depth int) error {
	if depth > maxNesting {
		return badField("", r.rest(), "is nested deeper than 16 levels")
	}
	switch c := r.peek(); c {
	case '{':
		return r.object("", func(string) error { return r.skip(depth + 1) })
	case '[':
		return r.skipArray(depth)
	case '"':
		_, _, err := r.text()
		return err
	case 't', 'f', 'n':
		for _, word := range []string{"true", "false", "null"} {
			if strings.HasPrefix(r.rest(), word) {
				r.pos += len(word)
				return nil
			}
		}
	default:
		if r.number() != "" {
			return nil
		}
	}
	return r.syntax("a value")
}

func (r *jsonReader) skipArray(depth int) error {
	r.take('[')
	if r.take(']') {
		return nil
	}
	for {
		if err := r.skip(depth + 1); err != nil {
			return err
		}
		if r.take(']') {
			return nil
		}
		if !r.take(',') {
			return r.syntax(", or ]")
		}
	}
}
