package record

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/idempotency"
)

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var history []idempotency.Attempt
		n := rapid.IntRange(1, 3*idempotency.MaxHistory).Draw(t, "attempts")
		for i := range n {
			text := strings.Repeat(rapid.SampledFrom([]string{"e", "ü", "𝄞", "\xff"}).Draw(t, "letter"), rapid.IntRange(0, 600).Draw(t, "length"))
			history = appendHistory(history, idempotency.Attempt{Number: i + 1, Error: text})
		}
		if len(history) != min(n, idempotency.MaxHistory) || history[len(history)-1].Number != n {
			t.Fatalf("%d of %d attempts, the last is %d", len(history), n, history[len(history)-1].Number)
		}
		for _, a := range history {
			if len(a.Error) > idempotency.MaxAttemptError || !utf8.ValidString(a.Error) {
				t.Fatalf("error of %d bytes, valid %t", len(a.Error), utf8.ValidString(a.Error))
			}
		}
	})
}
