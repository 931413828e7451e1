package faulttest

import (
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/worker"
)

// TestExactlyOnceLedger delivers each job at least twice to four worker processes, of which one is killed each second, while their claims' PostgreSQL
// is restarted twice, once in order and once after a SIGKILL, and the network to it is cut twice. In the end a transactional handler has written one
// row for each job, in a table that would take any number, and no other keyed handler ran after or beside its completed run.
func TestExactlyOnceLedger(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	proxy := testserver.StartProxy(t, server.Addr())
	pool, schema := testserver.SchemaAt(t, pgdb.Config{URL: server.URL(), MaxConns: 1})
	if err := faultlab.MakeEffects(t.Context(), pool, schema); err != nil {
		t.Fatal(err)
	}
	cut := faultlab.Break{Break: proxy.Cut, Mend: proxy.Restore}
	plan := faultlab.KillPlan{
		Broker: "postgres", Open: faultlab.OnPostgres, Where: faultlab.PostgresAt(proxy.URL(server.URL()), schema), Queue: worker.DefaultQueue, Exact: true,
		Jobs: 800, Kills: 13, Workers: 4, Concurrency: 12, Copies: 2, Transactional: true, Waves: true, Every: time.Second, Lease: 3 * time.Second,
		Outages: []faultlab.Break{
			{Break: func() { server.Stop(t) }, Mend: func() { server.Start(t) }},
			cut,
			{Break: func() { server.Kill(t) }, Mend: func() { server.Start(t) }},
			cut,
		},
	}
	if soak() {
		plan.Jobs, plan.Kills, plan.Limit = 40000, 240, 10*time.Minute // 20,000 of them transactional
	}
	checkKills(t, plan)
}

// A handler that writes outside of its transaction must be found out by the same check.
func TestExactlyOnceLedgerFindsEffectsOutside(t *testing.T) {
	t.Parallel()
	url := testserver.Postgres(t)
	pool, schema := testserver.SchemaAt(t, pgdb.Config{URL: url, MaxConns: 1})
	if err := faultlab.MakeEffects(t.Context(), pool, schema); err != nil {
		t.Fatal(err)
	}
	l := faultlab.KillRound(t, faultlab.KillPlan{
		Broker: "postgres", Open: faultlab.OnPostgres, Where: faultlab.PostgresAt(url, schema), Queue: worker.DefaultQueue, Exact: true,
		Jobs: 100, Kills: 1, Transactional: true, Waves: true, Mutation: faultlab.NoTx,
	})
	if found := l.Check(t.Context()); len(found) == 0 {
		t.Error("effects outside of the transaction went unnoticed")
	} else {
		t.Logf("found as it must be: %d faults, the first: %s: %s", len(found), found[0].Rule, found[0].Text)
	}
}
