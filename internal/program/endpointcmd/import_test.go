package endpointcmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
)

const lines = `{"id":"a","url":"https://example.com/a","events":["x.*"]}

{"id":"b","url":"https://example.com/b","rate":2}
`

const list = `# two endpoints
- id: a
  url: https://example.com/a
  rate: 7
- id: c
  url: https://example.com/c
  headers: {X-Team: blue}
`

// JSON lines and YAML are taken alike; --update changes what is there and leaves what a line leaves out.
func TestImport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if out := r.runWith(lines, "endpoints", "import", "-", "--secrets-to", filepath.Join(r.dir, "made")).ok(); !strings.HasPrefix(out, "added a (revision ") || strings.Count(out, "added") != 2 {
		t.Errorf("printed %q", out)
	}
	file := r.write("list.yaml", list)
	r.run("endpoints", "import", file).fails(cli.Usage, `line 2: endpoint "a" exists: add --update to change it`)
	out := r.run("endpoints", "import", file, "--update", "--secrets-to", filepath.Join(r.dir, "more")).ok()
	if !strings.Contains(out, "changed a") || !strings.Contains(out, "added c") {
		t.Errorf("printed %q", out)
	}
	var a, c webhookapi.Endpoint
	r.run("endpoints", "show", "a", "--json").into(&a)
	r.run("endpoints", "show", "c", "--json").into(&c)
	if a.Rate != 7 || len(a.Events) != 1 || len(c.Headers) != 1 {
		t.Errorf("a %+v\nc %+v", a, c)
	}
	if got := r.runWith(`{"id":"d","url":"https://example.com/d"}`, "endpoints", "import", "-", "--json").ok(); !strings.Contains(got, `"secret":"whsec_`) {
		t.Errorf("--json printed %q", got)
	}
}

// A file with a fault changes nothing, and every fault is told with its line.
func TestImportIsCheckedWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bad := `{"id":"a","url":"https://example.com/a"}
{"id":"b","url":"https://example.com/b","colour":"red"}
{"id":"a","url":"https://example.com/a"}
not json
{"id":"c"}
{"id":"there","url":"https://example.com/"}
`
	r.run("endpoints", "add", "there", "https://example.com/").ok()
	got := r.runWith(bad, "endpoints", "import", "-")
	for _, want := range []string{"line 2: colour: is unknown", `line 3: endpoint "a" is in line 1, too`, "line 4: the body is not JSON", "line 5: url", `line 6: endpoint "there" exists: add --update`} {
		got.fails(cli.Usage, want)
	}
	if strings.Contains(got.err, "endpoints edit") {
		t.Errorf("two ways out: %s", got.err)
	}
	r.run("endpoints", "delete", "there", "--yes").ok()
	r.runWith(`{"id":"a","url":"https://example.com/a"}`+"\n"+`{"id":"c","url":"ftp://example.com"}`, "endpoints", "import", "-").fails(cli.Usage, "line 2: ")
	for text, want := range map[string]string{
		"- id: a\n  url: [": "neither JSON lines nor YAML", "a: 1": "must be a list", "- just text": "line 1: is no map", "": "no endpoint in the file",
		"- id: a\n  id: b\n": "line 1: is no map of an endpoint's fields, or has one twice",
	} {
		r.runWith(text, "endpoints", "import", "-").fails(cli.Usage, want)
	}
	if out := r.run("endpoints", "list", "--json"); out.out != "" {
		t.Errorf("something was added: %s", out.out)
	}
	r.runWith(`{"id":"a","url":"https://example.com/a"}`, "endpoints", "import", "-", "--json").ok()
	r.runWith(`{"id":"a","secret":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}`, "endpoints", "import", "-", "--update").fails(cli.Usage, "rotate-secret")
}

// A secret that is made has somebody who sees it: without a place for it nothing is added.
func TestImportKeepsMadeSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runWith(lines, "endpoints", "import", "-").fails(cli.Usage, "2 new endpoints without a secret")
	taken := r.write("taken", "")
	r.runWith(lines, "endpoints", "import", "-", "--secrets-to", taken).fails(cli.Usage, "exists")
	if out := r.run("endpoints", "list", "--json"); out.out != "" {
		t.Errorf("something was added: %s", out.out)
	}
	const own = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	r.runWith(`{"id":"own","url":"https://example.com/","secret":"`+own+`"}`, "endpoints", "import", "-").ok()
	made := filepath.Join(r.dir, "made")
	r.runWith(lines+`{"id":"own","rate":1}`, "endpoints", "import", "-", "--update", "--secrets-to", made).ok()
	info, err := os.Stat(made)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	text, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); strings.Count(got, `"secret":"whsec_`) != 2 || !strings.HasPrefix(got, `{"id":"a",`) || strings.Contains(got, own) {
		t.Errorf("kept %s", got)
	}
}
