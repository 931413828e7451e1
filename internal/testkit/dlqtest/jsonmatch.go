package dlqtest

import (
	"fmt"
	"strings"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/jsonmatch"
)

// AwkwardBodies are payloads about whose JSON engines disagree.
func AwkwardBodies() []string {
	deep := func(n int) string { return strings.Repeat("[", n) + "7" + strings.Repeat("]", n) }
	return []string{
		``, ` `, `{`, `{"a":1}x`, `not JSON`, "\x00", "\xff", `{'a':1}`, `{"a":01}`, `[1,]`, "\ufeff{}",
		`7`, ` 7 `, `-0`, `0`, `0.0`, `-0e5`, `"7"`, `""`, `null`, `true`, `false`, `[]`, `{}`, `[7]`, `[[7]]`, `["7"]`,
		`{"a":7}`, `{"a":7.0}`, `{"a":70e-1}`, `{"a":0.7E+1}`, `{"a":"7"}`, `{"a":[7]}`, `{"a":{"a":7}}`, `{"a":null}`, `{"b":7}`, `{"A":7}`,
		`{"a":1,"a":7}`, `{"a":7,"a":1}`, `{"a":7,"\u0061":1}`, `{"a":{"b":1},"a":{"c":1}}`, `{"\u0061":7}`, `{"a":"\u0037"}`,
		`{"a":9007199254740993}`, `{"a":9007199254740992}`, `{"a":9007199254740993.0}`, `{"a":12345678901234567890123456789012345678901}`,
		`{"a":1e400}`, `{"a":10e399}`, `{"a":1e-400}`, `{"a":1e140000}`, `{"a":1e99999999999999999999}`, `{"a":-1e400}`,
		`{"a":0.1}`, `{"a":0.1000000000000000055511151231257827}`, `{"a":` + strings.Repeat("9", 2000) + `}`,
		`{"a":"x\u0000y"}`, `{"a\u0000":7}`, `{"a":7,"x":"\u0000"}`, "{\"a\":\"\xff\"}", `{"a":"\ufffd"}`, `{"a":"\ud800"}`, `{"a":7,"x":"\udc00\ud800"}`,
		`{"a":"\ud834\udd1e"}`, `{"a":"𝄞"}`, "{\"a\xff\":7}", `{"a` + "\ufffd" + `":7}`, "{\"a\":7,\"x\":\"\xc3\x28\"}", `{"a":"Ä"}`, `{"a":"ä"}`, `{"a":"A\u0308"}`,
		`{"a":"\"q\" \\ \/ \b\f\n\r\t <&> \u2028"}`, "{\"a\":\"\u2028\"}", `{"":7}`, `{"a":{"":7}}`, `{"a.b":7}`, `{"a":{"b":7}}`, `{"0":7}`, `{"-1":7}`, `{"*":7}`,
		`{"items":[]}`, `{"items":[{"sku":"abc"}]}`, `{"items":[{"sku":"x"},{"other":1},{"sku":"abc"}]}`, `{"items":[{"sku":"x"},7,"abc"]}`,
		`{"items":{"sku":"abc"}}`, `{"items":{"0":{"sku":"abc"}}}`, `{"items":[[{"sku":"abc"}]]}`, `{"items":"abc"}`, `[{"sku":"abc"}]`,
		`{"items":[{"tags":["x","y"]},{"tags":["abc"]}]}`, `{"a":7,"items":[{"sku":"abc"}]}`, " \t\r\n{ \"a\" :\n7 , \"b\" : [ 1 , 2 ] } ",
		deep(100), deep(3000), deep(9999), deep(10_001), `{"a":7,"deep":` + deep(7000) + `}`,
		`{"a":7,"fill":"` + strings.Repeat("ü", 100_000) + `"}`, `{"a":"` + strings.Repeat("x", 300_000) + `"}`, `{"a":7,"fill":"` + strings.Repeat(" ", 70_000) + `\u0000"}`,
	}
}

func jsonMatches() []string {
	return []string{
		`$`, `$=7`, `$=0`, `$="7"`, `$=`, `$=null`, `$=true`, `$[0]`, `$[0]=7`, `$[*]=7`, `$[0][0]=7`, `$[*][*]=7`, `$[0]="7"`,
		`a`, `a=7`, `a=7.00`, `a=700e-2`, `a="7"`, `a=1`, `a=null`, `a[0]=7`, `a.a=7`, `b=7`, `A=7`, `a.b`, `a.c`, `a.b=1`,
		`a=9007199254740993`, `a=9007199254740992`, `a=12345678901234567890123456789012345678901`, `a=1e400`, `a=1e-400`, `a=1e140000`,
		`a=1e99999999999999999999`, `a=-1e400`, `a=0.1`, `a=` + strings.Repeat("9", 2000),
		`a="x\u0000y"`, `["a\u0000"]=7`, "a=\ufffd", "[\"a\ufffd\"]=7", `a="\ud800"`, `a=𝄞`, `a=Ä`, `a=ä`,
		`a="\"q\" \\ / \b\f\n\r\t <&> \u2028"`, "a=\"\u2028\"", `[""]=7`, `a[""]=7`, `["a.b"]=7`, `a.b=7`, `["0"]=7`, `["-1"]=7`, `["*"]=7`, `0=7`,
		`items`, `items[0]`, `items[*]`, `items[0].sku=abc`, `items[2].sku=abc`, `items[*].sku=abc`, `items[*].sku`, `items.sku=abc`, `items[*]=abc`,
		`items["0"].sku=abc`, `items[0][0].sku=abc`, `items[*][*].sku=abc`, `[0].sku=abc`, `[*].sku=abc`, `items[*].tags[*]=abc`, `items[0].tags[1]=y`,
		`items[2147483647]`, `a=` + strings.Repeat("x", 3000), `b[1]=2`, `deep[*]`,
	}
}

