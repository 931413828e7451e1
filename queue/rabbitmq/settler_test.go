package rabbitmq

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAcksWaitOnceForLowerTags: an ack that others may cover is left out of one write, and never of a second.
func TestAcksWaitOnceForLowerTags(t *testing.T) {
	t.Parallel()
	c := &consumer{endings: []ending{{tag: 3, v: verdictAck}, {tag: 5, v: verdictAck}, {tag: 6, v: verdictReturn}}}
	tags := func(list []ending) (tags []uint64) {
		for _, e := range list {
			tags = append(tags, e.tag)
		}
		return tags
	}
	check := func(lowest uint64, all bool, written, kept []uint64) {
		t.Helper()
		batch, left := c.splitLocked(nil, lowest, all)
		if diff := cmp.Diff([][]uint64{written, kept}, [][]uint64{tags(batch), tags(left)}); diff != "" {
			t.Fatalf("written and kept (-want +got):\n%s", diff)
		}
		c.endings = left
	}
	check(4, false, []uint64{3, 6}, []uint64{5})
	c.endings = append(c.endings, ending{tag: 7, v: verdictAck})
	check(4, false, []uint64{5}, []uint64{7})
	c.endings = append(c.endings, ending{tag: 9, v: verdictAck})
	check(8, false, []uint64{7}, []uint64{9})
	check(8, true, []uint64{9}, nil)
	c.endings = append(c.endings, ending{tag: 10, v: verdictAck})
	check(0, false, []uint64{10}, nil)
}
