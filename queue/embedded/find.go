package embedded

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
	"github.com/caisson-go/caisson/queue/internal/headers"
)

const (
	// findChunk is how many messages are looked at in one read, so that none holds the write-ahead log for long.
	findChunk = 5000
	// mostAhead is how far the line before a message is counted.
	mostAhead = 100_000
)

const (
	sqlChunkEnd = `SELECT count(*), coalesce(max(id), 0) FROM (SELECT id FROM messages WHERE id > ? ORDER BY id LIMIT ?+0)`
	// sqlFind ends in a condition for each text.
	sqlFind = `SELECT m.id, q.name, m.queue, m.due, m.leased, m.deliveries, m.attempts, m.enqueued, m.headers
		FROM messages m JOIN queues q ON q.id = m.queue WHERE m.id > ? AND m.id <= ? AND (`
	sqlHolds    = `instr(m.headers, ?) > 0`
	sqlFindByID = `SELECT m.id, q.name, m.queue, m.due, m.leased, m.deliveries, m.attempts, m.enqueued, m.headers
		FROM messages m JOIN queues q ON q.id = m.queue WHERE m.id = ? AND q.name = ?`
	sqlAhead = `SELECT count(*) FROM (SELECT 1 FROM messages WHERE queue = ? AND (due, leased, id) < (?, ?, ?) LIMIT ?+0)`
)

var _ inspect.Finder = (*Broker)(nil)

// Find implements [inspect.Finder]. It reads headers only: some microseconds a message. Ids and keys that a foreign producer has escaped
// beyond need (a letter as \u0061) are not found.
func (b *Broker) Find(ctx context.Context, texts []string, limit int) (inspect.Search, error) {
	if b.isClosed() {
		return inspect.Search{}, queue.ErrClosed
	}
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	s := search{texts: texts, seen: map[int64]bool{}}
	if len(texts) == 0 {
		return s.Search, nil
	}
	for _, text := range texts {
		if err := b.findForeign(ctx, &s, text); err != nil {
			return inspect.Search{}, fmt.Errorf("find %q: %w", text, translate(err))
		}
	}
	for s.Looked < limit && len(s.Locations) < inspect.MaxFound && !s.Complete {
		if err := ctx.Err(); err != nil {
			return inspect.Search{}, err
		}
		if err := b.file.Read(ctx, func(tx *sqlitefile.Tx) error { return s.chunk(tx, min(findChunk, limit-s.Looked)) }); err != nil {
			return inspect.Search{}, fmt.Errorf("find %q: %w", texts, translate(err))
		}
	}
	s.Now = time.Now()
	return s.Search, nil
}

// findForeign finds a message without an envelope: its job is called by queue and broker's id.
func (b *Broker) findForeign(ctx context.Context, s *search, text string) error {
	name, id, ok := cutLast(text, ":")
	n, err := strconv.ParseInt(id, 10, 64)
	if !ok || err != nil {
		return nil //nolint:nilerr // not such a name
	}
	return b.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		return s.rows(tx, sqlFindByID, []any{n, name}, func(inspect.Location) bool { return true })
	})
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+len(sep):], true
}

// search is one Find under way.
type search struct {
	inspect.Search
	texts []string
	last  int64 // the newest message looked at
	seen  map[int64]bool
}

// chunk looks at the next n messages.
func (s *search) chunk(tx *sqlitefile.Tx, n int) error {
	var count int
	var last int64
	if err := tx.QueryRow(sqlChunkEnd, []any{s.last, n}, &count, &last); err != nil {
		return err
	}
	if s.Complete = count < n; count == 0 {
		return nil
	}
	args := []any{s.last, last}
	for _, text := range s.texts {
		args = append(args, []byte(needle(text)))
	}
	statement := sqlFind + strings.Repeat(sqlHolds+" OR ", len(s.texts)-1) + sqlHolds + `) ORDER BY m.id`
	matches := func(p inspect.Location) bool {
		return p.Envelope.ID != "" && slices.ContainsFunc(s.texts, func(text string) bool { return p.Envelope.ID == text || p.Envelope.Key == text })
	}
	if err := s.rows(tx, statement, args, matches); err != nil {
		return err
	}
	s.last = last
	s.Looked += count
	return nil
}

// foundRow is a message that may be one of those looked for.
type foundRow struct {
	id, queue, due, leased int64
	place                  inspect.Location
}

// rows adds the messages of one statement that match.
func (s *search) rows(tx *sqlitefile.Tx, statement string, args []any, matches func(inspect.Location) bool) error {
	rows, err := tx.Query(statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var found []foundRow
	for rows.Next() {
		var r foundRow
		var enqueued int64
		var head []byte
		err := rows.Scan(&r.id, &r.place.Queue, &r.queue, &r.due, &r.leased, &r.place.Deliveries, &r.place.Attempts, &enqueued, &head)
		if err != nil {
			return err
		}
		known, _ := headers.Decode(head) // damaged ones make a message without an envelope
		m := queue.Message{Headers: known}
		if env, err := m.Envelope(); err == nil {
			r.place.Envelope = env
		}
		if s.seen[r.id] || !matches(r.place) {
			continue
		}
		s.seen[r.id] = true
		r.place.ID, r.place.EnqueuedAt = strconv.FormatInt(r.id, 10), time.UnixMilli(enqueued)
		found = append(found, r)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, r := range found {
		if len(s.Locations) == inspect.MaxFound {
			s.Complete = false
			break
		}
		if err := r.locate(tx, floorMilli(time.Now())); err != nil {
			return err
		}
		s.Locations = append(s.Locations, r.place)
	}
	return nil
}

// locate says whether the message can be received, and after how many others.
func (r *foundRow) locate(tx *sqlitefile.Tx, now int64) error {
	r.place.Due = time.UnixMilli(r.due)
	switch {
	case r.due > now && r.leased != 0:
		r.place.State = inspect.StateLeased
	case r.due > now:
		r.place.State = inspect.StateDelayed
	default:
		r.place.State = inspect.StateReady
		var ahead int64
		if err := tx.QueryRow(sqlAhead, []any{r.queue, r.due, r.leased, r.id, mostAhead + 1}, &ahead); err != nil {
			return err
		}
		if ahead <= mostAhead {
			r.place.Ahead = queue.CountOf(ahead)
		}
	}
	return nil
}

// needle returns what every JSON writer writes of a string: all of it in quotes, or the longest part that needs no escape. It narrows down where to
// look: what is found is read and compared.
func needle(text string) string {
	parts := strings.FieldsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("-_.:@ ", r)
	})
	switch {
	case len(parts) == 0:
		return ""
	case parts[0] == text:
		return `"` + text + `"`
	}
	return slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
}
