package app_test

import (
	"context"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/worker"
)

// What a networked broker or the lack of a store makes impossible is refused before anything is connected to.
func TestCheckOfNetworkedBrokers(t *testing.T) {
	t.Parallel()
	keyed := func(r *worker.Registry) error {
		worker.Handle(r, worker.Kind[[]byte]{Name: "pay", Config: worker.KindConfig{Keyed: new(true)}}, func(context.Context, []byte) error { return nil })
		return nil
	}
	rabbit := []string{"CAISSON_BROKER=rabbitmq", "CAISSON_RABBITMQ_URLS=amqp://u:hunter2@nobody.invalid:5672/"}
	if out := ok(t, callWith(t, new(record).setup, "", rabbit, "config", "check")); !strings.Contains(out, "fine") {
		t.Errorf("check printed %q", out)
	}
	for name, tt := range map[string]struct {
		env  []string
		want string
	}{
		"keyed without a store": {rabbit, `kind "pay": asks for idempotency keys but the worker has no store: set Config.Store (store in a configuration)`},
		"not one host":          {append([]string{"CAISSON_STORE=sqlite"}, rabbit...), "sqlite.single_host"},
		"no such file":          {append([]string{"CAISSON_RABBITMQ_TLS_CA_FILE=none.pem", "CAISSON_RABBITMQ_URLS=amqps://u:hunter2@h"}, rabbit[:1]...), "rabbitmq.tls.ca_file"},
	} {
		if r := callWith(t, keyed, "", tt.env, "config", "check"); r.code != 2 || !strings.Contains(r.err, tt.want) || strings.Contains(r.err, "hunter2") {
			t.Errorf("%s: code %d, %s", name, r.code, r.err)
		}
	}
	file := t.TempDir() + "/claims.db"
	ok(t, callWith(t, keyed, "", append([]string{"CAISSON_STORE=sqlite", "CAISSON_SQLITE_SINGLE_HOST=true", "CAISSON_SQLITE_PATH=" + file}, rabbit...), "config", "check"))
	if r := call(t, "", []string{"CAISSON_BROKER=sqs"}, "enqueue", "k", "--queue", "a.b"); r.code != 2 || !strings.Contains(r.err, "--queue") {
		t.Errorf("a name that SQS cannot have: code %d, %s", r.code, r.err)
	}
	out := ok(t, callWith(t, keyed, "", rabbit, "config", "print"))
	if strings.Contains(out, "hunter2") || !strings.Contains(out, `["amqp://nobody.invalid:5672/***"]`) {
		t.Errorf("config print:\n%s", out)
	}
}

func TestDoctorOfTheEmbeddedBroker(t *testing.T) {
	t.Parallel()
	db := t.TempDir() + "/q.db"
	ok(t, call(t, "", nil, "queues", "create", "default", "--db", db))
	if out := ok(t, call(t, "", nil, "queues", "doctor", "--db", db)); !strings.HasPrefix(out, "nothing to inspect") {
		t.Errorf("doctor printed %q", out)
	}
	if out := ok(t, call(t, "", nil, "queues", "prune", "--db", db)); !strings.HasPrefix(out, "nothing to remove") {
		t.Errorf("prune printed %q", out)
	}
	if r := call(t, "", nil, "queues", "prune", "--db", db, "--wait", "-1s"); r.code != 2 {
		t.Errorf("prune with a negative wait: code %d, %s", r.code, r.err)
	}
	if out := ok(t, call(t, "", nil, "queues", "doctor", "--db", db, "--json")); out != `{"inspected":false,"findings":[]}`+"\n" {
		t.Errorf("doctor printed %q", out)
	}
}
