package endpoints_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/signature"
)

func TestNewRegistryRefuses(t *testing.T) {
	t.Parallel()
	if _, err := endpoints.NewRegistry(endpoints.RegistryConfig{Keys: ring(t, endpoints.NewKey())}); err == nil {
		t.Error("a registry without a store is made")
	}
	if _, err := endpoints.NewRegistry(endpoints.RegistryConfig{Store: open(t)}); err == nil {
		t.Error("a registry without keys is made")
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	r := registry(t, open(t), ring(t, endpoints.NewKey()))
	e := webhook.Endpoint{
		ID: "acme", Tenant: "t1", URL: "https://example.com/hooks?token=hush", Events: []string{"invoice.*"}, Headers: map[string]string{"Authorization": "Bearer hush"},
		Rate: 5, Backoff: schedule.WebhookBackoff, Ordered: true, Metadata: map[string]string{"plan": "gold"}, State: webhook.StatePaused, Reason: "not yet",
		Secrets: []signature.Secret{signature.NewSecret()},
	}
	before := time.Now().Add(-time.Second)
	got := add(t, r, e)
	if got.Revision <= 0 || got.Created.Before(before) || got.Since.Before(before) || got.Concurrency != 3 || got.ClientErrors != webhook.ClientErrorsRetry {
		t.Errorf("added as %+v", got)
	}
	read := must(t)(r.Get(t.Context(), "acme"))
	if diff := cmp.Diff(got, read); diff != "" {
		t.Errorf("read (-added +read):\n%s", diff)
	}
	want := e
	want.Since, want.Concurrency, want.ClientErrors = got.Since, 3, webhook.ClientErrorsRetry
	if diff := cmp.Diff(want, read.Endpoint); diff != "" {
		t.Errorf("(-given +read):\n%s", diff)
	}
	if _, err := r.Add(t.Context(), endpoint("acme")); !errors.Is(err, endpoints.ErrExists) {
		t.Errorf("added again: %v", err)
	}
	if made := add(t, r, endpoint("bare")); len(made.Secrets) != 1 || made.State != webhook.StateActive || made.Tenant != webhook.DefaultTenant {
		t.Errorf("a bare endpoint is added as %+v", made)
	}
	copied := endpoint("copy")
	copied.Secrets = e.Secrets
	if _, err := r.Add(t.Context(), copied); !errors.Is(err, endpoints.ErrSecretInUse) || strings.Contains(err.Error(), "whsec_") {
		t.Errorf("added with the secret of another: %v", err)
	}
	bad := endpoint("bad")
	bad.URL, bad.Concurrency = "https://127.0.0.1/hush", -1
	if _, err := r.Add(t.Context(), bad); err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "concurrency -1") {
		t.Errorf("a bad endpoint: %v", err)
	}
	if _, err := r.Get(t.Context(), "bad"); !errors.Is(err, webhook.ErrUnknownEndpoint) {
		t.Errorf("what was refused is there: %v", err)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	r := registry(t, open(t), ring(t, endpoints.NewKey()))
	first := add(t, r, endpoint("a", "a.*"))
	edited := must(t)(r.Edit(t.Context(), "a", first.Revision, func(e *webhook.Endpoint) error {
		e.URL, e.Rate = "https://example.org/other", 7
		return nil
	}))
	if edited.URL != "https://example.org/other" || edited.Rate != 7 || edited.Revision <= first.Revision || !edited.Created.Equal(first.Created) {
		t.Errorf("edited to %+v", edited)
	}
	if _, err := r.Edit(t.Context(), "a", first.Revision, func(*webhook.Endpoint) error { return nil }); !errors.Is(err, endpoints.ErrConflict) {
		t.Errorf("edit of an old revision: %v", err)
	}
	mine := errors.New("mine")
	for name, c := range map[string]struct {
		change func(*webhook.Endpoint) error
		want   string
	}{
		"its own error":    {func(*webhook.Endpoint) error { return mine }, "mine"},
		"id":               {func(e *webhook.Endpoint) error { e.ID = "b"; return nil }, "id cannot be changed"},
		"tenant":           {func(e *webhook.Endpoint) error { e.Tenant = "t2"; return nil }, "delete the endpoint and add it again"},
		"state":            {func(e *webhook.Endpoint) error { e.State = webhook.StatePaused; return nil }, "state cannot be edited"},
		"since":            {func(e *webhook.Endpoint) error { e.Since = time.Time{}; return nil }, "state cannot be edited"},
		"secrets":          {func(e *webhook.Endpoint) error { e.Secrets[0] = signature.NewSecret(); return nil }, "rotate them"},
		"retiring":         {func(e *webhook.Endpoint) error { e.Retiring = append(e.Retiring, webhook.RetiringSecret{}); return nil }, "rotate them"},
		"what is no value": {func(e *webhook.Endpoint) error { e.Timeout = -1; return nil }, "timeout"},
	} {
		if _, err := r.Edit(t.Context(), "a", 0, c.change); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
	if diff := cmp.Diff(edited, must(t)(r.Get(t.Context(), "a"))); diff != "" {
		t.Errorf("refused edits have changed (-want +got):\n%s", diff)
	}
	if _, err := r.Edit(t.Context(), "nobody", 0, func(*webhook.Endpoint) error { return nil }); !errors.Is(err, webhook.ErrUnknownEndpoint) {
		t.Errorf("edit of an unknown one: %v", err)
	}
}

// TestEditsAtOnce: each is made on top of the others.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	r := registry(t, open(t), ring(t, endpoints.NewKey()))
	add(t, r, endpoint("a"))
	const editors = 10
	failed := make(chan error, editors)
	for i := range editors {
		go func() {
			_, err := r.Edit(t.Context(), "a", 0, func(e *webhook.Endpoint) error {
				if e.Metadata == nil {
					e.Metadata = map[string]string{}
				}
				e.Metadata[fmt.Sprint(i)] = "here"
				return nil
			})
			failed <- err
		}()
	}
	for range editors {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if got := must(t)(r.Get(t.Context(), "a")); len(got.Metadata) != editors {
		t.Errorf("%d of %d edits are left", len(got.Metadata), editors)
	}
}

// TestAnEditOnTopOfAnother is the same, one step at a time: the store changes between the edit's read and its write.
func TestAnEditOnTopOfAnother(t *testing.T) {
	t.Parallel()
	store := &faulty{Store: open(t)}
	keys := ring(t, endpoints.NewKey())
	r, other := registry(t, store, keys), registry(t, store.Store, keys)
	first := add(t, r, endpoint("a"))
	rate := func(n float64) func(*webhook.Endpoint) error {
		return func(e *webhook.Endpoint) error { e.Rate = n; return nil }
	}
	between := 0
	store.before = func(string) {
		if between++; between <= 2 {
			must(t)(other.Edit(t.Context(), "a", 0, rate(float64(between))))
		}
	}
	got := must(t)(r.Edit(t.Context(), "a", 0, func(e *webhook.Endpoint) error { e.Concurrency = 9; return nil }))
	if got.Rate != 2 || got.Concurrency != 9 || between != 3 {
		t.Errorf("after %d writes: %+v", between, got)
	}
	between = 0
	if _, err := r.Edit(t.Context(), "a", got.Revision, rate(8)); !errors.Is(err, endpoints.ErrConflict) || between != 1 {
		t.Errorf("an edit of revision %d after %d writes: %v", first.Revision, between, err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	r := registry(t, open(t), ring(t, endpoints.NewKey()))
	first := add(t, r, endpoint("a"))
	second := must(t)(r.Pause(t.Context(), "a", ""))
	if err := r.Delete(t.Context(), "a", first.Revision); !errors.Is(err, endpoints.ErrConflict) {
		t.Errorf("delete of an old revision: %v", err)
	}
	if err := r.Delete(t.Context(), "a", second.Revision); err != nil {
		t.Error(err)
	}
	if err := r.Delete(t.Context(), "a", 0); !errors.Is(err, webhook.ErrUnknownEndpoint) {
		t.Errorf("second delete: %v", err)
	}
	again := endpoint("a")
	again.Secrets = first.Secrets // which nobody has by now
	add(t, r, again)
	if err := r.Delete(t.Context(), "a", 0); err != nil {
		t.Error(err)
	}
}
