package pools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// Class says how urgent a call is. Calls of a higher class come first. Under overload the sheddable ones are put back first: they
// leave a fifth of the places (two fifths for the lowest), and at least one where there are two, to those above, and give way while calls
// above them are put back and not due yet, unless nothing runs at all. The zero value is [ClassCritical].
type Class int8

// The classes, highest first.
const (
	ClassCriticalPlus  Class = -1
	ClassCritical      Class = 0
	ClassSheddablePlus Class = 1
	ClassSheddable     Class = 2
)

var classNames = [...]string{"critical_plus", "critical", "sheddable_plus", "sheddable"}

// String returns the name.
func (c Class) String() string { return classNames[c.rank()] }

// MarshalText implements [encoding.TextMarshaler].
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It knows the names and nothing else.
func (c *Class) UnmarshalText(text []byte) error {
	i := slices.Index(classNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("class %q: use %s", text, strings.Join(classNames[:], ", "))
	}
	*c = Class(i) + ClassCriticalPlus //nolint:gosec // one of four
	return nil
}

// rank counts the classes from 0, the highest. What is out of range counts as the nearest.
func (c Class) rank() int {
	return int(min(max(c, ClassCriticalPlus), ClassSheddable) - ClassCriticalPlus)
}

// reserve is the part of the places that a sheddable class leaves to each class above it, critical_plus not counted.
const reserve = 5

// of is how many of n places a class may use.
func (c Class) of(n uint32) uint32 {
	if c <= ClassCritical || n <= 1 {
		return n
	}
	c = min(c, ClassSheddable)
	left := (uint64(n)*uint64(c) + reserve - 1) / reserve
	return uint32(max(int64(n)-int64(left), 1)) //nolint:gosec // at most n
}

// backlog holds, by class, when the next deferred call would be due.
type backlog [len(classNames)]int64

var noBacklog = backlog{stamp.Never, stamp.Never, stamp.Never, stamp.Never}

// ahead is the end of the backlog of the classes above c; never if there is none.
func (b *backlog) ahead(c Class) int64 {
	if c.rank() == 0 {
		return stamp.Never
	}
	return slices.Max(b[:c.rank()])
}

// end is the end of the whole backlog.
func (b *backlog) end() int64 { return slices.Max(b[:]) }

// join adds a call and returns when it is due: at from, or behind those of its class and above, and at last at the latest. Those of
// lower classes move on.
func (b *backlog) join(c Class, from, place, last int64) (due int64) {
	rank := c.rank()
	due = min(max(from, slices.Max(b[:rank+1])), last)
	b[rank] = min(stamp.Add(due, place), last)
	for i := range b[rank+1:] {
		if behind := &b[rank+1+i]; *behind > from {
			*behind = min(stamp.Add(*behind, place), last)
		}
	}
	return due
}
