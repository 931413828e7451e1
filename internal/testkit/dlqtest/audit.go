package dlqtest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
)

func auditTests() []testCase {
	return []testCase{
		{"Audit/from begin to end", testAudit},
		{"Audit/what is killed shows", testAuditSilence},
		{"Audit/goes on under the same id", testAuditResumed},
		{"Audit/newest first in pages", testAuditList},
		{"Audit/refuses what makes no sense", testAuditArguments},
		{"Audit/a replayed entry leads to its record", testClosedBy},
	}
}

// log returns the store as an audit log: every store is one.
func (e *env) log() audit.Log {
	e.Helper()
	log, ok := e.store.(audit.Log)
	if !ok {
		e.Fatalf("%T keeps no audit log", e.store)
	}
	return log
}

func (e *env) begin(a audit.Record) audit.Record {
	e.Helper()
	got, err := e.log().BeginAudit(e.Context(), a)
	if err != nil {
		e.Fatalf("begin audit: %v", err)
	}
	return got
}

func (e *env) wantAudit(want audit.Record) audit.Record {
	e.Helper()
	got, err := e.log().Audit(e.Context(), want.ID)
	if err != nil {
		e.Fatalf("audit: %v", err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(audit.Record{}, "StartedAt", "UpdatedAt", "EndedAt")); diff != "" {
		e.Errorf("audit record (-want +got):\n%s", diff)
	}
	return got
}

func testAudit(e *env) {
	want := audit.Record{ID: e.name("replay"), Action: "replay", Actor: "me\x00 \xff@host", Filter: `{"kind":"email.send"} 'x' \xff`, Planned: 7}
	begun := e.begin(want)
	want.State, want.Silence = audit.StateRunning, audit.DefaultSilence
	got := e.wantAudit(want)
	if diff := cmp.Diff(begun, got); diff != "" {
		e.Errorf("begin returned another record (-begin +get):\n%s", diff)
	}
	if d := time.Since(got.StartedAt); d < -time.Minute || d > time.Minute || !got.EndedAt.IsZero() {
		e.Errorf("started at %v, ended at %v", got.StartedAt, got.EndedAt)
	}
	e.tick()
	want.Counts = audit.Counts{Done: 3, Failed: 2, Refused: 1}
	if err := e.log().UpdateAudit(e.Context(), want.ID, want.Counts); err != nil {
		e.Fatalf("update audit: %v", err)
	}
	if updated := e.wantAudit(want); !updated.UpdatedAt.After(got.UpdatedAt) || !updated.StartedAt.Equal(got.StartedAt) {
		e.Errorf("updated at %v and %v", got.UpdatedAt, updated.UpdatedAt)
	}
	e.tick()
	want.Done, want.State, want.Problem = 4, audit.StateFailed, "the broker is gone \x00"
	if err := e.log().EndAudit(e.Context(), want.ID, want.State, want.Counts, want.Problem); err != nil {
		e.Fatalf("end audit: %v", err)
	}
	if ended := e.wantAudit(want); !ended.EndedAt.After(got.UpdatedAt) || !ended.EndedAt.Equal(ended.UpdatedAt) {
		e.Errorf("ended at %v", ended.EndedAt)
	}
}

func testAuditSilence(e *env) {
	a := e.begin(audit.Record{ID: e.name("replay"), Action: "replay", Silence: e.short})
	e.pass(e.short + e.short/2)
	if got, err := e.log().Audit(e.Context(), a.ID); err != nil || got.State != audit.StateInterrupted || got.Problem == "" {
		e.Errorf("after a silence: %+v, %v", got, err)
	}
	// It was only slow.
	if err := e.log().UpdateAudit(e.Context(), a.ID, audit.Counts{}); err != nil {
		e.Fatalf("update: %v", err)
	}
	e.wantAudit(a)
	if err := e.log().EndAudit(e.Context(), a.ID, audit.StateDone, audit.Counts{}, ""); err != nil {
		e.Fatalf("end: %v", err)
	}
	e.pass(e.short + e.short/2)
	a.State = audit.StateDone
	e.wantAudit(a)
}

func testAuditResumed(e *env) {
	a := e.begin(audit.Record{ID: e.name("replay"), Action: "replay", Actor: "one", Filter: "f", Planned: 9})
	counts := audit.Counts{Done: 4}
	if err := e.log().EndAudit(e.Context(), a.ID, audit.StateInterrupted, counts, "ctrl-C"); err != nil {
		e.Fatalf("end: %v", err)
	}
	e.tick()
	again := e.begin(audit.Record{ID: a.ID, Action: "replay", Actor: "two", Filter: "g", Planned: 5})
	want := a
	want.Actor, want.Filter, want.Planned, want.Counts = "two", "g", 5, counts
	if got := e.wantAudit(want); !got.StartedAt.Equal(a.StartedAt) || !got.UpdatedAt.After(a.UpdatedAt) || !got.EndedAt.IsZero() || again.Done != 4 {
		e.Errorf("resumed: %+v and %+v", again, got)
	}
	if _, err := e.log().BeginAudit(e.Context(), audit.Record{ID: a.ID, Action: "purge"}); err == nil {
		e.Error("a purge takes the id of a replay")
	}
	e.wantAudit(want)
}

func testAuditList(e *env) {
	var want []string
	for range 5 {
		e.tick()
		want = append(want, e.begin(audit.Record{ID: e.name("audit"), Action: "purge"}).ID)
	}
	var got []string
	for after := ""; len(got) < len(want); {
		list, next, err := e.log().Audits(e.Context(), after, 2)
		if err != nil || len(list) == 0 || len(list) > 2 {
			e.Fatalf("list: %d, %v", len(list), err)
		}
		for _, a := range list {
			if slices.Contains(want, a.ID) {
				got = append(got, a.ID)
			}
		}
		if after = next; next == "" {
			break
		}
	}
	e.wantIDs("records", got, reversed(want))
}

func testAuditArguments(e *env) {
	for what, a := range map[string]audit.Record{"no id": {Action: "purge"}, "no action": {ID: e.name("a")}, "negative": {ID: e.name("a"), Action: "purge", Planned: -1}} {
		if _, err := e.log().BeginAudit(e.Context(), a); err == nil {
			e.Errorf("%s is taken", what)
		}
	}
	a := e.begin(audit.Record{ID: e.name("a"), Action: "purge"})
	if err := e.log().EndAudit(e.Context(), a.ID, audit.StateRunning, audit.Counts{}, ""); err == nil {
		e.Error("an end that is none is taken")
	}
	unknown := e.name("unknown")
	_, err := e.log().Audit(e.Context(), unknown)
	for what, err := range map[string]error{
		"get": err, "update": e.log().UpdateAudit(e.Context(), unknown, audit.Counts{}),
		"end": e.log().EndAudit(e.Context(), unknown, audit.StateDone, audit.Counts{}, ""),
	} {
		if !errors.Is(err, audit.ErrNotFound) {
			e.Errorf("%s of an unknown record answers %v", what, err)
		}
	}
	if _, _, err := e.log().Audits(e.Context(), "not a cursor", 1); !errors.Is(err, dlq.ErrCursor) {
		e.Errorf("a made-up cursor is answered with %v", err)
	}
	if _, _, err := e.log().Audits(e.Context(), "", 0); err == nil {
		e.Error("a limit of 0 is taken")
	}
}

func testClosedBy(e *env) {
	replay := e.begin(audit.Record{ID: e.name("replay"), Action: "replay"})
	entry := e.entry()
	id := e.put(entry)[0]
	e.reserve("another", e.all(), 1, long)
	e.resolve("another", id, dlq.StateDead, nil)
	e.reserve(replay.ID, e.all(), 1, long)
	if got := e.get(id).ClosedBy; got != "" {
		e.Errorf("a dead entry was closed by %q", got)
	}
	e.resolve(replay.ID, id, dlq.StateReplayed, nil)
	runs, _, err := e.store.List(e.Context(), dlq.Filter{Job: entry.Job, States: dlq.States()}, "", 10)
	if err != nil || len(runs) != 1 || runs[0].ClosedBy != replay.ID {
		e.Fatalf("runs of the job: %+v, %v", runs, err)
	}
	e.wantAudit(replay)
}
