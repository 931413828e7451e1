package jsonmatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Match asks for one value at a path. The zero value matches every payload that is JSON.
type Match struct {
	// Path leads from the whole document to the value. Empty is the document itself.
	Path []Step
	// Value is the scalar to find, as JSON: a number, "a string", true, false or null. Empty asks for any value to be there; null is one.
	Value string
}

// Step is one step down into a document. It leads nowhere if the value is of another type: a key of an array, an index of an object.
type Step struct {
	Kind StepKind
	// Key is the name of an object's member, for [StepKey].
	Key string
	// Index counts an array's elements from 0, for [StepIndex].
	Index int
}

// StepKind is the way that a [Step] goes.
type StepKind int

// The kinds of steps.
const (
	// StepKey leads to one member of an object.
	StepKey StepKind = iota
	// StepIndex leads to one element of an array.
	StepIndex
	// StepAny leads to every element of an array: one that matches is enough.
	StepAny
)

const (
	maxSteps = 64
	// maxIndex fits the integers of every store.
	maxIndex = 1<<31 - 1
)

// Validate returns an error if m cannot be asked.
func (m Match) Validate() error {
	if len(m.Path) > maxSteps {
		return fmt.Errorf("JSON path has %d steps, at most %d are allowed", len(m.Path), maxSteps)
	}
	for _, s := range m.Path {
		switch {
		case s.Kind < StepKey || s.Kind > StepAny:
			return fmt.Errorf("JSON path: step of unknown kind %d", s.Kind)
		case s.Kind == StepIndex && (s.Index < 0 || s.Index > maxIndex):
			return fmt.Errorf("JSON path: index %d: must be from 0 to %d", s.Index, maxIndex)
		case s.Kind == StepKey && !utf8.ValidString(s.Key):
			return fmt.Errorf("JSON path: key %q is not valid UTF-8", s.Key)
		}
	}
	if m.Value == "" {
		return nil
	}
	if canonical, ok := scalar(m.Value); !ok || canonical != m.Value {
		return fmt.Errorf("JSON value %s: must be a scalar as JSON, as Parse writes it", m.Value)
	}
	return nil
}

// scalar returns text in the one form that values have, if it is a JSON scalar.
func scalar(text string) (canonical string, ok bool) {
	text = strings.Trim(text, " \t\r\n")
	if !json.Valid([]byte(text)) || text[0] == '{' || text[0] == '[' {
		return "", false
	}
	if text[0] != '"' {
		return text, true
	}
	s, err := unquote([]byte(text))
	if err != nil {
		return "", false
	}
	return quote(s), true
}

// quote writes s as a JSON string. s is valid UTF-8.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string can always be written
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func unquote(literal []byte) (s string, err error) {
	err = json.Unmarshal(literal, &s)
	return s, err
}

// String returns the form that [Parse] reads.
func (m Match) String() string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range m.Path {
		switch {
		case s.Kind == StepIndex:
			b.WriteString("[" + strconv.Itoa(s.Index) + "]")
		case s.Kind == StepAny:
			b.WriteString("[*]")
		case bare(s.Key):
			b.WriteString("." + s.Key)
		default:
			b.WriteString("[" + quote(s.Key) + "]")
		}
	}
	if m.Value != "" {
		b.WriteString("=" + m.Value)
	}
	return b.String()
}

// MarshalText writes what String returns.
func (m Match) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what [Parse] reads.
func (m *Match) UnmarshalText(text []byte) error {
	read, err := Parse(string(text))
	if err == nil {
		*m = read
	}
	return err
}

// Matches reports whether body holds the value.
func (m Match) Matches(body []byte) bool { return All(body, []Match{m}) }

// All reports whether body is JSON and all of ms match it. It is cheaper than asking each of them.
func All(body []byte, ms []Match) bool {
	for _, m := range ms {
		if !m.seems(body) {
			return false
		}
	}
	return json.Valid(body) // last, since it costs more than to look: most bodies are out by then
}

// seems reports whether m matches a body that is JSON. For another body the answer means nothing.
func (m Match) seems(body []byte) (holds bool) {
	defer func() {
		if recover() != nil { // the walk left the body, which is not JSON then
			holds = false
		}
	}()
	return !m.absent(body) && document{body: body, want: m.Value}.holds(0, m.Path)
}

// absent reports that the wanted string is nowhere in the body. It may miss that, but is much cheaper than a walk.
func (m Match) absent(body []byte) bool {
	plain := strings.HasPrefix(m.Value, `"`) && !strings.ContainsAny(m.Value, "\\\uFFFD")
	return plain && bytes.IndexByte(body, '\\') < 0 && !bytes.Contains(body, []byte(m.Value))
}

// ErrSyntax marks expressions that [Parse] cannot read.
var ErrSyntax = errors.New(`write a path and a value, such as order.id=7, items[0].sku=abc, items[*].sku=abc or "a.b"=x, or a path alone`)
