package dlqcmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// listed returns the ids that list prints for args.
func listed(t *testing.T, db string, args ...string) []string {
	t.Helper()
	var page struct {
		Entries []struct{ ID string }
		Next    string
	}
	out := ok(t, call(t, append([]string{"list", "--json", "--db", db}, args...)...))
	if err := json.Unmarshal([]byte(out), &page); err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, e := range page.Entries {
		found = append(found, e.ID)
	}
	return found
}

func TestFilters(t *testing.T) {
	t.Parallel()
	db := three(t)
	ok(t, call(t, "purge", "--id", "c.0", "--yes", "--db", db))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "b.0 a.0"},
		{[]string{"--state", "all"}, "c.0 b.0 a.0"},
		{[]string{"--state", "purged"}, "c.0"},
		{[]string{"--state", "purged,dead", "--queue", "hooks"}, "c.0"},
		{[]string{"--id", "a.0,c.0"}, "a.0"},
		{[]string{"--id", "a.0\nb.0\n"}, "b.0 a.0"}, // what "$(cat ids)" gives
		{[]string{"--id", "b.0", "--id", `"a.0",nobody`}, "b.0 a.0"},
		{[]string{"--id", "\ufeffa.0, b.0\r\n"}, "b.0 a.0"},
		{[]string{"--queue", "mail"}, "b.0 a.0"},
		{[]string{"--kind", "webhook.deliver"}, ""},
		{[]string{"--destination", "shop"}, "b.0 a.0"},
		{[]string{"--cause", "rejected", "--state", "all"}, "c.0"},
		{[]string{"--text", "STATUS 503"}, "b.0"},
		{[]string{"--since", "1h"}, "b.0 a.0"},
		{[]string{"--until", "1h"}, ""},
		{[]string{"--since", "2001-01-01T00:00:00Z", "--until", "2002-01-01T00:00:00Z"}, ""},
		{[]string{"--fingerprint", dlq.FingerprintError("status 500 after 99 ms")}, "a.0"},
		{[]string{"--limit", "1"}, "b.0"},
		{[]string{"--limit", "0"}, "b.0 a.0"},
	} {
		if got := strings.Join(listed(t, db, tt.args...), " "); got != tt.want {
			t.Errorf("list %v: %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	db := three(t)
	r := call(t, "list", "--limit", "2", "--db", db)
	ok(t, r)
	_, cursor, found := strings.Cut(strings.TrimSpace(r.err), "--after ")
	if !found || strings.Count(r.out, "\n") != 3 {
		t.Fatalf("no cursor of a second page\n%s%s", r.out, r.err)
	}
	r = call(t, "list", "--limit", "2", "--after", cursor, "--db", db)
	if out := ok(t, r); !strings.Contains(out, "\na.0 ") || r.err != "" {
		t.Errorf("second page:\n%s%s", out, r.err)
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	db := three(t)
	out := ok(t, call(t, "list", "--db", db))
	for _, want := range []string{"ID   STATE  STORED", "b.0  dead", "email.send", `status 503 after 7 ms\x1b[2J` + "\n", "exhausted"} {
		if !strings.Contains(out, want) {
			t.Errorf("list has no %q:\n%s", want, out)
		}
	}
	out = ok(t, call(t, "groups", "--db", db))
	if !strings.Contains(out, "COUNT  KIND") || !strings.Contains(out, "webhook.deliver  -            rejected") {
		t.Errorf("groups:\n%s", out)
	}
	var groups struct{ Groups []dlq.Group }
	if err := json.Unmarshal([]byte(ok(t, call(t, "groups", "--json", "--db", db))), &groups); err != nil || len(groups.Groups) != 3 {
		t.Errorf("groups --json: %v, %v", groups, err)
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	db := three(t)
	for _, tt := range []struct {
		id   string
		want []string
	}{
		{"a.0", []string{
			"job            a, run 0", "attempts       2, of which 1 are known", "  1  2031-05-01T12:00:00Z  1s  status 500", "headers\n  caisson: {",
			"payload, 14 bytes of JSON, laid out for reading\n  {\n    \"to\": \"<ann>\"\n  }\n",
		}},
		{"b.0", []string{"payload, 256 bytes\n00000000  00 01 02", "  status 503 after 7 ms\\x1b[2J\n  wiped"}},
		{"c.0", []string{"key            key-c", "payload, 0 bytes\n", "cause          rejected"}},
	} {
		out := ok(t, call(t, "show", tt.id, "--db", db))
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("show %s has no %q:\n%s", tt.id, want, out)
			}
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("show %s lets an escape sequence through", tt.id)
		}
	}
	if out := ok(t, call(t, "show", "b.0", "--payload-only", "--db", db)); out != string(binary) {
		t.Errorf("--payload-only: %q", out)
	}
	for id, like := range map[string]string{"a": "like a.0\n", "a.7": "like a.7\n", "order.x": "like order.x.0\n", "7": "like 7.0\n"} {
		if r := call(t, "show", id, "--db", db); r.code != cli.Failure || !strings.Contains(r.err, like) {
			t.Errorf("show %s, which is no entry: code %d, %s, want %q", id, r.code, r.err, like)
		}
	}
}

func TestShowCutsLongPayloads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "q.db")
	long := strings.Repeat("ä", shownPayload) // two bytes each
	seed(t, open(t, path), letter(t, "long", "q", "k", []byte(long), nil))
	out := ok(t, call(t, "show", "long.0", "--db", path))
	if !strings.Contains(out, "  ... cut here") || strings.Contains(out, "�") || strings.Count(out, "ä") != shownPayload/2 {
		t.Errorf("%d letters shown, end: %s", strings.Count(out, "ä"), out[len(out)-100:])
	}
}

