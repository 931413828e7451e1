package row

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-go/caisson/internal/truncate"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
)

// Same reports whether an event is the one that is kept under its id.
func Same(kept, e webhook.Event) bool {
	return kept.Type == e.Type && kept.ContentType == e.ContentType && bytes.Equal(kept.Body, e.Body)
}

// Conflict returns [webhook.ErrEventConflict] for an event that is another one than that which is kept under its id.
func Conflict(e webhook.Event) error {
	return fmt.Errorf("%w: %s of tenant %s: publish it under an id of its own", webhook.ErrEventConflict, e.ID, e.Tenant)
}

// Types are the bounds of a filter's types: what begins with prefix, or is prefix if whole. Both are zero for all.
func Types(f journal.EventFilter) (prefix string, whole bool) {
	prefix, wild := strings.CutSuffix(f.Type, "*")
	return prefix, f.Type != "" && !wild
}

// clean returns text as every database keeps it: at most limit bytes of valid UTF-8 without NUL.
func clean(text string, limit int) string {
	return strings.ReplaceAll(truncate.Cut(text, limit), "\x00", "\uFFFD")
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

// At returns the place of a row.
func At(t time.Time, seq int64) Cursor { return Cursor{t.UnixMicro(), seq} }

// Time of the row.
func (c Cursor) Time() time.Time { return time.UnixMicro(c.Micro) }

// String returns the form that callers carry from page to page.
func (c Cursor) String() string {
	return strconv.FormatInt(c.Micro, 36) + "." + strconv.FormatInt(c.Seq, 36)
}

// Parse reads what String wrote. The error wraps [journal.ErrCursor].
func Parse(s string) (c Cursor, err error) {
	at, seq, _ := strings.Cut(s, ".")
	if c.Micro, err = strconv.ParseInt(at, 36, 64); err == nil {
		c.Seq, err = strconv.ParseInt(seq, 36, 64)
	}
	if err != nil {
		return Cursor{}, fmt.Errorf("%w: %q", journal.ErrCursor, s)
	}
	return c, nil
}

// Of returns an attempt as stores keep it: its texts bounded and clean, its time in microseconds.
func Of(a journal.Attempt) journal.Attempt {
	a.At = a.At.UTC().Truncate(time.Microsecond)
	for _, field := range []*string{&a.Tenant, &a.Endpoint, &a.Event, &a.Job, &a.Phase, &a.Error, &a.RequestID} {
		*field = clean(*field, maxText)
	}
	a.Excerpt = clean(a.Excerpt, maxStoredExcerpt)
	return a
}

const (
	maxText          = 1 << 10
	maxStoredExcerpt = 4 << 10
)
