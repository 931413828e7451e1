package dlq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSONMatch selects entries by one value inside a payload that is JSON (RFC 8259, at most 10,000 levels deep). Other payloads never match.
//
// Numbers are compared by their exact value, of any size: 1 is 1.0 and 10e-1, and 9007199254740993 is not 9007199254740992. Strings are
// compared after their escapes are resolved; what is not valid UTF-8 or half of a surrogate pair counts as U+FFFD. Where an object has a
// key twice, the last one counts. The zero value matches every payload that is JSON.
type JSONMatch struct {
	// Path leads from the whole document to the value. Empty is the document itself.
	Path []JSONStep
	// Value is the scalar to find, as JSON: a number, "a string", true, false or null. Empty asks only for a value to be there, whatever
	// it is: null is one.
	Value string
}

// JSONStep is one step down into a document. It leads nowhere if the value is of another type: a key of an array, an index of an object.
type JSONStep struct {
	Kind JSONStepKind
	// Key is the name of an object's member, for [JSONStepKey].
	Key string
	// Index counts an array's elements from 0, for [JSONStepIndex].
	Index int
}

// JSONStepKind is the way that a [JSONStep] goes.
type JSONStepKind int

// The kinds of steps.
const (
	// JSONStepKey leads to one member of an object.
	JSONStepKey JSONStepKind = iota
	// JSONStepIndex leads to one element of an array.
	JSONStepIndex
	// JSONStepAny leads to every element of an array: one that matches is enough.
	JSONStepAny
)

const (
	maxJSONSteps = 64
	// maxJSONIndex fits the integers of every store.
	maxJSONIndex = 1<<31 - 1
)

// Validate returns an error if m cannot be asked.
func (m JSONMatch) Validate() error {
	if len(m.Path) > maxJSONSteps {
		return fmt.Errorf("JSON path has %d steps, at most %d are allowed", len(m.Path), maxJSONSteps)
	}
	for _, s := range m.Path {
		switch {
		case s.Kind < JSONStepKey || s.Kind > JSONStepAny:
			return fmt.Errorf("JSON path: step of unknown kind %d", s.Kind)
		case s.Kind == JSONStepIndex && (s.Index < 0 || s.Index > maxJSONIndex):
			return fmt.Errorf("JSON path: index %d: must be from 0 to %d", s.Index, maxJSONIndex)
		case s.Kind == JSONStepKey && !utf8.ValidString(s.Key):
			return fmt.Errorf("JSON path: key %q is not valid UTF-8", s.Key)
		}
	}
	if m.Value == "" {
		return nil
	}
	if canonical, ok := scalar(m.Value); !ok || canonical != m.Value {
		return fmt.Errorf("JSON value %s: must be a scalar as JSON, as ParseJSONMatch writes it", m.Value)
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

// String returns the form that [ParseJSONMatch] reads.
func (m JSONMatch) String() string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range m.Path {
		switch {
		case s.Kind == JSONStepIndex:
			b.WriteString("[" + strconv.Itoa(s.Index) + "]")
		case s.Kind == JSONStepAny:
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
func (m JSONMatch) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what [ParseJSONMatch] reads.
func (m *JSONMatch) UnmarshalText(text []byte) error {
	read, err := ParseJSONMatch(string(text))
	if err == nil {
		*m = read
	}
	return err
}

// Matches reports whether body holds the value. It is what every store's answer agrees with.
func (m JSONMatch) Matches(body []byte) bool { return MatchJSON(body, []JSONMatch{m}) }

// MatchJSON reports whether body is JSON and all of ms match it. It is cheaper than asking each.
func MatchJSON(body []byte, ms []JSONMatch) bool {
	for _, m := range ms {
		if !m.seems(body) {
			return false
		}
	}
	return json.Valid(body) // last, since it costs more than to look: most bodies are out by then
}

// seems is the answer for a body that is JSON; for another one it is any.
func (m JSONMatch) seems(body []byte) (holds bool) {
	defer func() {
		if recover() != nil { // the walk left the body, which is not JSON then
			holds = false
		}
	}()
	return !m.absent(body) && document{body: body, want: m.Value}.holds(0, m.Path)
}

// absent reports that the string which is wanted is nowhere in the body. It need not say so, but is much cheaper than a walk.
func (m JSONMatch) absent(body []byte) bool {
	plain := strings.HasPrefix(m.Value, `"`) && !strings.ContainsAny(m.Value, "\\\uFFFD")
	return plain && bytes.IndexByte(body, '\\') < 0 && !bytes.Contains(body, []byte(m.Value))
}

// ErrJSONMatch marks expressions that [ParseJSONMatch] cannot read.
var ErrJSONMatch = errors.New(`write a path and a value, such as order.id=7, items[0].sku=abc, items[*].sku=abc or "a.b"=x, or a path alone`)
