package cursor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq"
)

// Cursor is the place of a row in a list that is ordered by time and then by number.
type Cursor struct{ Micro, Seq int64 }

// At returns the place of a row.
func At(t time.Time, seq int64) Cursor { return Cursor{t.UnixMicro(), seq} }

// Time of the row.
func (c Cursor) Time() time.Time { return time.UnixMicro(c.Micro) }

// String returns the form that callers carry from page to page.
func (c Cursor) String() string {
	return strconv.FormatInt(c.Micro, 36) + "-" + strconv.FormatInt(c.Seq, 36)
}

// Parse reads what String wrote. The error wraps [dlq.ErrCursor].
func Parse(s string) (c Cursor, err error) {
	at, seq, _ := strings.Cut(s, "-")
	if c.Micro, err = strconv.ParseInt(at, 36, 64); err == nil {
		c.Seq, err = strconv.ParseInt(seq, 36, 64)
	}
	if err != nil {
		return Cursor{}, fmt.Errorf("%q is %w", s, dlq.ErrCursor)
	}
	return c, nil
}

// Page cuts rows, of which limit+1 were asked for, to limit. next is where the page after them begins; empty if there is none.
func Page[T any](rows []T, limit int, at func(row T) Cursor) (page []T, next string) {
	if len(rows) <= limit {
		return rows, ""
	}
	page = rows[:limit]
	return page, at(page[limit-1]).String()
}
