package faultlab

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
)

// mark is a label that a goroutine hands down to those that it starts. By it the goroutines of a trial are told from those of others beside it.
type mark string

const markKey = "trial"

// marked runs do in this goroutine, with a mark of its own.
func marked(ctx context.Context, do func(context.Context, mark)) {
	m := mark(rand.Text())
	pprof.Do(ctx, pprof.Labels(markKey, string(m)), func(ctx context.Context) { do(ctx, m) })
}

// kept are goroutines of which the load so far decides how many there are: those that a worker keeps for its next jobs, never more than it has
// slots, and the proxy's own, some for each connection, which are counted as such.
var kept = []string{"worker.(*handlerLoop).run+", "worker.(*queueRunner).work+", "testserver.(*link)."}

// goroutines counts the goroutines that bear the mark, without those that are kept.
func (m mark) goroutines() (total int) {
	for _, stack := range m.stacks() {
		if !slices.ContainsFunc(kept, func(name string) bool { return strings.Contains(stack, name) }) {
			total += count(stack)
		}
	}
	return total
}

// all counts the goroutines that bear the mark.
func (m mark) all() (total int) {
	for _, stack := range m.stacks() {
		total += count(stack)
	}
	return total
}

// stacks are what the goroutines that bear the mark do. Those that do the same share one text, which begins with their number.
func (m mark) stacks() (own []string) {
	var profile bytes.Buffer
	const readable = 1
	if err := pprof.Lookup("goroutine").WriteTo(&profile, readable); err != nil {
		return nil // memory does not fail
	}
	label := fmt.Sprintf("%q:%q", markKey, string(m))
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, label) {
			own = append(own, stack)
		}
	}
	return own
}

func (m mark) String() string { return strings.Join(m.stacks(), "\n\n") }

// count reads the number that a text of [mark.stacks] begins with: "3 @ 0x1 0x2".
func count(stack string) (n int) {
	if i := strings.Index(stack, " @ "); i >= 0 {
		first := stack[:i]
		_, _ = fmt.Sscan(first[strings.LastIndexByte(first, '\n')+1:], &n) // the first text has a line above it
	}
	return n
}
