package dlqcmd

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// shownPayload is the most bytes of a payload that show prints.
const shownPayload = 16 << 10

func (t *tool) showCommand() *cobra.Command {
	var payloadOnly bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one entry: why it died, every attempt, its headers and payload",
		Long: `Shows one entry: why it died, every known attempt, its headers, the other runs of its job, what became of its next run or what a replay
would do with it, and its payload: JSON is laid out for reading, other text stands as it is, and what is binary as a hex dump. A long
payload is cut; --payload-only writes all of it to standard output, byte for byte.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return t.show(cmd, args[0], payloadOnly) },
	}
	cmd.Flags().BoolVar(&payloadOnly, "payload-only", false, "write nothing but the payload's bytes")
	return cmd
}

func (t *tool) show(cmd *cobra.Command, id string, payloadOnly bool) (err error) {
	if payloadOnly && t.Settings.JSON {
		return cli.Refuse("--payload-only and --json exclude each other: JSON has the payload as payload_base64")
	}
	s, err := t.open(cmd, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	e, err := s.letters.get(cmd.Context(), id)
	switch {
	case errors.Is(err, dlq.ErrNotFound):
		return fmt.Errorf("%w: list --state all shows the ids, which end in the run, like %s", err, withRun(id))
	case err != nil:
		return err
	case payloadOnly:
		_, err := t.IO.Out.Write(e.Message.Body)
		return err
	}
	all, err := s.runsOf(cmd.Context(), e)
	if err != nil {
		return err
	}
	if t.Settings.JSON {
		return cli.JSON(t.IO.Out, struct {
			record
			*runs
		}{recordOf(e), all})
	}
	_, err = io.WriteString(t.IO.Out, t.call.describe(e, all))
	return err
}

// describe returns an entry as people read it.
func (c caller) describe(e dlq.Entry, runs *runs) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-14s %s\n", name, cli.OneLine(value))
		}
	}
	line("id", e.ID)
	line("job", fmt.Sprintf("%s, run %d", e.Job, e.Run))
	line("state", fmt.Sprintf("%s since %s", e.State, cli.Time(e.ChangedAt)))
	line("closed by", e.ClosedBy)
	line("next run", runs.Next.String())
	line("queue", e.Queue)
	line("kind", e.Kind)
	line("key", e.Key)
	line("destination", e.Destination)
	line("cause", string(e.Cause))
	line("fingerprint", e.Fingerprint)
	line("enqueued", cli.Time(e.EnqueuedAt))
	line("failed", fmt.Sprintf("first %s, last %s", cli.Time(e.FirstFailedAt), cli.Time(e.LastFailedAt)))
	line("attempts", fmt.Sprintf("%d, of which %d are known", e.AttemptCount, len(e.Attempts)))
	fmt.Fprintf(&b, "\nerror\n%s\n", indent(cli.Lines(e.Error)))
	if len(e.Attempts) > 0 {
		b.WriteString("\nattempts\n")
	}
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "  %d  %s  %s  %s\n", a.Number, cli.Time(a.Started), a.Ended.Sub(a.Started).Round(1e6), headline(a.Error))
	}
	if len(e.Message.Headers) > 0 {
		b.WriteString("\nheaders\n")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Message.Headers)) {
		fmt.Fprintf(&b, "  %s: %s\n", cli.OneLine(name), cli.OneLine(e.Message.Headers[name]))
	}
	b.WriteString(runs.String())
	b.WriteString("\n" + c.describePayload(e))
	return b.String()
}

func (c caller) describePayload(e dlq.Entry) string {
	body := e.Message.Body
	if e.State == dlq.StatePurged {
		return "payload: gone, since the entry was purged\n"
	}
	shown, note, kind := body, "", ""
	if laidOut, ok := layOut(body); ok {
		shown, kind = laidOut, " of JSON, laid out for reading"
	} else if len(body) > shownPayload {
		shown, note = body[:shownPayload], fmt.Sprintf("  ... cut here; all of it: %s show %s --payload-only\n", c, cli.OneLine(e.ID))
		for len(shown) > shownPayload-utf8.UTFMax && !utf8.Valid(shown) {
			shown = shown[:len(shown)-1] // not in the middle of a letter
		}
	}
	text := indent(string(shown)) + "\n"
	if !readable(shown) {
		text = hex.Dump(shown)
	}
	if len(body) == 0 {
		text = ""
	}
	return fmt.Sprintf("payload, %d bytes%s\n%s%s", len(body), kind, text, note)
}

// layOut indents JSON objects and arrays that are short enough to be shown whole. Numbers and strings stay as they are written.
func layOut(body []byte) ([]byte, bool) {
	trimmed := bytes.TrimSpace(body)
	if len(body) > shownPayload || len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' || !readable(trimmed) {
		return nil, false
	}
	var b bytes.Buffer
	if err := json.Indent(&b, trimmed, "", "  "); err != nil || b.Len() > 4*shownPayload {
		return nil, false
	}
	return b.Bytes(), true
}

// readable reports whether data is text that is shown as it is.
func readable(data []byte) bool {
	if !utf8.Valid(data) {
		return false
	}
	for _, r := range string(data) {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			return false
		}
	}
	return true
}

// withRun returns id as an entry's id: a job's own lacks the run.
func withRun(id string) string {
	if _, err := strconv.ParseUint(id[strings.LastIndexByte(id, '.')+1:], 10, 31); err == nil && strings.Contains(id, ".") {
		return id
	}
	return id + ".0"
}

// headline returns the first line of an error: a panic's stack is shown once, not for each attempt.
func headline(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return cli.OneLine(first)
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
