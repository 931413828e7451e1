package webhooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/signature"
)

// killPlan is one round.
type killPlan struct {
	// settings name broker and store.
	settings map[string]string
	// exact says that the depth of the queue never lags, so that an empty one is the end, even if something is lost.
	exact bool
	// kills of processes, one each second.
	kills    int
	mutation string
}

// killEndpoint is an endpoint of the round.
type killEndpoint struct {
	id      string
	ordered bool
	// events is the pattern of types; empty means all.
	events string
}

var killEndpoints = []killEndpoint{
	{"line-all", true, ""},
	{"line-second", true, ""},
	{"line-even", true, "n.even"},
	{"free-all", false, ""},
	{"free-second", false, ""},
	{"free-odd", false, "n.odd"},
}

func (e killEndpoint) wants(event int) bool {
	return e.events == "" || e.events == numbered(event).Type
}

const (
	killSlots   = 20
	killLease   = 2 * time.Second
	killWorkers = 2 // workers
)

// killRound is a plan at work.
type killRound struct {
	plan      killPlan
	dir       string
	backends  *backends.Set
	queue     string
	receiver  *killReceiver
	processes []*faultlab.Child // the workers, then the publisher
	kills     []faultlab.Kill   // of workers
	cut       int               // publishings that a kill has cut
	events    int               // that were confirmed
}

