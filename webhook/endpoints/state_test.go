package endpoints_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

func TestStates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := open(t)
		r := registry(t, store, ring(t, endpoints.NewKey()))
		added := add(t, r, endpoint("a"))
		want := func(what string, got endpoints.Entry, state webhook.State, reason string, since time.Time) {
			t.Helper()
			if got.State != state || got.Reason != reason || !got.Since.Equal(since) {
				t.Errorf("%s: %s for %q since %s, want %s for %q since %s", what, got.State, got.Reason, got.Since, state, reason, since)
			}
		}
		want("added", added, webhook.StateActive, "", time.Now())
		time.Sleep(time.Hour)
		paused := must(t)(r.Pause(t.Context(), "a", "moving"))
		want("paused", paused, webhook.StatePaused, "moving", time.Now())
		if again := must(t)(r.Pause(t.Context(), "a", "moving")); again.Revision != paused.Revision {
			t.Errorf("paused again as revision %d after %d", again.Revision, paused.Revision)
		}
		time.Sleep(time.Hour)
		since := time.Now()
		disabled, changed, err := r.DisableAs(t.Context(), "a", webhook.ReasonGone)
		if err != nil || !changed {
			t.Fatalf("disabled: %v, %v", changed, err)
		}
		want("disabled", disabled, webhook.StateDisabled, webhook.ReasonGone, since)
		time.Sleep(time.Hour)
		again, changed, err := r.DisableAs(t.Context(), "a", webhook.ReasonFailing)
		if err != nil || changed || again.Revision != disabled.Revision {
			t.Errorf("disabled again: %v, %v", changed, err)
		}
		want("disabled again", again, webhook.StateDisabled, webhook.ReasonGone, since)

		failed := time.Now().Add(-time.Minute)
		if _, err := store.Report(t.Context(), []endpoints.Delta{{Endpoint: "a", Failures: 8, FirstFailure: failed}}); err != nil {
			t.Fatal(err)
		}
		if h, err := r.Health(t.Context(), "a"); err != nil || h.Failures != 8 || !h.FailingSince.Equal(failed) {
			t.Errorf("health %+v, %v", h, err)
		}
		want("enabled", must(t)(r.Enable(t.Context(), "a")), webhook.StateActive, "", time.Now())
		if h, err := r.Health(t.Context(), "a"); err != nil || h.Failures != 0 || !h.FailingSince.IsZero() {
			t.Errorf("health after it was enabled %+v, %v", h, err)
		}
		if _, err := store.Report(t.Context(), []endpoints.Delta{{Endpoint: "a", Failures: 8, FirstFailure: time.Now().Add(time.Second)}}); err != nil {
			t.Fatal(err)
		}
		enabled := must(t)(r.Enable(t.Context(), "a")) // it is active, and its failures are forgotten all the same
		want("enabled again", enabled, webhook.StateActive, "", enabled.Since)
		if h, err := r.Health(t.Context(), "a"); err != nil || h.Failures != 0 {
			t.Errorf("health after it was enabled again %+v, %v", h, err)
		}
	})
}

func TestStatesRefuse(t *testing.T) {
	t.Parallel()
	r := registry(t, open(t), ring(t, endpoints.NewKey()))
	added := add(t, r, endpoint("a"))
	if _, _, err := r.Disable(t.Context(), "a", ""); err == nil {
		t.Error("disabled for no reason")
	}
	if _, err := r.Pause(t.Context(), "a", "two\nlines"); err == nil {
		t.Error("paused for a reason of two lines")
	}
	for _, reason := range []string{webhook.ReasonGone, webhook.ReasonFailing} { // only a disabler may say so
		_, err1 := r.Pause(t.Context(), "a", reason)
		_, _, err2 := r.Disable(t.Context(), "a", reason)
		if !errors.Is(err1, endpoints.ErrInvalid) || !errors.Is(err2, endpoints.ErrInvalid) {
			t.Errorf("%s: %v, %v", reason, err1, err2)
		}
	}
	_, err1 := r.Pause(t.Context(), "nobody", "")
	_, _, err2 := r.Disable(t.Context(), "nobody", "x")
	_, err3 := r.Enable(t.Context(), "nobody")
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, webhook.ErrUnknownEndpoint) {
			t.Errorf("state of an unknown one: %v", err)
		}
	}
	if got := must(t)(r.Get(t.Context(), "a")); got.Revision != added.Revision {
		t.Error("refused changes were made")
	}
}

// TestPauseOfWhatIsRefusedByNow: whoever has to stop deliveries is not asked whether the URL is a good one.
func TestPauseOfWhatIsRefusedByNow(t *testing.T) {
	t.Parallel()
	store, keys := open(t), ring(t, endpoints.NewKey())
	lax, err := endpoints.NewRegistry(endpoints.RegistryConfig{Store: store, Keys: keys, Guard: laxGuard(t)})
	if err != nil {
		t.Fatal(err)
	}
	e := endpoint("a")
	e.URL = "https://127.0.0.1:9999/"
	add(t, lax, e)
	strict := registry(t, store, keys)
	if _, err := strict.Edit(t.Context(), "a", 0, func(*webhook.Endpoint) error { return nil }); err == nil {
		t.Error("an edit takes a URL that is refused")
	}
	if got := must(t)(strict.Pause(t.Context(), "a", "")); got.State != webhook.StatePaused || got.URL != e.URL {
		t.Errorf("paused as %v", got)
	}
}
