package row

import (
	"errors"
	"testing"

	"github.com/caisson-go/caisson/webhook/journal"
)

func TestCursor(t *testing.T) {
	t.Parallel()
	for _, want := range []Cursor{{}, {Micro: 1, Seq: 2}, {Micro: 1 << 52, Seq: 1<<63 - 1}} {
		if got, err := Parse(want.String()); err != nil || got != want {
			t.Errorf("%v read as %v, %v", want, got, err)
		}
	}
	for _, text := range []string{"", ".", "a", "a.", ".a", "ä.1", "1.2.3", "99999999999999999.1"} {
		if c, err := Parse(text); !errors.Is(err, journal.ErrCursor) {
			t.Errorf("%q is taken for %v, %v", text, c, err)
		}
	}
}
