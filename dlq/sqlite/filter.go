package sqlite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq"
)

// where is the condition of a filter and its arguments.
type where struct {
	terms []string
	args  []any
}

func (w *where) add(term string, args ...any) {
	w.terms = append(w.terms, term)
	w.args = append(w.args, args...)
}

// sql returns the whole clause. There is always a term: the states.
func (w *where) sql() string { return " WHERE " + strings.Join(w.terms, " AND ") }

// matching returns the condition of f, restricted to the states in only if there are any.
func matching(f dlq.Filter, only ...dlq.State) (*where, error) {
	w := &where{}
	if err := w.states(f, only); err != nil {
		return nil, err
	}
	if len(f.IDs) > 0 {
		ids, err := json.Marshal(f.IDs)
		if err != nil {
			return nil, fmt.Errorf("filter: ids: %w", err)
		}
		w.add("d.id IN (SELECT value FROM json_each(?))", string(ids))
	}
	for _, c := range []struct{ column, value string }{
		{"queue", f.Queue},
		{"kind", f.Kind},
		{"destination", f.Destination},
		{"cause", string(f.Cause)},
		{"fingerprint", f.Fingerprint},
	} {
		if c.value != "" {
			w.add("d."+c.column+" = ?", c.value)
		}
	}
	if !f.Since.IsZero() {
		w.add("d.stored_at >= ?", ceilMicro(f.Since))
	}
	if !f.Until.IsZero() {
		w.add("d.stored_at < ?", ceilMicro(f.Until))
	}
	if f.Text != "" {
		w.add("instr(lower(d.error), lower(?)) > 0", f.Text)
	}
	return w, nil
}

// states adds the states as literals: the planner finds the partial indexes by them.
func (w *where) states(f dlq.Filter, only []dlq.State) error {
	var literals []string
	for _, s := range f.StatesOrDead() {
		if !slices.Contains(dlq.States(), s) {
			return fmt.Errorf("filter: state %q is unknown: use one of %v", s, dlq.States())
		}
		if len(only) == 0 || slices.Contains(only, s) {
			literals = append(literals, "'"+string(s)+"'")
		}
	}
	switch len(literals) {
	case 0:
		w.add("false")
	case 1:
		w.add("d.state = " + literals[0])
	default:
		w.add("d.state IN (" + strings.Join(literals, ", ") + ")")
	}
	return nil
}

// ceilMicro rounds up, so that a bound between two microseconds selects as if times were exact.
func ceilMicro(t time.Time) int64 { return t.Add(time.Microsecond - 1).UnixMicro() }

// cursor is the place of an entry in a list.
type cursor struct{ storedAt, seq int64 }

func (c cursor) String() string {
	return strconv.FormatInt(c.storedAt, 36) + "-" + strconv.FormatInt(c.seq, 36)
}

func parseCursor(s string) (c cursor, err error) {
	at, seq, _ := strings.Cut(s, "-")
	if c.storedAt, err = strconv.ParseInt(at, 36, 64); err == nil {
		c.seq, err = strconv.ParseInt(seq, 36, 64)
	}
	if err != nil {
		return cursor{}, fmt.Errorf("cursor %q is not one that List returned", s)
	}
	return c, nil
}
