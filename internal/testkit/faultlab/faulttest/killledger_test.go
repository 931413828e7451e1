package faulttest

import (
	"testing"

	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/worker"
)

// The crash tests: real worker processes, killed with SIGKILL again and again, and a ledger written by the handlers themselves. The rules that
// the ledger must keep are in [faultlab.Ledger.Check].

func TestKillLedger(t *testing.T) {
	t.Parallel()
	jobs, kills := 2000, 8
	if soak() {
		jobs, kills = 20000, 60
	}
	t.Run("claim and lease ended together", func(t *testing.T) {
		t.Parallel()
		checkKills(t, onEmbedded(jobs, kills, ""))
	})
	// Where claims and queue share no database, there are two commits for a kill to come between.
	t.Run("one after the other", func(t *testing.T) {
		t.Parallel()
		checkKills(t, onEmbedded(max(jobs/4, 1000), max(kills/4, 5), faultlab.Apart))
	})
}

func onEmbedded(jobs, kills int, mutation string) faultlab.KillPlan {
	return faultlab.KillPlan{
		Broker: "embedded", Open: faultlab.Embedded, Queue: worker.DefaultQueue, Exact: true, Jobs: jobs, Kills: kills, Mutation: mutation,
	}
}

func checkKills(t *testing.T, plan faultlab.KillPlan) {
	t.Helper()
	cut := 0
	for round := 0; cut == 0 && round < 4 && !t.Failed(); round++ { // on a busy machine all kills of a round may come between two runs
		l := faultlab.KillRound(t, plan)
		for _, f := range l.Check(t.Context()) {
			t.Error(f.Rule, f.Text)
		}
		t.Logf("%d jobs, %d runs, %d of them cut, %d kills, %d restarts of the broker, %d outages of the store",
			len(l.Jobs)+len(l.Transactional), len(l.Runs), l.Cut(), len(l.Kills), plan.Restarts, len(l.Outages))
		cut = l.Cut()
	}
	if cut == 0 {
		t.Error("the test did not bite: no kill cut a run")
	}
}

// A worker that acks before the completion is stored must be found out by the same check.
func TestKillLedgerFindsABrokenSettleOrder(t *testing.T) {
	t.Parallel()
	l := faultlab.KillRound(t, onEmbedded(1500, 6, faultlab.AckFirst))
	if found := l.Check(t.Context()); len(found) == 0 {
		t.Error("acking before completing went unnoticed")
	} else {
		t.Logf("found as it must be: %d faults, the first: %s: %s", len(found), found[0].Rule, found[0].Text)
	}
}
