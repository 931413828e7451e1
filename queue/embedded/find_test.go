package embedded

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

func publication(t *testing.T, id, key string) queue.Publication {
	t.Helper()
	m, err := queue.NewMessage(queue.Envelope{ID: id, Kind: "k", Key: key, EnqueuedAt: time.Now()}, []byte("body of "+id))
	if err != nil {
		t.Fatal(err)
	}
	return queue.Publication{Message: m}
}

// find returns what is found of texts, one line for each message.
func find(t *testing.T, b *Broker, limit int, texts ...string) ([]string, inspect.Search) {
	t.Helper()
	s, err := b.Find(t.Context(), texts, limit)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range s.Locations {
		lines = append(lines, fmt.Sprintf("%s %s ahead %s", p.Envelope.ID, p.State, p.Ahead))
	}
	return lines, s
}

func TestFind(t *testing.T) {
	t.Parallel()
	b := openTest(t, Config{Path: filepath.Join(t.TempDir(), "q.db")})
	later := publication(t, "later", "")
	later.Delay = time.Hour
	const odd = "ü \"q\"\\ :\n" // a key that JSON has to escape
	publish(t, b, publication(t, "held", "k1"), publication(t, "first", "k1"), publication(t, "second", ""), later,
		publication(t, "odd", odd), publication(t, "third", "ü"), publication(t, "k1x", ""),
		queue.Publication{Message: queue.Message{Body: []byte("foreign"), Headers: map[string]string{"x": "third"}}})
	sub := subscribe(t, b, queue.SubscribeConfig{Lease: time.Hour})
	leases, err := sub.Receive(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		texts []string
		want  []string
	}{
		{[]string{"held"}, []string{"held leased ahead unknown"}},
		{[]string{"k1"}, []string{"held leased ahead unknown", "first ready ahead 0"}},
		{[]string{"later"}, []string{"later delayed ahead unknown"}},
		{[]string{"third"}, []string{"third ready ahead 3"}},
		{[]string{odd}, []string{"odd ready ahead 2"}},
		{[]string{"ü"}, []string{"third ready ahead 3"}},
		{[]string{"second", "third", "second"}, []string{"second ready ahead 1", "third ready ahead 3"}},
		{[]string{testQueue + ":8"}, []string{" ready ahead 5"}},
		{[]string{testQueue + ":9", "other:8", "hel", "body", "k", "caisson", ""}, nil},
		{[]string{"held", "", testQueue + ":8", "ü", "nobody"}, []string{" ready ahead 5", "held leased ahead unknown", "third ready ahead 3"}},
	} {
		got, s := find(t, b, 1000, tt.texts...)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.texts, diff)
		}
		if !s.Complete || s.Looked != 8 || s.Now.IsZero() {
			t.Errorf("%q: looked at %d, complete %t", tt.texts, s.Looked, s.Complete)
		}
	}
	_, s := find(t, b, 1000, "held")
	if p := s.Locations[0]; p.Due.Sub(leases[0].Deadline()).Abs() > time.Second || p.Deliveries != 1 || p.Attempts != 1 || p.Queue != testQueue || p.ID != "1" {
		t.Errorf("leased until %v: %+v", leases[0].Deadline(), p)
	}
	if err := leases[0].Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _ := find(t, b, 1000, "held"); got != nil {
		t.Errorf("found after its ack: %q", got)
	}
}

// TestFindIsBounded: neither a long queue nor many messages of one key make it long.
func TestFindIsBounded(t *testing.T) {
	t.Parallel()
	b := openTest(t, Config{})
	var pubs []queue.Publication
	for i := range 3*findChunk/2 + 10 {
		pubs = append(pubs, publication(t, fmt.Sprint("job-", i), strings.Repeat("k", 1+i%50)))
	}
	publish(t, b, pubs...)
	last := fmt.Sprint("job-", len(pubs)-1)
	if got, s := find(t, b, len(pubs)-1, last); got != nil || s.Complete || s.Looked != len(pubs)-1 {
		t.Errorf("one short of the last: found %q, looked at %d, complete %t", got, s.Looked, s.Complete)
	}
	if got, s := find(t, b, len(pubs)+1, last); len(got) != 1 || !s.Complete || s.Looked != len(pubs) {
		t.Errorf("with the last: found %q, looked at %d, complete %t", got, s.Looked, s.Complete)
	}
	if got, s := find(t, b, len(pubs)+1, "kkk"); len(got) != inspect.MaxFound || s.Complete {
		t.Errorf("%d messages of one key, complete %t", len(got), s.Complete)
	}
}
