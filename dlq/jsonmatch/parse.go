package jsonmatch

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLength is the longest expression, in bytes.
const maxLength = 4 << 10

// Parse reads path=value, or a path alone, which asks for a value to be there.
//
// A path is keys with dots between them, [n] for an element of an array, and [*] for any element. It may begin with $, the whole document;
// $ alone is that. A key with other characters than letters, digits, - and _ is quoted as in JSON: "a.b".c, or ["a.b"], or ['a.b'].
//
// The value is a JSON scalar if it can be read as one, else a string: 7 is a number, "7" and abc are strings, null is null. White space
// around path and value is left out.
func Parse(text string) (Match, error) {
	m, err := parse(text)
	if err != nil {
		return Match{}, fmt.Errorf("JSON match %.200q: %w: %w", text, err, ErrSyntax)
	}
	return m, nil
}

func parse(text string) (m Match, err error) {
	if len(text) > maxLength || !utf8.ValidString(text) {
		return m, fmt.Errorf("must be UTF-8 of at most %d bytes", maxLength)
	}
	p := pathParser{rest: strings.TrimSpace(text)}
	if m.Path, err = p.path(); err != nil {
		return m, err
	}
	value, hasValue := strings.CutPrefix(p.rest, "=")
	if !hasValue && p.rest != "" {
		return m, fmt.Errorf("%.20q makes no sense in a path", p.rest)
	}
	if hasValue {
		value = strings.TrimSpace(value)
		var ok bool
		if m.Value, ok = scalar(value); !ok {
			m.Value = quote(value)
		}
	}
	return m, m.Validate()
}

// pathParser reads a path from the beginning of rest.
type pathParser struct{ rest string }

func (p *pathParser) path() (path []Step, err error) {
	root := p.take("$")
	for first := !root; ; first = false {
		var step Step
		switch {
		case p.take("["):
			step, err = p.bracket()
		case first, p.take("."):
			step.Key, err = p.key()
		default:
			p.rest = strings.TrimSpace(p.rest)
			return path, nil
		}
		if err != nil {
			return nil, err
		}
		path = append(path, step)
	}
}

func (p *pathParser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

// key reads a bare or a quoted key.
func (p *pathParser) key() (string, error) {
	if strings.HasPrefix(p.rest, `"`) {
		return p.quoted()
	}
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !bareRune(r) })
	if end < 0 {
		end = len(p.rest)
	}
	if end == 0 {
		return "", fmt.Errorf("a key is missing before %.20q; keys with such characters need quotes", p.rest)
	}
	key := p.rest[:end]
	p.rest = p.rest[end:]
	return key, nil
}

// bracket reads what follows a bracket, and its end.
func (p *pathParser) bracket() (step Step, err error) {
	switch {
	case p.take("*"):
		step.Kind = StepAny
	case strings.HasPrefix(p.rest, `"`), strings.HasPrefix(p.rest, "'"):
		step.Key, err = p.quoted()
	default:
		step.Kind = StepIndex
		end := strings.IndexFunc(p.rest, func(r rune) bool { return r < '0' || r > '9' })
		if end <= 0 {
			return step, fmt.Errorf("[%.20s: must be [n] with n from 0, [*] or a quoted key", p.rest)
		}
		step.Index, err = strconv.Atoi(p.rest[:end])
		p.rest = p.rest[end:]
	}
	if err == nil && !p.take("]") {
		err = fmt.Errorf("a ] is missing before %.20q", p.rest)
	}
	return step, err
}

// quoted reads a string in double quotes, as JSON, or in single quotes, where a backslash takes the next character as it is.
func (p *pathParser) quoted() (string, error) {
	mark := p.rest[0]
	var plain strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == mark:
			literal := p.rest[:i+1]
			p.rest = p.rest[i+1:]
			if mark == '\'' {
				return plain.String(), nil
			}
			s, err := unquote([]byte(literal))
			if err != nil {
				return "", fmt.Errorf("key %s is no JSON string: %w", literal, err)
			}
			return s, nil
		case c == '\\' && i+1 < len(p.rest):
			i++
			plain.WriteByte(p.rest[i])
		default:
			plain.WriteByte(c)
		}
	}
	return "", fmt.Errorf("key %.20s has no end", p.rest)
}

// bare reports whether key needs no quotes.
func bare(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool { return !bareRune(r) }) < 0
}

func bareRune(r rune) bool {
	return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf && r != utf8.RuneError
}
