package sqlite

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/condition"
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
	if err := f.Validate(); err != nil {
		return nil, err
	}
	w := &where{}
	w.add(condition.States(f, only))
	if len(f.IDs) > 0 {
		ids, err := json.Marshal(f.IDs)
		if err != nil {
			return nil, fmt.Errorf("filter: ids: %w", err)
		}
		w.add("d.id IN (SELECT value FROM json_each(?))", string(ids))
	}
	if f.Job != "" {
		// Ids begin with the job and a dot: the index on ids finds them. A slash is the byte after a dot.
		w.add("d.id >= ? AND d.id < ? AND d.job = ?", f.Job+".", f.Job+"/", f.Job)
	}
	for column, value := range condition.Columns(f) {
		w.add("d."+column+" = ?", value)
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
	if len(f.JSON) > 0 {
		text, err := json.Marshal(f.JSON)
		if err != nil {
			return nil, fmt.Errorf("filter: JSON: %w", err)
		}
		w.add("EXISTS (SELECT 1 FROM caisson_dead_messages m WHERE m.seq = d.seq AND caisson_json_matches(m.body, ?))", string(text))
	}
	return w, nil
}

// ceilMicro rounds up, so that a bound between two microseconds selects as if times were exact.
func ceilMicro(t time.Time) int64 { return t.Add(time.Microsecond - 1).UnixMicro() }
