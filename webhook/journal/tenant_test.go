package journal_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
)

// An endpoint's id went from one tenant to another: neither what waits for the first, nor its dead letters, nor its line go to the second, and the
// second's own events are not taken for the first's.
func TestIDGoesToAnotherTenant(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name   string
		change func(*webhook.Endpoint)
	}{{"unordered", func(*webhook.Endpoint) {}}, {"ordered", ordered}} {
		t.Run(kind.name, func(t *testing.T) {
			onStores(t, func(t *testing.T, r *rig) {
				l := &lines{}
				o := r.ordering(l, nil)
				p := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Ordering = o })
				publish := func(tenant, id string) {
					t.Helper()
					r.publish(p, webhook.Event{ID: id, Tenant: tenant, Type: "t", Body: []byte(tenant)}, 1)
				}
				r.add("hooks", func(e *webhook.Endpoint) { e.Tenant = "ta"; kind.change(e) })
				r.seen.answers(func(string, string) int { return http.StatusInternalServerError })
				stop := r.startOrdered(o)
				publish("ta", "evt_dead")
				r.await("an empty line", r.linesEmpty)
				r.idle()
				stop()
				publish("ta", "evt_waiting")
				publish("ta", "evt_behind")

				r.endpoints = nil // deleted
				b := r.add("hooks", func(e *webhook.Endpoint) { e.Tenant = "tb"; kind.change(e) })
				r.seen.answers(func(string, string) int { return http.StatusOK })
				publish("tb", "evt_waiting") // the same id is another event
				o = r.ordering(l, nil)
				stop = r.startOrdered(o)
				defer stop()
				r.await("an empty line", r.linesEmpty)
				r.idle()
				if got := r.seen.took("hooks"); !slices.Equal(got, []string{"evt_waiting"}) {
					t.Errorf("it took %v, want its own evt_waiting only", got)
				}
				again := r.recovery(func(cfg *journal.RecoveryConfig) { cfg.Ordering = o })
				if _, err := again.RecoverSince(t.Context(), b, time.Now().Add(-time.Hour)); err != nil {
					t.Fatal(err)
				}
				publish("tb", "evt_dead")
				r.await("an empty line", r.linesEmpty)
				r.idle()
				if got := firsts(r.seen.took("hooks")); !slices.Equal(got, []string{"evt_waiting", "evt_dead"}) {
					t.Errorf("it took %v, want its own events only", got)
				}
				for _, letter := range r.letters(dlq.StateDead) {
					if letter.Cause != dlq.CauseEndpointGone {
						t.Errorf("%s is a dead letter for %s", letter.ID, letter.Cause)
					}
				}
				if n := len(r.letters(dlq.StateDead)); n != 3 {
					t.Errorf("%d dead letters, want all three events of the first tenant", n)
				}
			})
		})
	}
}

// A tenant that has an endpoint no more has its line emptied; what another one has in it stays.
func TestDropTenantsLine(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, r *rig) {
		r.add("line", func(e *webhook.Endpoint) { e.Tenant = "ta"; e.Ordered = true })
		o := r.ordering(&lines{}, nil)
		p := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Ordering = o })
		for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
			r.publish(p, webhook.Event{ID: id, Tenant: "ta", Type: "t"}, 1)
		}
		r.endpoints[0].Tenant = "tb"
		r.publish(p, webhook.Event{ID: "evt_1", Tenant: "tb", Type: "t"}, 1)
		if n, err := o.Drop(t.Context(), "ta", "line"); n != 3 || err != nil {
			t.Errorf("dropped %d, %v", n, err)
		}
		if n, err := r.journal.Len(t.Context(), "line"); n != 1 || err != nil {
			t.Errorf("%d wait, %v, want the other tenant's", n, err)
		}
	})
}
