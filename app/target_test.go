package app_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	endpointsqlite "github.com/caisson-go/caisson/webhook/endpoints/sqlite"
)

// hooked adds a registry of webhook endpoints.
func (c *cast) hooked() *cast {
	c.env = append(c.env, "CAISSON_WEBHOOK_SECRET_KEY="+endpoints.NewKey())
	return c
}

// Why a delivery waits is looked up in the registry: workers know what it says a moment later, and do not know why.
func TestExplainEndpoints(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, c *cast) {
		c.hooked()
		c.enqueue("webhook.deliver", "first", "--destination", "shop")
		c.becomes("first", "ready", "; its endpoint shop is not in the registry: the job becomes a dead letter at 20")
		c.enqueue("webhook.deliver", "plain")
		if e := c.becomes("plain", "ready"); strings.Contains(e.Jobs[0].Why, "endpoint") {
			t.Errorf("a job without a destination: %s", e.Jobs[0].Why)
		}
		ok(t, c.call("endpoints", "add", "shop", "https://example.com/hook"))
		if e := c.becomes("first", "ready"); strings.Contains(e.Jobs[0].Why, "endpoint") {
			t.Errorf("an active endpoint: %s", e.Jobs[0].Why)
		}
		ok(t, c.call("endpoints", "pause", "shop", "--reason", "maintenance"))
		const paused = "its endpoint shop is paused (maintenance) since 20"
		const wayOut = ", until somebody runs worker endpoints enable shop"
		c.becomes("first", "ready", paused, wayOut)
		w := c.run()
		e := c.becomes("first", "held", "with 0 others: "+paused, wayOut)
		if strings.Contains(e.Jobs[0].Why, "recover") {
			t.Errorf("held: %s", e.Jobs[0].Why)
		}
		if text := ok(t, c.call("explain", "first")); !strings.Contains(text, "\nendpoint     shop is paused (maintenance) since 20") {
			t.Errorf("text lacks the endpoint\n%s", text)
		}
		if code := w.end(); code != 0 {
			t.Errorf("exit code %d\n%s", code, w.log)
		}
	})
}

// addGone adds an endpoint that has answered 410: only a worker's own keeper makes one of those.
func (c *cast) addGone(id, key string) {
	c.t.Helper()
	store, err := endpointsqlite.Open(c.t.Context(), endpointsqlite.Config{Path: c.db})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	keys, err := endpoints.ParseKeyring(key)
	if err != nil {
		c.t.Fatal(err)
	}
	registry, err := endpoints.NewRegistry(endpoints.RegistryConfig{Store: store, Keys: keys})
	if err != nil {
		c.t.Fatal(err)
	}
	gone := webhook.Endpoint{ID: id, URL: "https://example.com/hook", State: webhook.StateDisabled, Reason: webhook.ReasonGone, Since: time.Now()}
	if _, err := registry.Add(c.t.Context(), gone); err != nil {
		c.t.Fatal(err)
	}
}

func TestExplainGoneEndpoint(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	key := endpoints.NewKey()
	c.env = append(c.env, "CAISSON_WEBHOOK_SECRET_KEY="+key)
	c.addGone("shop", key)
	c.enqueue("webhook.deliver", "first", "--destination", "shop")
	c.becomes("first", "ready", "its endpoint shop is disabled (gone) since 20", "for which jobs become dead letters", "endpoints enable shop")
	w := c.run()
	c.becomes("first", "dead", "(endpoint_gone)", "; its endpoint shop is disabled (gone) since 20", "before you replay it")
	if code := w.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, w.log)
	}
}

// An endpoint that is sealed with another key, and a program that has no key.
func TestExplainUnreadableEndpoint(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	none := slices.Clone(c.env)
	c.hooked()
	ok(t, c.call("endpoints", "add", "shop", "https://example.com/hook"))
	c.enqueue("webhook.deliver", "first", "--destination", "shop")
	c.env = none
	if e := c.becomes("first", "ready"); !slices.ContainsFunc(e.Notes, func(n string) bool { return strings.Contains(n, "webhook.secret_key") }) {
		t.Errorf("without a key: %+v", e)
	}
	c.hooked()
	c.becomes("first", "ready", `its endpoint cannot be used, and the job waits until it can: endpoint "shop": `)
	w := c.run()
	c.becomes("first", "endpoint_closed", `waits: its endpoint cannot be used, and the job waits until it can: endpoint "shop": `)
	if code := w.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, w.log)
	}
}
