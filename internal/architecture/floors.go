package architecture

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Module is the module's path.
const Module = "github.com/caisson-go/caisson"

// Floor is how high a package stands: it may import lower floors only.
type Floor int

// The floors, lowest first.
const (
	// Policies and ports: the standard library and golang.org/x/{sync,time}.
	Policies Floor = iota
	// Engine is what the packages with tables share: the one owner of a SQLite file; pools, tables and generations in PostgreSQL.
	Engine
	// Drivers and stores.
	Drivers
	// Flow is the worker.
	Flow
	// Kinds that come with the project.
	Kinds
	// Programs: binaries, what they are assembled from, and examples.
	Programs
	// Outside are packages that only tests import, or nothing does.
	Outside
)

// Place returns the floor of a package, named by its path inside the module, and whether the package has a place.
func Place(pkg string) (Floor, bool) {
	switch pkg {
	case "queue", "schedule", "pools", "idempotency":
		return Policies, true
	case "internal/sqlitefile", "internal/pgdb", "migrations":
		return Engine, true
	case "dlq", "fleet":
		return Drivers, true
	case "worker":
		return Flow, true
	case "webhook":
		return Kinds, true
	case "worker/app", "internal/config", "internal/admin", "internal/stack", "internal/cli", "internal/faultlab",
		"internal/endpointcmd", "internal/webhooks", "webhook/api":
		return Programs, true
	case "internal/architecture", "internal/testserver":
		return Outside, true
	}
	if parent, _, ok := strings.Cut(pkg, "/internal/"); ok && parent != "" {
		return Place(parent)
	}
	switch top, _, _ := strings.Cut(pkg, "/"); top {
	case "queue", "idempotency", "dlq", "fleet":
		return Drivers, true
	case "pools", "schedule":
		return Policies, true
	case "worker":
		if strings.HasPrefix(pkg, "worker/app/") {
			return Programs, true
		}
		return Flow, true
	case "webhook":
		return Kinds, true
	case "cmd", "examples":
		return Programs, true
	}
	return 0, false
}

// Package is one package as the go command lists it.
type Package struct {
	// Path is the path inside the module; "" for the module's root.
	Path string
	// Imports are full import paths of the non-test files.
	Imports []string
}

// Violations returns what is wrong with the imports of pkgs, one line each, in the order of pkgs.
func Violations(pkgs []Package) []string {
	var found []string
	for _, p := range pkgs {
		floor, ok := Place(p.Path)
		if !ok {
			found = append(found, fmt.Sprintf("%s has no floor: give it a row in architecture.Place and docs/architecture.md", p.Path))
			continue
		}
		for _, imp := range p.Imports {
			if why := refuse(p.Path, floor, imp); why != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", p.Path, strings.TrimPrefix(imp, Module+"/"), why))
			}
		}
	}
	return found
}

// refuse says why pkg may not import imp, or "".
func refuse(pkg string, floor Floor, imp string) string {
	own, inModule := strings.CutPrefix(imp, Module+"/")
	if !inModule {
		return refuseForeign(pkg, floor, imp)
	}
	target, ok := Place(own)
	switch {
	case !ok:
		return "it has no floor"
	case support(own) && !support(pkg):
		return "only tests may import test support"
	case pkg == "worker" && target == Drivers && own != "dlq":
		return "worker knows no driver and no store, only their ports"
	case strings.HasPrefix(pkg, own+"/") || strings.HasPrefix(own, pkg+"/internal/"):
		return "" // its parent, or its own internal part
	case target == floor && shares(pkg, own):
		return ""
	case target < floor, target == floor && (floor == Programs || floor == Outside):
		return ""
	case target == floor:
		return "sideways on one floor"
	}
	return "upwards"
}

// shares reports whether own is an internal part of a package under which pkg lies.
func shares(pkg, own string) bool {
	parent, _, internal := strings.Cut(own, "/internal/")
	return internal && strings.HasPrefix(pkg, parent+"/")
}

// refuseForeign says why pkg may not import a package of another module or of the standard library, or "".
func refuseForeign(pkg string, floor Floor, imp string) string {
	if imp == "database/sql" && pkg == "worker" {
		return "worker knows no SQL"
	}
	if floor != Policies || standard(imp) || support(pkg) {
		return ""
	}
	for _, allowed := range []string{"golang.org/x/sync", "golang.org/x/time"} {
		if imp == allowed || strings.HasPrefix(imp, allowed+"/") {
			return ""
		}
	}
	return "floor 0 uses the standard library and golang.org/x/{sync,time} only"
}

// support reports whether pkg exists for tests.
func support(pkg string) bool {
	return slices.Contains([]string{"queuetest", "storetest", "jobtest", "dlqtest", "fleettest", "testserver", "faultlab"}, path.Base(pkg))
}

// standard reports whether imp belongs to the standard library: its first element has no dot.
func standard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}
