package cursor_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/cursor"
)

func TestParse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := cursor.Cursor{Micro: rapid.Int64().Draw(t, "micro"), Seq: rapid.Int64Range(0, math.MaxInt64).Draw(t, "seq")}
		if want.Micro < 0 {
			want.Micro = -(want.Micro + 1) // entries are not older than 1970
		}
		if got, err := cursor.Parse(want.String()); err != nil || got != want {
			t.Errorf("%v read as %v, %v", want, got, err)
		}
	})
	for _, text := range []string{"", "-", "a", "a-", "-a", "ä-1", "1-2-3", "99999999999999999-1"} {
		if c, err := cursor.Parse(text); !errors.Is(err, dlq.ErrCursor) {
			t.Errorf("%q is taken for %v, %v", text, c, err)
		}
	}
}
