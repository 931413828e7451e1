package config

import (
	"fmt"
	"strings"
)

// Error lists everything that is wrong with a configuration.
type Error struct{ Problems []Problem }

// Problem is one fault.
type Problem struct {
	// Key is the dotted path, "" if the fault concerns the file as a whole.
	Key string `json:"key,omitempty"`
	// Where is the source: file and line, variable or flag. Empty for a fault between several values.
	Where string `json:"where,omitempty"`
	// Message says what is wrong, the value with secrets masked, and the way out.
	Message string `json:"message"`
}

// String returns the problem in one line.
func (p Problem) String() string {
	s := p.Message
	if p.Key != "" {
		s = p.Key + ": " + s
	}
	if p.Where != "" {
		s += " (" + p.Where + ")"
	}
	return s
}

// Error lists the problems, one a line.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return "configuration: " + e.Problems[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration: %d problems:", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  - " + p.String())
	}
	return b.String()
}

// Warning is something odd that does not stop a program.
type Warning struct {
	// Key is the variable's name or the dotted path.
	Key     string `json:"key"`
	Message string `json:"message"`
}

// String returns the warning in one line.
func (w Warning) String() string { return w.Key + ": " + w.Message }
