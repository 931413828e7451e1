package faultlab

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
)

// told is what the claim store says: the completed attempt of each key.
type told struct {
	idempotency.Store
	completed map[string]int
}

func (s told) Get(_ context.Context, key idempotency.Key) (idempotency.Record, error) {
	attempt, ok := s.completed[key.Value]
	if !ok {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return idempotency.Record{State: idempotency.StatusCompleted, Attempt: attempt}, nil
}

type toldDead struct {
	dlq.Store
	ids []string
}

func (s toldDead) Get(_ context.Context, id string) (dlq.Entry, error) {
	if !slices.Contains(s.ids, id) {
		return dlq.Entry{}, dlq.ErrNotFound
	}
	return dlq.Entry{}, nil
}

// TestCheckFinds tries each rule on the smallest ledger that breaks it, beside the ones that look alike and are fine.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	// run is attempt n of key from second a to b, 0 if it was cut; process 1 unless told otherwise.
	run := func(key string, n, a, b int, ok bool) Run {
		r := Run{Key: key, Attempt: n, Token: int64(n), PID: 1, Start: at(a), OK: ok}
		if b > 0 {
			r.End = at(b)
		}
		return r
	}
	for _, c := range []struct {
		name      string
		ledger    Ledger
		completed map[string]int
		dead      []string
		want      []Rule
	}{
		{"well", Ledger{Jobs: []string{"a"}, Runs: []Run{run("a", 1, 1, 2, false), run("a", 2, 3, 4, true)}}, map[string]int{"a": 2}, nil, nil},
		{"dead", Ledger{Jobs: []string{"a"}, Runs: []Run{run("a", 1, 1, 2, false)}}, nil, []string{"a"}, nil},
		{"lost", Ledger{Jobs: []string{"a"}}, nil, nil, []Rule{Lost}},
		{"ran after completion", Ledger{Jobs: []string{"a"}, Runs: []Run{run("a", 1, 1, 2, true), run("a", 2, 3, 4, false)}}, map[string]int{"a": 1}, nil, []Rule{RanAgain}},
		{"succeeded twice", Ledger{Jobs: []string{"a"}, Runs: []Run{run("a", 1, 1, 2, true), run("a", 2, 3, 4, true)}}, map[string]int{"a": 2}, nil, []Rule{RanAgain}},
		{"overlap", Ledger{Jobs: []string{"a"}, Runs: []Run{run("a", 1, 1, 4, false), run("a", 2, 3, 5, true)}}, map[string]int{"a": 2}, nil, []Rule{Overlap}},
		{
			"cut by a kill",
			Ledger{Jobs: []string{"a"}, Runs: []Run{run("a", 1, 1, 0, false), run("a", 2, 3, 5, true)}, Kills: []Kill{{1, at(2)}}},
			map[string]int{"a": 2},
			nil, nil,
		},
		{"cut by nothing", Ledger{Jobs: []string{"a"}, Runs: []Run{run("a", 1, 1, 0, false), run("a", 2, 3, 5, true)}}, map[string]int{"a": 2}, nil, []Rule{Overlap}},
		{"number skipped", Ledger{Jobs: []string{"a"}, Runs: []Run{run("a", 2, 1, 2, true)}}, map[string]int{"a": 2}, nil, []Rule{Count}},
		{
			"number skipped by a kill",
			Ledger{Jobs: []string{"a"}, Runs: []Run{run("a", 2, 3, 4, true)}, Kills: []Kill{{1, at(2)}}},
			map[string]int{"a": 2},
			nil, nil,
		},
		{
			"in order",
			Ledger{Jobs: []string{"a", "b", "c"}, Groups: 2, Runs: []Run{run("a", 1, 1, 2, true), run("b", 1, 1, 5, true), run("c", 1, 2, 3, true)}},
			map[string]int{"a": 1, "b": 1, "c": 1},
			nil, nil,
		},
		{
			"out of order",
			Ledger{Jobs: []string{"a", "b", "c"}, Groups: 2, Runs: []Run{run("a", 1, 1, 3, true), run("b", 1, 1, 5, true), run("c", 1, 2, 4, true)}},
			map[string]int{"a": 1, "b": 1, "c": 1},
			nil,
			[]Rule{Order},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var dead []string
			for _, key := range c.dead {
				dead = append(dead, dlq.EntryID(key, 0))
			}
			c.ledger.Stack = &Stack{Claims: told{completed: c.completed}, Dead: toldDead{ids: dead}}
			var got []Rule
			for _, f := range c.ledger.Check(t.Context()) {
				got = append(got, f.Rule)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
