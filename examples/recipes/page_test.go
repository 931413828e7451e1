package recipes

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/internal/program/config"
)

var fence = regexp.MustCompile("(?ms)^```(go|yaml)\n(.*?)^```$")

// Each snippet of docs/recipes.md is a piece of a file that is compiled, or loaded, here.
func TestPageQuotesTheCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := fence.FindAllStringSubmatch(string(page), -1)
	if len(snippets) < 10 {
		t.Fatalf("%d snippets: the page was not understood", len(snippets))
	}
	for _, s := range snippets {
		if !quoted(t, "*."+s[1], s[2]) {
			t.Errorf("docs/recipes.md has a snippet that is in no file of examples/recipes:\n%s", s[2])
		}
	}
}

func quoted(t *testing.T, files, snippet string) bool {
	t.Helper()
	names, err := filepath.Glob(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains("\n"+string(source), "\n"+snippet) {
			return true
		}
	}
	return false
}

// The configurations of the page are accepted.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.yaml")
	if err != nil || len(names) != 2 {
		t.Fatalf("files %v, %v", names, err)
	}
	for _, name := range names {
		var env []string
		if name == "deploy.yaml" {
			env = append(env, "CAISSON_ADMIN_PASSWORD=correct-horse")
		}
		if _, warnings, err := config.Load(config.Sources{File: name, Env: env}); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %v", name, err, warnings)
		}
	}
}
