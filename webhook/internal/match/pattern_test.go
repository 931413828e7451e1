package match_test

import (
	"testing"

	"github.com/caisson-go/caisson/webhook/internal/match"
)

func TestMatchType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patterns  []string
		eventType string
		want      bool
	}{
		{nil, "invoice.paid", true},
		{[]string{"*"}, "invoice.paid", true},
		{[]string{"invoice.paid"}, "invoice.paid", true},
		{[]string{"invoice.paid"}, "invoice.paid.late", false},
		{[]string{"invoice.*"}, "invoice.paid", true},
		{[]string{"invoice.*"}, "invoice.item.added", true},
		{[]string{"invoice.*"}, "invoice", false},
		{[]string{"invoice.*"}, "invoices.paid", false},
		{[]string{"user.*", "invoice.paid"}, "invoice.paid", true},
		{[]string{"user.*"}, "invoice.paid", false},
		{[]string{"Invoice.paid"}, "invoice.paid", false},
	} {
		if got := match.Type(c.patterns, c.eventType); got != c.want {
			t.Errorf("%q of %q: %v", c.eventType, c.patterns, got)
		}
	}
}

func TestPatternsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "invoice*", "*.paid", "invoice.*.paid", "a b", ".", "a..b", ".*", "invoice.", "**"} {
		if match.CheckPattern(p) == nil {
			t.Errorf("%q was taken", p)
		}
	}
	for _, p := range []string{"*", "invoice", "invoice.paid", "invoice.*", "a.b.c.*", "A-b_c.9"} {
		if err := match.CheckPattern(p); err != nil {
			t.Error(err)
		}
	}
}
