package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// JSON prints v as one line, with <, > and & as they are.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// Table prints rows in columns below their headings. Each cell is made one line.
func Table(w io.Writer, headings []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{headings}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = OneLine(cell)
		}
		if _, err := fmt.Fprintln(t, strings.Join(cells, "\t")); err != nil {
			return fmt.Errorf("print table: %w", err)
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

// OneLine returns text with everything escaped that could move a cursor, end a line, or change how text is shown.
func OneLine(text string) string { return escape(text, false) }

// Lines returns text with everything escaped that OneLine escapes, line ends and tabs excepted.
func Lines(text string) string { return escape(text, true) }

func escape(text string, lines bool) string {
	clean := true
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case lines && (r == '\n' || r == '\t'), unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// Cut shortens text to at most limit runes and marks the cut.
func Cut(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// Time prints t to the second in UTC; "-" for none.
func Time(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// OrDash returns text, or "-" for none, so that a table has no holes.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Count says how many of what noun names there are: 1 job, 2 jobs, 3 queries.
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Ordinal is a place in a line, in words while it is near.
func Ordinal(n int) string {
	words := []string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"}
	if n >= 1 && n <= len(words) {
		return words[n-1]
	}
	return "at place " + strconv.Itoa(n)
}
