package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/dlq/jsonmatch"
)

// addJSON adds the condition that a payload matches ms: payloads that are kept as jsonb are asked in SQL, the others are read and
// asked here.
func (s *Store) addJSON(ctx context.Context, w *where, ms []jsonmatch.Match) error {
	odd, err := s.odd(ctx, w, ms)
	if err != nil {
		return err
	}
	terms := make([]string, 0, len(ms)+1)
	terms = append(terms, "m.payload IS NOT NULL")
	for _, m := range ms {
		terms = append(terms, w.payload(m))
	}
	query := "SELECT m.seq FROM " + s.sql.in("{messages}") + " m WHERE " + strings.Join(terms, " AND ") + " OFFSET 0" // looked for once, not for each entry
	if len(odd) > 0 {
		query = "(" + query + ") UNION ALL SELECT unnest(" + w.arg(odd, "bigint[]") + ")"
	}
	w.add("d.seq IN (" + query + ")")
	return nil
}

// payload returns the condition that m.payload matches.
func (w *where) payload(m jsonmatch.Match) string {
	for _, step := range m.Path {
		if strings.Contains(step.Key, "\x00") {
			return "false" // jsonb holds no such key
		}
	}
	if m.Value == "" {
		return w.holds("m.payload", m.Path, m.Value)
	}
	if !storable([]byte(m.Value)) {
		return "false" // nor such a value
	}
	// What contains the value on its path may not match, but the index finds it.
	return "m.payload @> " + w.arg(container(m), "text") + "::jsonb AND " + w.holds("m.payload", m.Path, m.Value)
}

// container writes a document that every document which matches m contains.
func container(m jsonmatch.Match) string {
	var open, end strings.Builder
	for i := range m.Path {
		if step := m.Path[i]; step.Kind == jsonmatch.StepKey {
			key, err := json.Marshal(step.Key)
			if err != nil {
				panic(err) // a string can always be written
			}
			open.WriteString("{" + string(key) + ":")
		} else {
			open.WriteByte('[')
		}
		if m.Path[len(m.Path)-1-i].Kind == jsonmatch.StepKey {
			end.WriteByte('}')
		} else {
			end.WriteByte(']')
		}
	}
	return open.String() + m.Value + end.String()
}

// holds returns the condition that path leads from value, an expression, to what is wanted. Unlike jsonpath, the arrows never unwrap an
// array on the way.
func (w *where) holds(value string, path []jsonmatch.Step, want string) string {
	if len(path) == 0 {
		if want == "" {
			return value + " IS NOT NULL"
		}
		return value + " = " + w.arg(want, "text") + "::jsonb"
	}
	name := "e" + strconv.Itoa(len(path))
	array := " WHEN 'array' THEN "
	switch step := path[0]; step.Kind {
	case jsonmatch.StepKey:
		return w.holds("("+value+" -> "+w.arg(step.Key, "text")+")", path[1:], want)
	case jsonmatch.StepIndex:
		// A scalar alone would pass for an array of one.
		return w.holds("(SELECT CASE jsonb_typeof(v)"+array+"v -> "+strconv.Itoa(step.Index)+
			" END FROM (SELECT "+value+" AS v OFFSET 0) "+name+")", path[1:], want)
	default:
		return "EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof(" + value + ")" + array + value + " ELSE '[]' END) " + name + "(v) WHERE " +
			w.holds(name+".v", path[1:], want) + ")"
	}
}

// answers remembers which odd bodies match the last filter: a replay asks with the same one for each chunk. Bodies never
// change under a number.
type answers struct {
	mu     sync.Mutex
	filter string
	known  map[int64]bool
}

// maxAnswers bounds the memory of answers.
const maxAnswers = 1 << 20

// oddBytes is how many bytes of bodies are read at once.
const oddBytes = 16 << 20

// odd returns the numbers of entries that w selects and whose bodies are JSON which is not kept as jsonb, and match.
func (s *Store) odd(ctx context.Context, w *where, ms []jsonmatch.Match) ([]int64, error) {
	seqs, sizes, err := s.oddEntries(ctx, w.with("d.json = "+strconv.Itoa(jsonOdd)))
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	known, unknown := s.answers.get(ms, seqs)
	for from := 0; from < len(unknown); {
		to, bytes := from, 0
		for to < len(unknown) && (to == from || bytes+sizes[unknown[to]] <= oddBytes) {
			bytes += sizes[unknown[to]]
			to++
		}
		if err := s.matchBodies(ctx, unknown[from:to], ms, known); err != nil {
			return nil, err
		}
		from = to
	}
	s.answers.put(ms, known)
	matching := seqs[:0]
	for _, seq := range seqs {
		if known[seq] {
			matching = append(matching, seq)
		}
	}
	return matching, nil
}

func (s *Store) oddEntries(ctx context.Context, w *where) (seqs []int64, sizes map[int64]int, err error) {
	sizes = map[int64]int{}
	err = s.read(ctx, s.sql.in("SELECT d.seq, d.size FROM {letters} d")+w.sql(), w.args, func(rows pgx.Rows) error {
		var seq int64
		var size int
		_, err := pgx.ForEachRow(rows, []any{&seq, &size}, func() error {
			seqs = append(seqs, seq)
			sizes[seq] = size
			return nil
		})
		return err
	})
	return seqs, sizes, err
}

// matchBodies reads bodies and notes in answers which of them match.
func (s *Store) matchBodies(ctx context.Context, seqs []int64, ms []jsonmatch.Match, answers map[int64]bool) error {
	return s.read(ctx, s.sql.messages, []any{seqs}, func(rows pgx.Rows) error {
		var seq int64
		var body, encoded []byte
		_, err := pgx.ForEachRow(rows, []any{&seq, &body, &encoded}, func() error {
			answers[seq] = jsonmatch.All(body, ms)
			return nil
		})
		return err
	})
}

// get returns what is known of seqs and the others.
func (a *answers) get(ms []jsonmatch.Match, seqs []int64) (known map[int64]bool, unknown []int64) {
	filter := fmt.Sprint(ms)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.filter != filter {
		a.filter, a.known = filter, nil
	}
	known = make(map[int64]bool, len(seqs))
	for _, seq := range seqs {
		if matches, ok := a.known[seq]; ok {
			known[seq] = matches
		} else {
			unknown = append(unknown, seq)
		}
	}
	return known, unknown
}

func (a *answers) put(ms []jsonmatch.Match, answers map[int64]bool) {
	filter := fmt.Sprint(ms)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.filter != filter {
		return // another filter is asked meanwhile
	}
	if a.known == nil || len(a.known)+len(answers) > maxAnswers {
		a.known = make(map[int64]bool, len(answers))
	}
	for seq, matches := range answers {
		a.known[seq] = matches
	}
}
