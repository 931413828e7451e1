package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
)

// tree is a program with one command that returns err.
func tree(err error) *cobra.Command {
	var settings cli.Settings
	do := &cobra.Command{Use: "do THING", Args: cli.Args(cobra.MaximumNArgs(1)), RunE: func(*cobra.Command, []string) error { return err }}
	root := cli.Group(&cobra.Command{Use: "prog"}, do, cli.Group(&cobra.Command{Use: "things"}, &cobra.Command{Use: "show", Run: func(*cobra.Command, []string) {}}))
	settings.Register(root)
	return root
}

func run(ctx context.Context, err error, args ...string) (cli.Code, string) {
	var out, errs strings.Builder
	code := cli.Run(ctx, tree(err), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
	return code, errs.String()
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	plain := errors.New("broken")
	for _, tt := range []struct {
		err  error
		want cli.Code
		text string
	}{
		{nil, cli.OK, ""},
		{plain, cli.Failure, "prog: broken\n"},
		{cli.Refuse("bad %s", "flag"), cli.Usage, "prog: bad flag\n"},
		{fmt.Errorf("while stopping: %w", cli.Fail(cli.Abandoned, plain)), cli.Abandoned, "prog: while stopping: broken\n"},
		{cli.Fail(cli.Partial, nil), cli.Partial, ""},
		{errors.New("a\x1b[31m\nb"), cli.Failure, "prog: a\\x1b[31m\nb\n"},
	} {
		if code, text := run(t.Context(), tt.err, "do"); code != tt.want || text != tt.text {
			t.Errorf("%v: code %d, stderr %q; want %d, %q", tt.err, code, text, tt.want, tt.text)
		}
	}
}

func TestInterruptIsNoFailure(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _ := run(ctx, fmt.Errorf("list: %w", context.Canceled), "do"); code != cli.Interrupted {
		t.Errorf("code %d after an interrupt, want %d", code, cli.Interrupted)
	}
	if code, _ := run(t.Context(), context.Canceled, "do"); code != cli.Failure {
		t.Errorf("code %d for a cancelled part of the work, want %d", code, cli.Failure)
	}
}

func TestErrorsAsJSON(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"do", "--json"}, {"do", "--nope", "--json"}, {"nope", "--json"}, {"do", "--json=true"}, {"--json=1", "nope"}} {
		_, text := run(t.Context(), errors.New("broken <&>"), args...)
		var failure struct {
			Error    string
			ExitCode cli.Code `json:"exit_code"`
		}
		if err := json.Unmarshal([]byte(text), &failure); err != nil || failure.Error == "" || failure.ExitCode == 0 {
			t.Errorf("%v: %v in %q", args, err, text)
		}
	}
	for _, args := range [][]string{{"do"}, {"do", "--json=false"}, {"do", "x", "--", "--json"}} {
		if _, text := run(t.Context(), errors.New("broken"), args...); !strings.HasPrefix(text, "prog: ") {
			t.Errorf("%v: %q", args, text)
		}
	}
}

func TestMistakesAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, want string }{
		{"", "a command is missing"},
		{"d", `unknown command "d" for "prog": did you mean do?`},
		{"things", "a command is missing"},
		{"things shwo", "did you mean show?"},
		{"do a b", "usage: prog do THING"},
		{"do --jsn", "did you mean --json?"},
		{"do --zzzzzzzz", "unknown flag: --zzzzzzzz (see prog do --help)"},
		{"do --config", "flag needs an argument"},
	} {
		if code, text := run(t.Context(), nil, strings.Fields(tt.line)...); code != cli.Usage || !strings.Contains(text, tt.want) {
			t.Errorf("%q: code %d, %q; want %q", tt.line, code, text, tt.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":       "plain",
		"grüße 日本 🙂":  "grüße 日本 🙂",
		"a\nb\tc":     `a\nb\tc`,
		"\x1b[2J":     `\x1b[2J`,
		"\xff\xfe":    `\xff\xfe`,
		"\u202egnp":   `\u202egnp`, // right-to-left override
		"a\u0000b":    `a\x00b`,
		"\uFFFD fine": "\uFFFD fine",
	} {
		if got := cli.OneLine(in); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", in, got, want)
		}
	}
	if got := cli.Lines("a\n\tb\r\x1b"); got != "a\n\tb\\r\\x1b" {
		t.Errorf("Lines: %q", got)
	}
	if got := cli.Cut("äöü", 2); got != "ä…" {
		t.Errorf("Cut: %q", got)
	}
}

func TestParseWhen(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		text      string
		direction int
		want      time.Time
	}{
		{"2h", -1, now.Add(-2 * time.Hour)},
		{"1d12h", 1, now.Add(36 * time.Hour)},
		{"2031-05-01T14:00:00+02:00", 1, now},
		{"30", 1, time.Time{}},
		{"-2h", -1, time.Time{}},
		{"yesterday", -1, time.Time{}},
	} {
		got, err := cli.ParseWhen(tt.text, now, tt.direction)
		if !got.Equal(tt.want) || (err == nil) == tt.want.IsZero() {
			t.Errorf("ParseWhen(%q, %d) = %v, %v; want %v", tt.text, tt.direction, got, err, tt.want)
		}
	}
}
