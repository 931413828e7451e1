package postgres

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/condition"
)

// where is the condition of a filter and its arguments.
type where struct {
	terms []string
	args  []any
}

// arg returns the placeholder of an argument of the SQL type given.
func (w *where) arg(value any, sqlType string) string {
	w.args = append(w.args, value)
	return "$" + strconv.Itoa(len(w.args)) + "::" + sqlType
}

func (w *where) add(term string) { w.terms = append(w.terms, term) }

// sql returns the whole clause. There is always a term: the states.
func (w *where) sql() string { return " WHERE " + strings.Join(w.terms, " AND ") }

// with returns a copy with more terms; adding to it does not change w.
func (w *where) with(terms ...string) *where {
	return &where{terms: append(slices.Clone(w.terms), terms...), args: slices.Clone(w.args)}
}

// matching returns the condition of f, restricted to the states in only if there are any, and to entries for which the terms of also hold.
func (s *Store) matching(ctx context.Context, f dlq.Filter, only []dlq.State, also ...string) (*where, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	w := &where{}
	w.add(condition.States(f, only))
	if len(f.IDs) > 0 {
		ids := make([][]byte, len(f.IDs))
		for i, id := range f.IDs {
			ids[i] = []byte(id)
		}
		w.add("d.id = ANY (" + w.arg(ids, "bytea[]") + ")")
	}
	if f.Job != "" {
		// Ids begin with the job and a dot: the index on ids finds them. A slash is the byte after a dot.
		w.add("d.id >= " + w.arg([]byte(f.Job+"."), "bytea") + " AND d.id < " + w.arg([]byte(f.Job+"/"), "bytea") +
			" AND d.job = " + w.arg([]byte(f.Job), "bytea"))
	}
	for column, value := range condition.Columns(f) {
		w.add("d." + column + " = " + w.arg([]byte(value), "bytea"))
	}
	w.times(f)
	if f.Text != "" {
		text := strings.ReplaceAll(strings.ToValidUTF8(f.Text, "\uFFFD"), "\x00", "\uFFFD")
		w.add(`strpos(lower(d.error COLLATE "C"), lower(` + w.arg(text, "text") + ` COLLATE "C")) > 0`)
	}
	for _, term := range also {
		w.add(term)
	}
	if len(f.JSON) > 0 {
		return w, s.addJSON(ctx, w, f.JSON)
	}
	return w, nil
}

// times adds the bounds of StoredAt, which has microseconds: a bound between two of them is rounded up, as if times were exact.
func (w *where) times(f dlq.Filter) {
	const micro = 1000
	if !f.Since.IsZero() {
		w.add("d.stored_at >= " + w.arg(f.Since.Add(micro-1).Truncate(micro), "timestamptz"))
	}
	if !f.Until.IsZero() {
		w.add("d.stored_at < " + w.arg(f.Until.Add(micro-1).Truncate(micro), "timestamptz"))
	}
}
