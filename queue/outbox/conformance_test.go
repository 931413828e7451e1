package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/rabbitmq"
	"github.com/caisson-go/caisson/queue/sqs"
	"github.com/caisson-go/caisson/worker"
)

// TestConformance holds the outbox to its guarantees on every broker, with prepared statements and as behind a pooler.
func TestConformance(t *testing.T) {
	t.Parallel()
	brokers := map[string]func(*rig){
		"embedded": func(r *rig) { r.broker = openEmbedded(r, filepath.Join(r.TempDir(), "queue.db")) },
		"rabbitmq": useRabbitMQ,
		"sqs":      func(r *rig) { useSQS(r, "") },
		"sqs-fifo": func(r *rig) { useSQS(r, ".fifo") },
	}
	for name, use := range brokers {
		for _, pooler := range []bool{false, true} {
			if name == "sqs" && !pooler {
				continue // sqs-fifo and the others see prepared statements
			}
			t.Run(fmt.Sprintf("%s/pooler=%t", name, pooler), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, pgdb.Config{Pooler: pooler, MaxConns: 12})
				use(r)
				r.relay(RelayConfig{Parallel: 2})
				r.conform()
			})
		}
	}
}

// conform runs every case against the rig, whose relay runs.
func (r *rig) conform() {
	t := r.TB.(*testing.T)
	for name, run := range map[string]func(*rig){
		"commit":    commitsBytes,
		"rollback":  rollsBack,
		"savepoint": rollsBackToSavepoint,
		"client":    enqueuesKinds,
		"delay":     keepsDelays,
		"ordered":   keepsOrder,
		"poison":    goesAroundPoison,
		"overlap":   missesNoCommit,
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.TB = t
			run(&r)
		})
	}
}

