package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

// modulePackages lists the module as the go command sees it.
func modulePackages(t *testing.T) []Package {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var pkgs []Package
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read go list: %v", err)
		}
		pkgs = append(pkgs, Package{Path: strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, Module), "/"), Imports: p.Imports})
	}
	if len(pkgs) < 3 {
		t.Fatalf("go list found %d packages: it ran in the wrong place", len(pkgs))
	}
	return pkgs
}

// dir is a package's directory.
func (p Package) dir() string { return filepath.Join(root, filepath.FromSlash(p.Path)) }
