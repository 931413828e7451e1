package rabbitmq

import (
	"container/heap"
	"time"
)

// dues orders what is held by when its lease ends.
type dues []*handle

func (q dues) Len() int           { return len(q) }
func (q dues) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q dues) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements [heap.Interface].
func (q *dues) Push(x any) {
	h := x.(*handle)
	h.place = len(*q)
	*q = append(*q, h)
}

// Pop implements [heap.Interface].
func (q *dues) Pop() any {
	old := *q
	last := len(old) - 1
	h := old[last]
	old[last] = nil
	*q = old[:last]
	h.place = -1
	return h
}

func (q *dues) add(h *handle) { heap.Push(q, h) }

func (q *dues) remove(h *handle) {
	if h.place >= 0 {
		heap.Remove(q, h.place)
	}
}

func (q *dues) move(h *handle, due time.Time) {
	h.due = due
	if h.place >= 0 {
		heap.Fix(q, h.place)
	}
}

// next returns when the first lease ends; zero if none is held.
func (q dues) next() time.Time {
	if len(q) == 0 {
		return time.Time{}
	}
	return q[0].due
}

// late takes out the first whose lease has ended by now, or nil.
func (q *dues) late(now time.Time) *handle {
	if len(*q) == 0 || (*q)[0].due.After(now) {
		return nil
	}
	return heap.Pop(q).(*handle)
}
