package pools

import "slices"

// Class says how urgent calls are. 0 comes first, and is what everything is that says nothing. Under overload the class with the highest number
// is put back first: each leaves a fifth of the places, and at least one where there are two, to each class before it, and gives way while
// calls of a class before it have been put back and are not due yet. It does not give way where nothing runs at all.
type Class uint8

// Classes is how many there are.
const Classes = 3

// reserve is the part of the places that a class leaves to each class before it.
const reserve = 5

// of is how many of n places a class may use.
func (c Class) of(n uint32) uint32 {
	if c == 0 || n <= 1 {
		return n
	}
	left := (uint64(n)*uint64(c) + reserve - 1) / reserve
	return uint32(max(int64(n)-int64(left), 1)) //nolint:gosec // at most n
}

// lines are the ends of the lines in which calls that were put back wait, by class. Whoever comes before others moves their line on.
type lines [Classes]int64

var noLines = lines{never, never, never}

// ahead is the end of the lines before a class; never if there are none.
func (l *lines) ahead(c Class) int64 {
	if c == 0 {
		return never
	}
	return slices.Max(l[:c])
}

// end is the end of all lines.
func (l *lines) end() int64 { return slices.Max(l[:]) }

// join puts one more into the line of its class and returns when it is due: at from, or behind those before it, and at last at the latest.
func (l *lines) join(c Class, from, place, last int64) (due int64) {
	due = min(max(from, slices.Max(l[:c+1])), last)
	l[c] = min(add(due, place), last)
	for i := range l[c+1:] {
		if behind := &l[int(c)+1+i]; *behind > from {
			*behind = min(add(*behind, place), last)
		}
	}
	return due
}
