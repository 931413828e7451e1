package dlqcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
)

// place is a configuration with its stack, as a test and the programs that it starts share it.
type place struct {
	args []string
	*backends.Set
}

func embeddedPlace(t *testing.T) place {
	t.Helper()
	path := filepath.Join(t.TempDir(), "q.db")
	return place{[]string{"--db", path}, open(t, path)}
}

// soak reports whether the long form is asked for.
func soak() bool { return os.Getenv("SOAK") != "" }

// pile puts n dead jobs of kind work, with JSON payloads of about 1 KB, into queue q.
func pile(t *testing.T, p place, n int) {
	t.Helper()
	if err := p.Broker.CreateQueue(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	for start := 0; start < n; start += 1000 {
		var entries []dlq.Entry
		for i := start; i < min(n, start+1000); i++ {
			payload := fmt.Appendf(nil, `{"customer":{"id":%d,"plan":%q},"lines":[{"sku":"a-%d","n":%d}],"note":"%01000d"}`, i, []string{"free", "pro"}[i%2], i, i%7, i)
			entries = append(entries, letter(t, soakID(i), "q", "work", payload, func(e *dlq.Entry) {
				e.Error = fmt.Sprintf("post https://api-%d.test/v1/items/%d: status %d", i%13, i, 500+i%4)
				e.Destination = fmt.Sprintf("dest-%d", i%11)
			}))
		}
		if err := errors.Join(p.Letters.Put(t.Context(), entries)...); err != nil {
			t.Fatal(err)
		}
	}
}

func soakID(i int) string { return fmt.Sprintf("job%06d", i) }

// figure logs how long the quickest of three calls took, of the whole command without starting a process. In the long form it must be
// under a second.
func figure(t *testing.T, name string, args ...string) string {
	t.Helper()
	best, out := time.Hour, ""
	for range 3 {
		start := time.Now()
		out = ok(t, call(t, args...))
		best = min(best, time.Since(start))
	}
	t.Logf("%s: %d ms", name, best.Milliseconds())
	if soak() && best >= time.Second {
		t.Errorf("%s took %v, want less than a second", name, best)
	}
	return out
}

// A pile of dead letters can be searched, and its replay survives kill -9 twice, beside a worker: every job has its effect, and has it once.
// SOAK=1 does it with 100,000.
func TestPileOfDeadLetters(t *testing.T) {
	t.Parallel()
	replayPile(t, embeddedPlace(t))
}

func replayPile(t *testing.T, p place) {
	n, rate := 2000, 1000
	if soak() {
		n, rate = 100_000, 0
	}
	pile(t, p, n)
	look := func(args ...string) []string { return append(args, p.args...) }
	groups := figure(t, "groups", look("groups", "--json")...)
	var list groupList
	if err := json.Unmarshal([]byte(groups), &list); err != nil || len(list.Groups) == 0 {
		t.Fatalf("%s, %v", groups, err)
	}
	for what, want := range map[string]int{
		fmt.Sprintf("$.customer.id=%d", n-7): 1, "$.lines[0].sku=a-5": 1, `$.lines[*].n=3`: n / 7, "$.customer.plan=gold": 0,
	} {
		out := figure(t, "list --json-path "+what, look("list", "--json", "--json-path", what)...)
		var page entryList
		if err := json.Unmarshal([]byte(out), &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Entries) != min(want, 50) {
			t.Errorf("%s: %d entries, want %d", what, len(page.Entries), min(want, 50))
		}
	}

	var did effects
	workWith(t, count1(&did), p.args...)
	start := time.Now()
	command := look("replay", "--all", "--yes", "--rate", strconv.Itoa(rate), "--reservation", "5s")
	for _, until := range []int{n / 3, 2 * n / 3} {
		cmd, errs := spawn(t, command...)
		eventually.True(t, fmt.Sprintf("%d are replayed", until), func() bool { return count(t, p.Set, dlq.StateReplayed) >= until })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("it ended before it was killed: %v\n%s", err, errs)
		}
	}
	leftOut := 0 // what a killed one had published and not marked stays dead if it has run meanwhile
	eventually.True(t, "what the killed ones had in hand is not kept from others any more, and replayed", func() bool {
		r := call(t, append(command, "--json")...)
		var report replay.Report
		if err := json.Unmarshal([]byte(r.out), &report); err != nil || r.code != cli.OK && r.code != cli.Partial {
			t.Fatalf("code %d, %v\n%s%s", r.code, err, r.out, r.err)
		}
		leftOut = report.Completed
		return count(t, p.Set, dlq.StateDead) == leftOut
	})
	took := time.Since(start)
	t.Logf("replay of %d, killed twice: %.1f s", n, took.Seconds())
	eventually.True(t, "every job has run", func() bool { return did.jobs() == n })
	eventually.True(t, "the queue is empty", func() bool {
		d, err := p.Broker.Depth(t.Context(), "q")
		return err == nil && d.Ready.N == 0 && d.InFlight.N == 0
	})
	for i := range n {
		if runs := did.of(soakID(i)); runs != 1 {
			t.Errorf("job %s had its effect %d times", soakID(i), runs)
		}
	}
	if dead, done := count(t, p.Set, dlq.StateDead), count(t, p.Set, dlq.StateReplayed); dead != leftOut || done != n-leftOut {
		t.Errorf("%d dead, %d replayed, want %d whose work is done and the other %d", dead, done, leftOut, n-leftOut)
	}
}
