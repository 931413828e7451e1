package journal

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-go/caisson/webhook"
)

// Conflict returns [ErrEventConflict] if an event is another one than that which is kept under its id.
func Conflict(kept, e webhook.Event) error {
	if kept.Type == e.Type && kept.ContentType == e.ContentType && bytes.Equal(kept.Body, e.Body) {
		return nil
	}
	return fmt.Errorf("%w: %s of tenant %s: publish it under an id of its own", ErrEventConflict, e.ID, e.Tenant)
}

// Text returns text as every database keeps it: at most limit bytes of valid UTF-8 without NUL.
func Text(text string, limit int) string {
	return strings.ReplaceAll(cut(strings.ToValidUTF8(text, "\uFFFD"), limit), "\x00", "\uFFFD")
}

// cut ends a text between two runes.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Micros is a bound of a filter in the microseconds of stores: the first one that is not before t.
func Micros(t time.Time) int64 {
	micro := t.UnixMicro()
	if t.Nanosecond()%1000 > 0 {
		micro++
	}
	return micro
}

// Cursor is the place of a row in a list that is ordered by time and then by number. It names no count, so that it survives rows that come
// and go.
type Cursor struct{ Micro, Seq int64 }

// CursorAt returns the place of a row.
func CursorAt(t time.Time, seq int64) Cursor { return Cursor{t.UnixMicro(), seq} }

// Time of the row.
func (c Cursor) Time() time.Time { return time.UnixMicro(c.Micro) }

// String returns the form that callers carry from page to page.
func (c Cursor) String() string {
	return strconv.FormatInt(c.Micro, 36) + "." + strconv.FormatInt(c.Seq, 36)
}

// ParseCursor reads what String wrote. The error wraps [ErrCursor].
func ParseCursor(s string) (c Cursor, err error) {
	at, seq, _ := strings.Cut(s, ".")
	if c.Micro, err = strconv.ParseInt(at, 36, 64); err == nil {
		c.Seq, err = strconv.ParseInt(seq, 36, 64)
	}
	if err != nil {
		return Cursor{}, fmt.Errorf("%w: %q", ErrCursor, s)
	}
	return c, nil
}

// ForStore returns a as stores keep it: its texts bounded and clean, its time in microseconds.
func (a Attempt) ForStore() Attempt {
	a.At = a.At.UTC().Truncate(time.Microsecond)
	for _, field := range []*string{&a.Tenant, &a.Endpoint, &a.Event, &a.Job, &a.Phase, &a.Error, &a.RequestID} {
		*field = Text(*field, maxText)
	}
	a.Excerpt = Text(a.Excerpt, maxStoredExcerpt)
	return a
}

const (
	maxText          = 1 << 10
	maxStoredExcerpt = 4 << 10
)
