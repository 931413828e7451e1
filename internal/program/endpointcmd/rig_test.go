package endpointcmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/endpointcmd"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a program on a file of its own.
type rig struct {
	t   *testing.T
	dir string
	env []string
}

func newRig(t *testing.T, env ...string) *rig {
	t.Helper()
	dir := t.TempDir()
	return &rig{t, dir, append([]string{
		"CAISSON_EMBEDDED_PATH=" + filepath.Join(dir, "q.db"), "CAISSON_WEBHOOK_SECRET_KEY=" + endpoints.NewKey(),
		"CAISSON_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8",
	}, env...)}
}

// with returns the program with other variables, in place of those of the same name.
func (r *rig) with(env ...string) *rig {
	kept := slices.DeleteFunc(slices.Clone(r.env), func(old string) bool {
		name, _, _ := strings.Cut(old, "=")
		return slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	})
	return &rig{r.t, r.dir, append(kept, env...)}
}

// result is what one command printed.
type result struct {
	t        *testing.T
	code     cli.Code
	out, err string
}

func (r *rig) run(args ...string) result { return r.runWith("", args...) }

func (r *rig) runWith(stdin string, args ...string) result {
	r.t.Helper()
	var out, errs strings.Builder
	streams := cli.IO{In: strings.NewReader(stdin), Out: &out, Err: &errs, Env: r.env}
	p := &cli.Program{Name: "worker", IO: streams}
	root := cli.Group(&cobra.Command{Use: "worker"}, endpointcmd.Commands(p)...)
	p.Settings.Register(root)
	code := cli.Run(r.t.Context(), root, args, streams)
	return result{r.t, code, out.String(), errs.String()}
}

// ok fails the test unless the command did it all, and returns what it printed.
func (r result) ok() string {
	r.t.Helper()
	if r.code != cli.OK {
		r.t.Fatalf("exit code %d\nstdout: %s\nstderr: %s", r.code, r.out, r.err)
	}
	return r.out
}

// fails fails the test unless the command ended with the code and said that.
func (r result) fails(code cli.Code, says string) {
	r.t.Helper()
	if r.code != code || !strings.Contains(r.err, says) {
		r.t.Errorf("exit code %d, want %d and %q\nstdout: %s\nstderr: %s", r.code, code, says, r.out, r.err)
	}
}

// into reads what was printed as JSON.
func (r result) into(v any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.ok()), v); err != nil {
		r.t.Fatalf("%v\n%s", err, r.out)
	}
}

func (r *rig) write(name, text string) string {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// stack opens the file that the program works on, and closes it when do is done.
func (r *rig) stack(do func(s *backends.Set)) {
	r.t.Helper()
	cfg, _, err := config.Load(config.Sources{Env: r.env})
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := backends.OpenSoon(r.t.Context(), cfg, backends.Create)
	if err != nil {
		r.t.Fatal(err)
	}
	do(s)
	if err := s.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// log keeps calls, as workers do.
func (r *rig) log(attempts ...journal.Attempt) {
	r.t.Helper()
	r.stack(func(s *backends.Set) {
		if err := s.Journal.Log(r.t.Context(), attempts); err != nil {
			r.t.Fatal(err)
		}
	})
}
