package endpointcmd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// faults are what is wrong with the lines of a file.
type faults struct{ list []lineFault }

type lineFault struct {
	line int
	err  error
}

// add takes a fault of a line. nil is none, and line 0 is the whole file.
func (f *faults) add(line int, err error) {
	if err != nil {
		f.list = append(f.list, lineFault{line, err})
	}
}

// err returns all of them by line, or nil.
func (f *faults) err() error {
	slices.SortStableFunc(f.list, func(a, b lineFault) int { return cmp.Compare(a.line, b.line) })
	errs := make([]error, len(f.list))
	for i, one := range f.list {
		if errs[i] = one.err; one.line > 0 {
			errs[i] = fmt.Errorf("line %d: %w", one.line, one.err)
		}
	}
	return errors.Join(errs...)
}
