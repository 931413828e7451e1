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
	// Stamps are what policies count time with, and what ports share with the worker.
	Stamps Floor = iota
	// Breakers own the words that other policies share, such as Outcome.
	Breakers
	// Limits are policies by themselves.
	Limits
	// Policies and ports: the standard library and golang.org/x/{sync,time}.
	Policies
	// Engines is what stores share: the one owner of a SQLite file; pools, tables and generations in PostgreSQL.
	Engines
	// Letters is the port of dead letters, the audit log, and the replay that works on both.
	Letters
	// Drivers and stores below their port, and what workers tell each other.
	Drivers
	// Flow is the worker.
	Flow
	// Webhooks is the kind of job that comes with the project.
	Webhooks
	// Registry keeps webhook endpoints, events and attempts.
	Registry
	// API serves them over HTTP.
	API
	// PublicAPI is the part of it that other programs build in.
	PublicAPI
	// Settings are read here.
	Settings
	// Frame is what every command and every process needs.
	Frame
	// Backends are the broker and the stores that a configuration names.
	Backends
	// Deliveries is what a program needs for webhooks.
	Deliveries
	// Runtime is the assembled process.
	Runtime
	// Commands of the command line.
	Commands
	// App is the program around anybody's kinds.
	App
	// Main packages: binaries and examples.
	Main
	// Outside are packages that only tests import, or nothing does.
	Outside
)

// places holds the floor of each package, by its path inside the module. A path that ends in /... holds for all packages below it that have no
// row of their own.
var places = map[string]Floor{
	"queue": Policies, "queue/inspect": Policies, "schedule": Policies, "pools": Policies, "idempotency": Policies,
	"schedule/...": Policies, "internal/handlertx": Stamps, "internal/pause": Stamps, "pools/internal/stamp": Stamps, "pools/internal/notify": Stamps, "pools/breaker": Breakers, "pools/...": Limits, "dlq/jsonmatch": Policies, "internal/truncate": Policies,
	"internal/storage/...": Engines, "migrations": Engines,
	"dlq": Letters, "dlq/audit": Letters, "dlq/replay": Letters,
	"queue/...": Drivers, "idempotency/...": Drivers, "dlq/...": Drivers, "internal/fleet": Drivers, "internal/fleet/...": Drivers,
	"worker": Flow, "worker/...": Flow,
	"webhook/signature": Policies,
	"webhook":           Webhooks, "webhook/ordering": Webhooks,
	"webhook/...": Registry, "internal/webhookapi": API, "webhook/api": PublicAPI,
	"internal/program/config": Settings,
	"internal/program/cli":    Frame, "internal/program/admin": Frame,
	"internal/program/backends": Backends, "internal/program/webhooks": Deliveries, "internal/program/runtime": Runtime,
	"internal/program/...": Commands,
	"app":                  App,
	"cmd/...":              Main, "examples/...": Main, "internal/program/reference": Main, "internal/program/reference/...": Main,
	"internal/testkit/...": Outside,
}

// Place returns the floor of a package, named by its path inside the module, and whether the package has a place.
func Place(pkg string) (Floor, bool) {
	if floor, ok := places[pkg]; ok {
		return floor, true
	}
	if parent, _, ok := strings.Cut(pkg, "/internal/"); ok && parent != "" {
		pkg = parent
	}
	if floor, ok := places[pkg]; ok {
		return floor, true
	}
	for parent := path.Dir(pkg); parent != "."; parent = path.Dir(parent) {
		if floor, ok := places[parent+"/..."]; ok {
			return floor, true
		}
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
			found = append(found, fmt.Sprintf("%s has no floor: give it a row in architecture.places and docs/architecture.md", p.Path))
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
	case support(own) && support(pkg) && pkg != "worker/jobtest":
		return ""
	case pkg == "worker" && target == Drivers:
		return "worker knows no driver and no store, only their ports"
	case strings.HasPrefix(pkg, own+"/") || strings.HasPrefix(own, pkg+"/internal/"):
		return "" // its parent, or its own internal part
	case target == floor && shares(pkg, own):
		return ""
	case target < floor, target == floor && floor == Outside:
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
	if floor > Policies || standard(imp) || support(pkg) {
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
	return strings.HasPrefix(pkg, "internal/testkit/") || slices.Contains([]string{"queue/queuetest", "idempotency/storetest", "worker/jobtest"}, pkg)
}

// standard reports whether imp belongs to the standard library: its first element has no dot.
func standard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}