func newKillRound(t *testing.T, plan killPlan) *killRound {
	t.Helper()
	r := &killRound{plan: plan, dir: t.TempDir(), receiver: newKillReceiver(t)}
	at, err := url.Parse(r.receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.plan.settings = maps.Clone(plan.settings)
	for key, value := range map[string]string{
		"webhook.secret_key": endpoints.NewKey(), "webhook.allow_cidrs": "127.0.0.0/8", "webhook.ports": at.Port(),
		"webhook.default.backoff": "fixed(20ms, 50ms, 50ms, 100ms, 100ms, 100ms, 100ms)",
		"lease":                   killLease.String(), "concurrency": strconv.Itoa(killSlots),
	} {
		r.plan.settings[key] = value
	}
	cfg, _, err := config.Load(config.Sources{Flags: r.plan.settings})
	if err != nil {
		t.Fatal(err)
	}
	if r.backends, err = backends.Open(t.Context(), cfg, backends.Create, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.backends.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	r.queue = cfg.Queues[0].Name
	if err := r.backends.Broker.CreateQueue(t.Context(), r.queue); err != nil {
		t.Fatal(err)
	}
	r.addEndpoints(t, cfg)
	return r
}

func (r *killRound) addEndpoints(t *testing.T, cfg *config.Config) {
	t.Helper()
	settings, err := Read(cfg)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := settings.Registry(r.backends.Endpoints)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range killEndpoints {
		add := webhook.Endpoint{
			ID: e.id, URL: r.receiver.URL + "/" + e.id, AllowHTTP: true, Ordered: e.ordered, ClientErrors: webhook.ClientErrorsReject,
			Secrets: []signature.Secret{signature.NewSecret()},
		}
		if e.events != "" {
			add.Events = []string{e.events}
		}
		if _, err := registry.Add(t.Context(), add); err != nil {
			t.Fatal(err)
		}
		if r.receiver.verifiers[e.id], err = signature.NewVerifier(add.Secrets[0].Reveal()); err != nil {
			t.Fatal(err)
		}
	}
}

// start starts a worker, or the publisher.
func (r *killRound) start(t *testing.T, publish bool) *faultlab.Child {
	t.Helper()
	text, err := json.Marshal(orders{Publish: publish, Dir: r.dir, Settings: r.plan.settings, Mutation: r.plan.mutation})
	if err != nil {
		t.Fatal(err)
	}
	return faultlab.StartChild(t, r.dir, envOrders+"="+string(text))
}

// run kills and replaces one process after the other, and then lets them come to an end.
func (r *killRound) run(t *testing.T) {
	t.Helper()
	began := time.Now()
	for range killWorkers {
		r.processes = append(r.processes, r.start(t, false))
	}
	r.processes = append(r.processes, r.start(t, true))
	for step := range r.plan.kills {
		time.Sleep(900 * time.Millisecond) // a kill may come at any time
		if victim := step % len(r.processes); victim < killWorkers {
			r.awaitTaken()
			r.kills = append(r.kills, r.processes[victim].Kill(t))
			r.processes[victim] = r.start(t, false)
		} else {
			r.killPublisher(t)
		}
	}
	r.awaitConfirmed(t)
	r.processes[killWorkers].Stop(t)
	killed := time.Now()
	begun, confirmed, _, err := readPublished(r.dir)
	if err != nil || begun != confirmed {
		t.Fatalf("%d events were begun and %d confirmed: %v", begun, confirmed, err)
	}
	r.events = confirmed
	r.drain(t)
	t.Logf("killed for %.1fs, all ended %.1fs later", killed.Sub(began).Seconds(), time.Since(killed).Seconds())
	for _, c := range r.processes[:killWorkers] {
		c.Stop(t)
	}
}

// killPublisher kills it while it publishes. A kill that came too late is done again.
func (r *killRound) killPublisher(t *testing.T) {
	t.Helper()
	for hit, tries := false, 0; !hit && tries < 5; tries++ {
		r.awaitPublishing(t)
		r.processes[killWorkers].Kill(t)
		begun, confirmed, cut, err := readPublished(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		r.processes[killWorkers] = r.start(t, true)
		if hit = cut > r.cut; r.plan.mutation == unconfirmed {
			hit = begun == confirmed && keptBack(confirmed)
		}
		r.cut = cut
	}
}

// keptBack reports whether events were confirmed that are not yet published, where that is broken.
func keptBack(confirmed int) bool { return confirmed%unconfirmedBatch != 0 }

// awaitConfirmed waits until what the last kill may have cut is published.
func (r *killRound) awaitConfirmed(t *testing.T) {
	t.Helper()
	cut, _, _, err := readPublished(r.dir)
	for limit := time.Now().Add(time.Minute); err == nil; time.Sleep(10 * time.Millisecond) { // between looks at another process's book
		var confirmed int
		if _, confirmed, _, err = readPublished(r.dir); err == nil && confirmed >= cut {
			return
		}
		if time.Now().After(limit) {
			err = errors.New("it was begun a minute ago")
		}
	}
	t.Fatalf("event %d is not published: %v\n%s", cut-1, err, r.processes[killWorkers].Log())
}

// awaitTaken waits until a delivery has just been taken, if one comes soon: what follows is what a kill should come between.
func (r *killRound) awaitTaken() {
	select {
	case <-r.receiver.taken: // an old one
	default:
	}
	select {
	case <-r.receiver.taken:
		time.Sleep(rand.N(5 * time.Millisecond))
	case <-time.After(time.Second):
	}
}

// awaitPublishing waits until an event is being published, if one comes soon; where events are confirmed first, until some wait to be published.
func (r *killRound) awaitPublishing(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(time.Second); time.Now().Before(until); {
		begun, confirmed, _, err := readPublished(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.plan.mutation == unconfirmed && keptBack(confirmed) || r.plan.mutation != unconfirmed && begun > confirmed {
			return
		}
		time.Sleep(time.Millisecond) // between looks at another process's book
	}
}

// drain waits until nothing is left to be done.
func (r *killRound) drain(t *testing.T) {
	t.Helper()
	limit := time.Now().Add(2 * time.Minute)
	rest := killLease + time.Second // what a process that is gone had leased has come again by then
	if r.plan.exact {
		rest = 200 * time.Millisecond
	}
	for calm := time.Now(); time.Since(calm) < rest; time.Sleep(50 * time.Millisecond) { // between looks at what the workers do
		d, err := r.backends.Broker.Depth(t.Context(), r.queue)
		waiting := 0
		for _, e := range killEndpoints {
			n, lineErr := r.backends.Queues.Len(t.Context(), e.id)
			if lineErr != nil {
				err = lineErr
			}
			waiting += n
		}
		missing := 0
		if !r.plan.exact {
			missing = len(r.missing(r.dead(t)))
		}
		if err != nil || int64(waiting+missing)+d.Ready.N+d.Delayed.N+d.InFlight.N > 0 || r.receiver.quiet() == 0 {
			calm = time.Now()
		}
		if time.Now().After(limit) {
			t.Errorf("it does not end: %d wait in lines, %d are missing, the queue: %+v, %v\n%s", waiting, len(r.missing(r.dead(t))), d, err, r.processes[0].Log())
			return
		}
	}
}

// dead returns the jobs that were given up.
func (r *killRound) dead(t *testing.T) map[string]dlq.Entry {
	t.Helper()
	found := map[string]dlq.Entry{}
	list, _, err := r.backends.Letters.List(t.Context(), dlq.Filter{States: []dlq.State{dlq.StateDead}}, "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		found[e.Job] = e
	}
	return found
}

func TestMain(m *testing.M) {
	if obeyed, err := obey(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	} else if obeyed {
		os.Exit(0)
	}
	os.Exit(m.Run())
}
