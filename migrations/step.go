package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

//go:embed sql/*.sql
var files embed.FS

// Step is one change of the tables.
type Step struct {
	// Version counts from 1, without gaps.
	Version int    `json:"version"`
	Name    string `json:"name"`
	// Loses says what is lost when the step is taken back: the first line of its way down, "-- Loses: ...".
	Loses string `json:"loses"`
	// Up and Down are SQL scripts.
	Up   string `json:"-"`
	Down string `json:"-"`
}

// steps are all steps in order: step i has version i+1.
type steps []Step

// Steps returns all steps that this program knows, in order.
func Steps() []Step { return slices.Clone(known) }

// Latest is the version that this program needs.
func Latest() int { return len(known) }

var known = mustRead(files)

func mustRead(dir fs.FS) steps {
	found, err := readFiles(dir)
	if err != nil {
		panic(err) // the files are part of the program, and a test reads them
	}
	return found
}

// loses begins the first line of a way down.
const loses = "-- Loses: "

func readFiles(dir fs.FS) (steps, error) {
	names, err := fs.Glob(dir, "sql/*.up.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var found steps
	for i, file := range names {
		base := strings.TrimSuffix(strings.TrimPrefix(file, "sql/"), ".up.sql")
		number, name, _ := strings.Cut(base, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: want version %d", file, i+1)
		}
		up, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, err
		}
		down, err := fs.ReadFile(dir, strings.TrimSuffix(file, ".up.sql")+".down.sql")
		if err != nil {
			return nil, fmt.Errorf("migration %s has no way down: %w", file, err)
		}
		first, _, _ := strings.Cut(string(down), "\n")
		lost, told := strings.CutPrefix(first, loses)
		if !told {
			return nil, fmt.Errorf("migration %s: its way down does not begin with %q", file, loses)
		}
		found = append(found, Step{Version: version, Name: name, Loses: lost, Up: string(up), Down: string(down)})
	}
	return found, nil
}
