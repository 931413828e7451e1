package match

import (
	"fmt"
	"strings"
)

const maxEventType = 128

// Type reports whether an event type is among those that patterns select. A pattern is a type, or a type's beginning up to a dot and a
// star: "invoice.*" selects "invoice.paid" and "invoice.item.added", not "invoice". "*" selects all, and so do no patterns.
func Type(patterns []string, eventType string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, p := range patterns {
		if p == eventType || p == "*" {
			return true
		}
		if prefix, wild := strings.CutSuffix(p, "*"); wild && len(eventType) > len(prefix) && strings.HasPrefix(eventType, prefix) {
			return true
		}
	}
	return false
}

// CheckPattern refuses what could never match, or more than it seems to.
func CheckPattern(p string) error {
	if p == "*" {
		return nil
	}
	name, wild := strings.CutSuffix(p, ".*")
	if err := CheckType(name); err != nil {
		if wild || strings.Contains(p, "*") {
			return fmt.Errorf("event pattern %q: use a type such as invoice.paid, a beginning such as invoice.*, or *", p)
		}
		return fmt.Errorf("event pattern: %w", err)
	}
	return nil
}

// CheckType refuses names that patterns and headers cannot carry.
func CheckType(name string) error {
	if name == "" || len(name) > maxEventType {
		return fmt.Errorf("event type of %d bytes: use 1 to %d", len(name), maxEventType)
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return fmt.Errorf("event type %q: use letters, digits, '.', '-' and '_'", name)
		}
	}
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") {
		return fmt.Errorf("event type %q: dots stand between words", name)
	}
	return nil
}