func useRabbitMQ(r *rig) {
	r.Helper()
	url := testserver.AMQP(r)
	const prefix = "cs1."
	b, err := rabbitmq.Open(r.Context(), rabbitmq.Config{URLs: []string{url}, Prefix: prefix, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.Fatal(err)
	}
	var mu sync.Mutex
	var made []string
	r.Cleanup(func() {
		if err := b.Close(); err != nil {
			r.Error(err)
		}
		conn, err := amqp.Dial(url)
		if err != nil {
			r.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		ch, err := conn.Channel()
		if err != nil {
			r.Fatal(err)
		}
		for _, name := range made {
			for _, full := range []string{prefix + name, prefix + queue.DLQ(name)} {
				if _, err := ch.QueueDelete(full, false, false, false); err != nil {
					r.Error(err)
				}
			}
		}
	})
	r.broker = b
	r.names = func(base string) string {
		mu.Lock()
		defer mu.Unlock()
		name := unique(base)
		made = append(made, name)
		return name
	}
}

func useSQS(r *rig, suffix string) {
	r.Helper()
	b, err := sqs.Open(context.Background(), sqs.Config{
		AWS:       &aws.Config{Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")},
		Transport: sqstest.NewServer(),
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := b.Close(); err != nil {
			r.Error(err)
		}
	})
	r.broker = b
	r.names = func(base string) string { return base + suffix }
}

// everyByte is a body that no text column takes.
func everyByte() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

func commitsBytes(r *rig) {
	a, b := r.queue("bytes-a"), r.queue("bytes-b")
	header, err := queue.Envelope{ID: "j1", Kind: "k", EnqueuedAt: time.Unix(1e9, 0), Key: "\x00é", Headers: map[string]string{"x": "ü\x00"}}.Encode()
	if err != nil {
		r.Fatal(err)
	}
	want := queue.Message{Body: everyByte(), Headers: map[string]string{queue.HeaderEnvelope: header, "producer": "ß and more"}}
	ids := r.enqueue(Job{Queue: a, Publication: queue.Publication{Message: want, Group: "g"}}, text(b, "other"), text(b, ""))
	if len(ids) != 3 || !slices.IsSorted(ids) {
		r.Errorf("ids %v", ids)
	}
	got := r.receive(a, 1)[0]
	if diff := cmp.Diff(want, got.Message); diff != "" {
		r.Errorf("(-want +got):\n%s", diff)
	}
	rest := bodies(r.receive(b, 2))
	slices.Sort(rest)
	if diff := cmp.Diff([]string{"", "other"}, rest); diff != "" {
		r.Error(diff)
	}
	r.drained()
}

var errBack = errors.New("the caller's own")

func rollsBack(r *rig) {
	q := r.queue("rollback")
	err := pgx.BeginFunc(r.Context(), r.pool, func(tx pgx.Tx) error {
		if _, err := r.box.Enqueue(r.Context(), tx, text(q, "rolled back")); err != nil {
			return err
		}
		return errBack
	})
	if !errors.Is(err, errBack) {
		r.Fatal(err)
	}
	if n := r.stats().Pending(); n != 0 {
		r.Errorf("a rollback left %d rows", n)
	}
	r.enqueue(text(q, "committed"))
	if got := bodies(r.receive(q, 1)); got[0] != "committed" {
		r.Errorf("received %q", got)
	}
}

func rollsBackToSavepoint(r *rig) {
	q := r.queue("savepoint")
	r.in(func(tx pgx.Tx) {
		_, err1 := r.box.Enqueue(r.Context(), tx, text(q, "kept"))
		err2 := pgx.BeginFunc(r.Context(), tx, func(inner pgx.Tx) error {
			_, err := r.box.Enqueue(r.Context(), inner, text(q, "taken back"))
			return errors.Join(err, errBack)
		})
		_, err3 := r.box.Enqueue(r.Context(), tx, text(q, "kept"))
		if err1 != nil || !errors.Is(err2, errBack) || err3 != nil {
			r.Fatal(err1, err2, err3)
		}
	})
	if diff := cmp.Diff([]string{"kept", "kept"}, bodies(r.receive(q, 2))); diff != "" {
		r.Error(diff)
	}
	r.drained()
}

type mail struct{ To string }

// enqueuesKinds: what a typed client enqueues in a transaction is what it enqueues directly.
func enqueuesKinds(r *rig) {
	q := r.queue("kinds")
	kind := worker.Kind[mail]{
		Name: "mail.send", Version: 2, Queue: q,
		Key:         func(m mail) string { return "mail to " + m.To },
		Destination: func(m mail) string { return m.To[strings.Index(m.To, "@")+1:] },
	}
	job := kind.New(mail{To: "a@example.org"})
	job.Headers = map[string]string{"traceparent": "00-1"}
	direct, err := worker.NewClient(worker.ClientConfig{Broker: r.broker})
	if err != nil {
		r.Fatal(err)
	}
	job.ID = "job-direct"
	if _, err := direct.Enqueue(r.Context(), job); err != nil {
		r.Fatal(err)
	}
	want := r.receive(q, 1)[0]
	r.in(func(tx pgx.Tx) {
		client, err := worker.NewClient(worker.ClientConfig{Broker: r.box.In(tx).Ordered()})
		if err != nil {
			r.Fatal(err)
		}
		job.ID = "job-in-tx"
		if id, err := client.Enqueue(r.Context(), job); err != nil || id != job.ID {
			r.Fatal(id, err)
		}
	})
	got := r.receive(q, 1)[0]
	if string(got.Body) != string(want.Body) || got.Group != want.Group {
		r.Errorf("body %q, group %q; want %q, %q", got.Body, got.Group, want.Body, want.Group)
	}
	a, err1 := want.Envelope()
	b, err2 := got.Envelope()
	if err1 != nil || err2 != nil {
		r.Fatal(err1, err2)
	}
	if b.ID != "job-in-tx" || b.Destination != "example.org" {
		r.Errorf("envelope %+v", b)
	}
	a.ID, a.EnqueuedAt = b.ID, b.EnqueuedAt
	if diff := cmp.Diff(a, b); diff != "" {
		r.Errorf("(-direct +in transaction):\n%s", diff)
	}
}

// keepsDelays: a delay counts from the call and holds on every broker, also on one that takes none.
func keepsDelays(r *rig) {
	q := r.queue("delay")
	job := text(q, "later")
	job.Delay = 1500 * time.Millisecond
	start := time.Now()
	r.enqueue(job)
	r.receive(q, 1)
	if after := time.Since(start); after < job.Delay {
		r.Errorf("arrived %s after the call, before the delay %s was over", after, job.Delay)
	}
	r.drained()
}

// keepsOrder enqueues jobs of several keys in many transactions.
func keepsOrder(r *rig) {
	const keys, each = 5, 12
	q := r.queue("ordered")
	var wg sync.WaitGroup
	for k := range keys {
		wg.Go(func() {
			for n := range each {
				job := text(q, fmt.Sprintf("%d %d", k, n))
				job.OrderingKey = fmt.Sprint("key ", k)
				job.Group = fmt.Sprint("group-", k)
				r.enqueue(job)
			}
		})
	}
	wg.Wait()
	next := map[int]int{}
	for _, body := range bodies(r.receive(q, keys*each)) {
		var k, n int
		if _, err := fmt.Sscan(body, &k, &n); err != nil {
			r.Fatal(err)
		}
		// Only brokers with an order of their own show that of the publishing.
		if caps := r.broker.Capabilities(q); (caps.Ordered || caps.FIFO) && n != next[k] {
			r.Errorf("key %d: job %d came when %d was next", k, n, next[k])
		}
		next[k]++
	}
}

// goesAroundPoison: a queue that is not there holds up nobody, and its jobs go out once it is.
func goesAroundPoison(r *rig) {
	good, missing := r.queue("good"), r.names("missing")
	var jobs []Job
	for n := range 20 {
		jobs = append(jobs, text(missing, fmt.Sprint("missing ", n)), text(good, fmt.Sprint("good ", n)))
	}
	r.enqueue(jobs...)
	r.receive(good, 20)
	r.until("all are refused", func() bool { s := r.stats(); return s.Fresh == 0 && s.Waiting+s.Stuck == 20 })
	refused, err := r.box.Refused(r.Context(), r.pool, 100)
	if err != nil || len(refused) != 20 || refused[0].Attempts == 0 || refused[0].Error == "" || refused[0].Queue != missing {
		r.Fatalf("%d refused jobs, %+v: %v", len(refused), refused, err)
	}
	if err := r.broker.CreateQueue(r.Context(), missing); err != nil {
		r.Fatal(err)
	}
	if _, err := r.box.Retry(r.Context(), r.pool); err != nil {
		r.Fatal(err)
	}
	r.receive(missing, 20)
	r.drained()
}

// missesNoCommit commits transactions in another order than that of their ids, over and over, while the relay reads.
func missesNoCommit(r *rig) {
	const rounds, width = 10, 6
	q := r.queue("overlap")
	want := map[string]int{}
	for round := range rounds {
		var open []pgx.Tx
		for n := range width {
			tx, err := r.pool.Begin(r.Context())
			if err != nil {
				r.Fatal(err)
			}
			body := fmt.Sprint(round, ".", n)
			if _, err := r.box.Enqueue(r.Context(), tx, text(q, body)); err != nil {
				r.Fatal(err)
			}
			open, want[body] = append(open, tx), 1
		}
		for _, tx := range slices.Backward(open) {
			if err := tx.Commit(r.Context()); err != nil {
				r.Fatal(err)
			}
		}
	}
	got := map[string]int{}
	for _, body := range bodies(r.receive(q, len(want))) {
		got[body]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Error(diff)
	}
	r.drained()
}