func TestExportIsByteExact(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "q.db")
	s := open(t, path)
	foreign := letter(t, "foreign", "q", "k", binary, func(e *dlq.Entry) {
		e.Message.Headers = map[string]string{"raw": "\xff\x00", "plain": "<&>"}
	})
	seed(t, s, letter(t, "plain", "q", "k", binary, nil), foreign)
	file := filepath.Join(t.TempDir(), "out.jsonl")
	r := call(t, "export", "--output", file, "--db", path)
	ok(t, r)
	if !strings.Contains(r.err, "exported 2 entries") {
		t.Errorf("stderr %q", r.err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), ok(t, call(t, "export", "--db", path))); diff != "" {
		t.Errorf("file and standard output differ:\n%s", diff)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	var got record
	if err := json.Unmarshal(lines[0], &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != "foreign.0" || got.Headers != nil || string(got.HeadersBase64["raw"]) != "\xff\x00" || !bytes.Equal(got.Payload, binary) {
		t.Errorf("foreign entry: %s", lines[0])
	}
	var shown record
	if err := json.Unmarshal(lines[1], &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(ok(t, call(t, "show", "plain.0", "--json", "--db", path))), &shown); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(shown.Payload, binary) || shown.Headers["caisson"] == "" || shown.ID != "plain.0" || len(shown.Attempts) != 1 {
		t.Errorf("show --json: %+v", shown)
	}
}

func TestExportLeavesNoHalfFile(t *testing.T) {
	t.Parallel()
	db, dir := three(t), t.TempDir()
	file := filepath.Join(dir, "missing", "out.jsonl")
	if r := call(t, "export", "--output", file, "--db", db); r.code != cli.Failure {
		t.Errorf("export to a missing directory: code %d", r.code)
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	// Renaming a file over a device, a pipe or a link would replace it.
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/dev/null", link); err != nil {
		t.Fatal(err)
	}
	if r := call(t, "export", "--output", link, "--db", db); r.code != cli.Usage || !strings.Contains(r.err, "redirect") {
		t.Errorf("export to what is no file: code %d, %s", r.code, r.err)
	}
	if target, err := os.Readlink(link); err != nil || target != "/dev/null" {
		t.Errorf("the link was replaced: %s, %v", target, err)
	}
	if r := call(t, "export", "--output", filepath.Join(dir, "taken"), "--db", db); r.code != cli.Usage {
		t.Errorf("export over a directory: code %d", r.code)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.partial")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	db := three(t)
	if r := call(t, "purge", "--kind", "email.send", "--db", db); r.code != cli.Usage || !strings.Contains(r.err, "--yes") {
		t.Errorf("without --yes and a terminal: code %d, %s", r.code, r.err)
	}
	if out := ok(t, call(t, "purge", "--kind", "email.send", "--dry-run", "--json", "--db", db)); out != `{"dry_run":true,"matched":2,"purged":0}`+"\n" {
		t.Errorf("dry run printed %s", out)
	}
	if got := listed(t, db); len(got) != 3 {
		t.Fatalf("something was purged unasked: %v", got)
	}
	if out := ok(t, call(t, "purge", "--kind", "email.send", "--yes", "--json", "--db", db)); out != `{"dry_run":false,"matched":2,"purged":2}`+"\n" {
		t.Errorf("purge printed %s", out)
	}
	if diff := cmp.Diff([]string{"c.0"}, listed(t, db)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if out := ok(t, call(t, "show", "a.0", "--db", db)); !strings.Contains(out, "payload: gone") {
		t.Errorf("a purged entry shows:\n%s", out)
	}
	ok(t, call(t, "purge", "--all", "--yes", "--db", db))
	if got := listed(t, db); len(got) != 0 {
		t.Errorf("left after --all: %v", got)
	}
}

func TestRefusedCommandLines(t *testing.T) {
	t.Parallel()
	db := three(t)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no command":            {nil, "a command is missing"},
		"unknown command":       {[]string{"lst"}, "did you mean list?"},
		"unknown flag":          {[]string{"list", "--knd", "x"}, "--kind?"},
		"unknown state":         {[]string{"list", "--state", "dying"}, `--state "dying": use dead, held, replayed, purged, or all`},
		"unknown cause":         {[]string{"list", "--cause", "bad-luck"}, `--cause "bad-luck": use one of exhausted`},
		"bad since":             {[]string{"list", "--since", "yesterday"}, `--since: "yesterday": write a duration like 2h`},
		"empty span":            {[]string{"list", "--since", "1h", "--until", "2h"}, "nothing can match"},
		"negative limit":        {[]string{"list", "--limit", "-1"}, "must not be negative"},
		"show of nothing":       {[]string{"show"}, "usage: dlq-replay show ID"},
		"json of raw":           {[]string{"show", "a.0", "--json", "--payload-only"}, "exclude each other"},
		"purge of everything":   {[]string{"purge", "--yes"}, "nothing was selected"},
		"purge all and some":    {[]string{"purge", "--yes", "--all", "--kind", "k"}, "exclude each other"},
		"replay of everything":  {[]string{"replay", "--yes"}, "nothing was selected"},
		"replay without --yes":  {[]string{"replay", "--all"}, "--yes"},
		"replay negative rate":  {[]string{"replay", "--all", "--yes", "--rate", "-1"}, "--rate"},
		"replay of the purged":  {[]string{"replay", "--all", "--yes", "--state", "purged"}, "--state"},
		"canary without number": {[]string{"replay", "--all", "--yes", "--max-fail", "20%"}, "--canary"},
		"replay rate NaN":       {[]string{"replay", "--all", "--yes", "--rate", "NaN"}, "--rate"},
		"replay endless rate":   {[]string{"replay", "--all", "--yes", "--rate", "Inf"}, "--rate"},
		"purge of no id":        {[]string{"purge", "--yes", "--kind", "email.send", "--id", ""}, "--id"},
		"purge of half an id":   {[]string{"purge", "--yes", "--id", "a.0,"}, "--id"},
		"purge of a blank line": {[]string{"purge", "--yes", "--id", "\n"}, "--id"},
		"half a quote":          {[]string{"list", "--id", `a"b.0`}, "is written in quotes"},
		"page from nowhere":     {[]string{"list", "--after", "here"}, `--after: "here" is no cursor`},
		"records from nowhere":  {[]string{"audit", "--after", "-"}, `--after: "-" is no cursor`},
		"purge until no time":   {[]string{"purge", "--yes", "--until", "0001-01-01T00:00:00Z"}, "--until"},
		"purge of no kind":      {[]string{"purge", "--yes", "--kind", "", "--queue", "default"}, "--kind"},
		"list of no state":      {[]string{"list", "--state", ""}, "--state"},
		"replay to no queue":    {[]string{"replay", "--all", "--yes", "--to", ""}, "--to"},
		"bad share":             {[]string{"replay", "--all", "--yes", "--canary", "5", "--max-fail", "a lot"}, "--max-fail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := tt.args
			if len(args) > 0 {
				args = append(args, "--db", db)
			}
			if r := call(t, args...); r.code != cli.Usage || !strings.Contains(r.err, tt.want) || r.out != "" {
				t.Errorf("code %d, stdout %q, stderr:\n%s\nwant %q", r.code, r.out, r.err, tt.want)
			}
		})
	}
	if r := call(t, "list", "--db", filepath.Join(t.TempDir(), "none.db")); r.code != cli.Failure || !strings.Contains(r.err, "none.db") {
		t.Errorf("missing file: code %d, %s", r.code, r.err)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	if out := ok(t, call(t, "--help")); !strings.Contains(out, "Exit codes:") || !strings.Contains(out, "CAISSON_CONFIG") {
		t.Errorf("help:\n%s", out)
	}
	filters := []string{"--id", "--queue", "--kind", "--destination", "--cause", "--fingerprint", "--since", "--until", "--text", "--state"}
	for _, command := range []string{"list", "groups", "replay", "purge", "export"} {
		out := ok(t, call(t, command, "--help"))
		for _, flag := range filters {
			if !strings.Contains(out, flag+" ") {
				t.Errorf("%s has no %s:\n%s", command, flag, out)
			}
		}
	}
}
