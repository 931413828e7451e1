package jsonmatch

import (
	"bytes"
	"unicode/utf8"
)

// document walks through a body that is known to be JSON, without decoding what it passes.
type document struct {
	body []byte
	want string // the scalar to find; empty finds anything
}

// holds reports whether path leads from the value at i to what is wanted.
func (d document) holds(i int, path []Step) bool {
	i = d.space(i)
	if len(path) == 0 {
		return d.want == "" || d.is(d.body[i:d.end(i)])
	}
	switch step := path[0]; step.Kind {
	case StepKey:
		at := -1
		d.members(i, func(key []byte, value int) {
			if isKey(key, step.Key) {
				at = value // the last one counts
			}
		})
		return at >= 0 && d.holds(at, path[1:])
	case StepIndex, StepAny:
		found, n := false, 0
		d.elements(i, func(value int) bool {
			if step.Kind == StepAny || n == step.Index {
				found = d.holds(value, path[1:])
			}
			n++
			return !found && (step.Kind == StepAny || n <= step.Index)
		})
		return found
	}
	return false
}

// members calls yield with each key's literal and its value's place, if an object begins at i.
func (d document) members(i int, yield func(key []byte, value int)) {
	if d.body[i] != '{' {
		return
	}
	for i = d.space(i + 1); d.body[i] != '}'; {
		end := d.end(i)
		key := d.body[i:end]
		i = d.space(d.space(end) + 1) // past the colon
		yield(key, i)
		if i = d.space(d.end(i)); d.body[i] == ',' {
			i = d.space(i + 1)
		}
	}
}

// elements calls yield with each element's place until it returns false, if an array begins at i.
func (d document) elements(i int, yield func(value int) bool) {
	if d.body[i] != '[' {
		return
	}
	for i = d.space(i + 1); d.body[i] != ']'; {
		if !yield(i) {
			return
		}
		if i = d.space(d.end(i)); d.body[i] == ',' {
			i = d.space(i + 1)
		}
	}
}

// space returns the place of the next byte that is not white space, or the body's end.
func (d document) space(i int) int {
	for i < len(d.body) && (d.body[i] == ' ' || d.body[i] == '\n' || d.body[i] == '\t' || d.body[i] == '\r') {
		i++
	}
	return i
}

// end returns the place behind the value at i.
func (d document) end(i int) int {
	depth := 0
	for {
		switch d.body[i] {
		case '"':
			i = d.endOfString(i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
		default:
			i = d.endOfWord(i)
		}
		if depth == 0 {
			return i
		}
	}
}

// endOfWord returns the place behind a number, true, false or null.
func (d document) endOfWord(i int) int {
	for ; i < len(d.body); i++ {
		switch d.body[i] {
		case ',', ']', '}', ' ', '\n', '\t', '\r':
			return i
		}
	}
	return i
}

func (d document) endOfString(i int) int {
	for i++; d.body[i] != '"'; i++ {
		if d.body[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// isKey reports whether a string's literal is key.
func isKey(literal []byte, key string) bool {
	inner := literal[1 : len(literal)-1]
	if string(inner) == key && bytes.IndexByte(inner, '\\') < 0 {
		return true
	}
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return false
	}
	s, err := unquote(literal)
	return err == nil && s == key
}

// is reports whether a value's literal is the scalar that is wanted.
func (d document) is(literal []byte) bool {
	switch want := d.want[0]; {
	case want == '"' != (literal[0] == '"'):
		return false
	case want == '"':
		// Both are in the one form that quote writes, or the literal has to be read.
		if string(literal) == d.want {
			return true
		}
		s, err := unquote(literal)
		return err == nil && quote(s) == d.want
	case want == '-' || want >= '0' && want <= '9':
		return (literal[0] == '-' || literal[0] >= '0' && literal[0] <= '9') && sameNumber(string(literal), d.want)
	}
	return string(literal) == d.want
}
