package webhook

import (
	"fmt"
	"net/http"
	"testing"
)

// TestAttempt: what observers are told of calls that were made, and what they can tell from it.
func TestAttempt(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) { w.WriteHeader([]int{204, 500}[n%2]) })
	inside := newDNSServer(t, "127.0.0.1")
	guard, err := NewGuard(GuardConfig{AnyPort: true, Allow: loopback[1:], Resolver: inside.resolver()})
	if err != nil {
		t.Fatal(err)
	}
	e := endpointAt("e", rec.URL+"/a")
	blocked := endpointAt("blocked", "http://inside.example.com")
	var seen []Attempt
	observe := func(a Attempt) { seen = append(seen, a) }
	s := newSender(t, Config{Endpoints: static(t, e), Observe: observe})
	_ = s.deliver(t.Context(), jobFor("e"))
	_ = s.deliver(t.Context(), jobFor("e"))
	_ = newSender(t, Config{Endpoints: unchecked{blocked}, Guard: guard, Observe: observe}).deliver(t.Context(), jobFor("blocked"))
	if len(seen) != 3 {
		t.Fatalf("%d attempts were observed", len(seen))
	}
	moved := e
	moved.URL = rec.URL + "/b"
	other := e
	other.ID = "other"
	for i, want := range []string{"true false true false false", "false false true false false", "false true false false false"} {
		a := seen[i]
		if got := fmt.Sprint(a.Succeeded(), a.Neutral(), a.WentTo(e), a.WentTo(moved), a.WentTo(other)); got != want || a.At.IsZero() {
			t.Errorf("attempt %d: %s, want %s; at %s", i+1, got, want, a.At)
		}
	}
	if !(Attempt{CutOff: true}).Neutral() || (Attempt{Response: Response{Status: 410}}).Neutral() {
		t.Error("a call that we cut off is neutral, and no other")
	}
}

// TestSendTellsNobody: test deliveries count for nothing: they are not observed, and a 410 to one marks no endpoint.
func TestSendTellsNobody(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, status(http.StatusGone))
	e := endpointAt("e", rec.URL)
	s := newSender(t, Config{Endpoints: static(t, e), Observe: func(Attempt) { t.Error("a test delivery was observed") }})
	e.State = StatePaused // whatever its state
	if r := send(t, s, e); r.Status != http.StatusGone || len(s.Gone()) != 0 {
		t.Errorf("%+v, gone %v", r, s.Gone())
	}
}