func testJSONFilter(e *env) {
	bodies := AwkwardBodies()
	entries := make([]dlq.Entry, len(bodies))
	for i, body := range bodies {
		entries[i] = e.entry()
		entries[i].Message.Body = []byte(body)
	}
	for i, err := range e.store.Put(e.Context(), entries) {
		if err != nil {
			e.Fatalf("put %.100q: %v", bodies[i], err)
		}
	}
	for _, text := range jsonMatches() {
		m, err := jsonmatch.Parse(text)
		if err != nil {
			e.Fatal(err)
		}
		e.wantJSON(text, entries, m)
	}
	two := []jsonmatch.Match{{Path: []jsonmatch.Step{{Key: "a"}}, Value: "7"}, {Path: []jsonmatch.Step{{Key: "items"}, {Kind: jsonmatch.StepAny}, {Key: "sku"}}}}
	e.wantJSON("two", entries, two...)
}

// wantJSON compares the store's answer with the reference, [jsonmatch.All].
func (e *env) wantJSON(what string, entries []dlq.Entry, ms ...jsonmatch.Match) {
	e.Helper()
	f := dlq.Filter{Queue: e.queue, JSON: ms}
	got := map[string]bool{}
	for _, id := range e.pages(f, 60, nil) {
		got[id] = true
	}
	n := 0
	for _, entry := range entries {
		want := jsonmatch.All(entry.Message.Body, ms)
		if want {
			n++
		}
		if id := dlq.EntryID(entry.Job, entry.Run); got[id] != want {
			e.Errorf("%.80s in %.120q: store says %v, want %v", what, entry.Message.Body, got[id], want)
		}
	}
	if counted := e.count(f); counted != n || len(got) != n {
		e.Errorf("%.80s: counted %d and listed %d, want %d", what, counted, len(got), n)
	}
}

// Every operation that takes a filter knows JSON.
func testJSONOperations(e *env) {
	var entries []dlq.Entry
	for i := range 9 {
		entry := e.entry()
		// A third of the payloads is what databases refuse as JSON, and one is large.
		fill := []string{"plain", `\u0000`, strings.Repeat("x", 100_000)}[i%3]
		entry.Message.Body = fmt.Appendf(nil, `{"order":{"id":%d,"odd":%v},"fill":"%s"}`, i, i%2 == 1, fill)
		entries = append(entries, entry)
	}
	stored := e.put(entries...)
	odd := e.all()
	odd.JSON = []jsonmatch.Match{{Path: []jsonmatch.Step{{Key: "order"}, {Key: "odd"}}, Value: "true"}}
	groups, err := e.store.Groups(e.Context(), odd)
	if err != nil || len(groups) != 1 || groups[0].Count != 4 {
		e.Errorf("groups: %+v, %v, want one of 4", groups, err)
	}
	e.wantIDs("reserve", e.reserve("o", odd, 2, long), []string{stored[1], stored[3]})
	e.wantIDs("reserve the next", e.reserve("o", odd, 1, long), []string{stored[5]})
	e.resolve("o", stored[1], dlq.StateReplayed, nil)
	e.wantIDs("list", e.pages(odd, 1, nil), []string{stored[7], stored[5], stored[3]})
	e.purge(odd, 1)
	e.wantState(stored[7], dlq.StatePurged)
	odd.States = dlq.States()
	if n := e.count(odd); n != 3 {
		e.Errorf("%d entries match, want 3: a purged payload is gone", n)
	}
	bad := e.all()
	bad.JSON = []jsonmatch.Match{{Value: "{}"}}
	if _, err := e.store.Count(e.Context(), bad); err == nil {
		e.Error("a value that is no scalar is taken")
	}
}

func testJobFilter(e *env) {
	entry := e.entry()
	next, other, longer, dotted := entry, entry, e.entry(), e.entry()
	next.Run, other.Message.Body = 1, []byte("another payload")
	longer.Job, dotted.Job = entry.Job+"0", entry.Job+".0"
	stored := e.put(entry, next)
	e.put(other, longer, dotted)
	want := append(stored, dlq.OtherEntryID(other.Job, 0, other.Message.Body))
	e.wantIDs("runs of a job", e.pages(dlq.Filter{Job: entry.Job}, 10, nil), reversed(want))
	if n := e.count(dlq.Filter{Job: e.name("unknown")}); n != 0 {
		e.Errorf("%d entries of an unknown job", n)
	}
	awkward := e.entry()
	awkward.Job = "\xff\x00'" + e.queue
	stored = e.put(awkward)
	e.wantIDs("bytes", e.pages(dlq.Filter{Job: awkward.Job}, 10, nil), stored)
}
