package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// Transfer is the payload of a job that moves money.
type Transfer struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Cents int64  `json:"cents"`
}

// Transfers are keyed, as every kind is by default: their claims are what the transaction completes.
var Transfers = worker.Kind[Transfer]{Name: "money.transfer"}

// transfer moves the money once, however often the job is delivered and whatever dies meanwhile: both updates and the completion of the job
// are stored together, or not at all.
func transfer(ctx context.Context, t Transfer) error {
	tx, err := postgres.TxFrom(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "UPDATE accounts SET cents = cents - $1 WHERE name = $2", t.Cents, t.From); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE accounts SET cents = cents + $1 WHERE name = $2", t.Cents, t.To)
	return err // the worker commits after a nil, and rolls back after anything else
}

func ExampleTxFrom() {
	registry := worker.NewRegistry()
	worker.Handle(registry, Transfers, transfer)
	fmt.Println(registry.Kinds())
	// Output: [money.transfer]
}

// TestExample runs the example's handler: the second delivery of a job moves nothing.
func TestExample(t *testing.T) {
	t.Parallel()
	raw := testserver.Postgres(t)
	direct, schema := testserver.SchemaAt(t, pgdb.Config{URL: raw, MaxConns: 1})
	accounts := schema + ".accounts"
	if _, err := direct.Exec(t.Context(), "CREATE TABLE "+accounts+" (name text PRIMARY KEY, cents bigint)"); err != nil {
		t.Fatal(err)
	}
	if _, err := direct.Exec(t.Context(), "INSERT INTO "+accounts+" VALUES ('ada', 1000), ('bob', 0)"); err != nil {
		t.Fatal(err)
	}
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: raw + "&search_path=" + schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := postgres.New(pool, postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	broker, err := embedded.Open(t.Context(), embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	if err := broker.CreateQueue(t.Context(), worker.DefaultQueue); err != nil {
		t.Fatal(err)
	}
	dead, err := dlqsqlite.Open(t.Context(), dlqsqlite.Config{Path: broker.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dead.Close() })
	registry := worker.NewRegistry()
	worker.Handle(registry, Transfers, transfer)
	ended := make(chan worker.Outcome, 2)
	w, err := worker.New(worker.Config{
		Broker: broker, Registry: registry, Store: store, DeadLetters: dead, Observers: []worker.Observer{settlements(ended)}, StopGrace: new(time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	run := make(chan error, 1)
	go func() { run <- w.Run(ctx) }()

	client, err := worker.NewClient(worker.ClientConfig{Broker: broker})
	if err != nil {
		t.Fatal(err)
	}
	job := Transfers.New(Transfer{From: "ada", To: "bob", Cents: 250})
	job.ID = "transfer-1"
	for _, want := range []worker.Outcome{worker.OutcomeSucceeded, worker.OutcomeDuplicate} {
		if _, err := client.Enqueue(ctx, job); err != nil {
			t.Fatal(err)
		}
		if got := <-ended; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	var ada, bob int64
	err = direct.QueryRow(ctx, "SELECT (SELECT cents FROM "+accounts+" WHERE name = 'ada'), (SELECT cents FROM "+accounts+" WHERE name = 'bob')").Scan(&ada, &bob)
	if err != nil || ada != 750 || bob != 250 {
		t.Errorf("ada has %d and bob %d: %v", ada, bob, err)
	}
	stop()
	if err := <-run; err != nil {
		t.Error(err)
	}
}

// settlements tells how jobs ended.
type settlements chan<- worker.Outcome

// Observe implements worker.Observer.
func (s settlements) Observe(e worker.Event) {
	if e, ok := e.(*worker.Settled); ok {
		s <- e.Outcome
	}
}
