package endpointcmd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
)

// letter is a delivery in the dead-letter store.
func letter(endpoint, event string, state dlq.State) dlq.Entry {
	id := webhook.Event{ID: event}.JobID(endpoint)
	return dlq.Entry{
		Job: id, Queue: "default", Kind: webhook.KindDeliver, Destination: endpoint, State: state, Cause: dlq.CauseExhausted, Error: "no",
		Message: queue.Message{Body: []byte("{}")},
	}
}

// What workers, status store, log and dead-letter store know of an endpoint is in one place.
func TestShowStatus(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"sick", "well"} {
		r.run("endpoints", "add", id, url).ok()
	}
	now := time.Now().UTC().Truncate(time.Second)
	r.stack(func(s *backends.Set) {
		ctx := t.Context()
		if _, err := s.Endpoints.Report(ctx, []endpoints.Delta{{Endpoint: "sick", Failures: 7, FirstFailure: now.Add(-time.Hour)}, {Endpoint: "well", Success: now}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Statuses.Publish(ctx, fleet.Report{ID: "w", Owner: "w", Sent: time.Now(), Destinations: []fleet.Destination{{
			Name: "sick", State: "open", Reason: "breaker_open", Since: now.Add(-time.Minute), Next: now.Add(time.Minute),
		}}}); err != nil {
			t.Fatal(err)
		}
		for _, err := range s.Letters.Put(ctx, []dlq.Entry{
			letter("sick", "a", dlq.StateDead), letter("sick", "b", dlq.StateHeld), letter("sick", "c", dlq.StateHeld), letter("other", "a", dlq.StateHeld), letter("other", "b", dlq.StateDead),
		}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	r.log(
		journal.Attempt{Tenant: "default", Endpoint: "sick", Event: "a", Number: 2, At: now, Status: 503, Phase: "answered", Excerpt: "out to lunch"},
		journal.Attempt{Tenant: "default", Endpoint: "sick", Event: "a", Number: 1, At: now.Add(-time.Minute), Status: 200, Phase: "answered"},
		journal.Attempt{Tenant: "default", Endpoint: "well", Event: "a", Number: 1, At: now.Add(time.Minute), Status: 200, Phase: "answered"},
	)

	text := r.run("endpoints", "show", "sick").ok()
	for _, want := range []string{
		"\nfailures       7 since " + now.Add(-time.Hour).Format(time.RFC3339) + "\n",
		"\nlast call      503, out to lunch at " + now.Format(time.RFC3339) + ", for event a\n",
		"\nbreaker        open, refused at 1 of 1 worker, not closed since 20", ", next try at 20",
		"\nheld           2\n", "\ndead letters   1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q\n%s", want, text)
		}
	}
	var got struct {
		ID      string
		Health  webhookapi.Health
		Breaker struct{ Refusing int }
		Last    struct{ Status int } `json:"last_attempt"`
		Held    int
		Dead    int `json:"dead_letters"`
	}
	r.run("endpoints", "show", "sick", "--json").into(&got)
	if got.ID != "sick" || got.Health.Failures != 7 || got.Breaker.Refusing != 1 || got.Last.Status != 503 || got.Held != 2 || got.Dead != 1 {
		t.Errorf("%+v", got)
	}
	if text := r.run("endpoints", "show", "well").ok(); !strings.Contains(text, "\nbreaker        closed at 1 worker\nheld           0\n") || strings.Contains(text, "failures") {
		t.Errorf("a healthy one\n%s", text)
	}

	list := strings.Split(r.run("endpoints", "list").ok(), "\n")
	if !strings.Contains(list[1], " 7 since 20") || strings.Contains(list[2], "since") {
		t.Errorf("listed\n%s", strings.Join(list, "\n"))
	}
	if out := r.run("endpoints", "list", "--json").ok(); strings.Count(out, `"failures":7`) != 1 || strings.Count(out, `"health"`) != 1 {
		t.Errorf("listed\n%s", out)
	}
}

// Order, a request to be left alone and a pause are told in words, and where nothing is tried no time of a try is.
func TestShowWhatHoldsBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("endpoints", "add", "line", url, "--ordered").ok()
	r.run("endpoints", "add", "quiet", url).ok()
	r.run("endpoints", "add", "paused", url).ok()
	r.run("endpoints", "pause", "paused").ok()
	for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
		r.run("events", "publish", "invoice.paid", "{}", "--id", id).ok()
	}
	next := time.Now().Add(time.Minute)
	r.stack(func(s *backends.Set) {
		if err := s.Statuses.Publish(t.Context(), fleet.Report{ID: "w", Owner: "w", Sent: time.Now(), Destinations: []fleet.Destination{
			{Name: "quiet", State: "closed", Reason: "throttled", Next: next}, {Name: "paused", State: "closed", Override: "forced_open", Reason: "forced_open", Next: next},
		}}); err != nil {
			t.Fatal(err)
		}
	})
	for id, want := range map[string]string{
		"line": "\nin line        3\n", "quiet": "\nbreaker        throttled (Retry-After) until " + next.UTC().Format(time.RFC3339) + ", at 1 of 1 worker",
		"paused": "\nbreaker        forced open at 1 of 1 worker, about 0 jobs put back for it\n",
	} {
		text := r.run("endpoints", "show", id).ok()
		if !strings.Contains(text, want) || strings.Contains(text, "next try") || id != "line" && strings.Contains(text, "in line") {
			t.Errorf("%s\n%s", id, text)
		}
	}
	var got struct {
		InLine int `json:"in_ordered_queue"`
	}
	if r.run("endpoints", "show", "line", "--json").into(&got); got.InLine != 3 {
		t.Errorf("%+v", got)
	}
}
