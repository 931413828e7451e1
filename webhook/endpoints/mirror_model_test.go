package endpoints_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// TestMirrorIsWhatTheRegistryHas changes the registry at random, and compares all that the mirror answers with asking the registry.
func TestMirrorIsWhatTheRegistryHas(t *testing.T) {
	t.Parallel()
	r := registry(t, open(t), ring(t, endpoints.NewKey()))
	m, err := endpoints.NewMirror(endpoints.MirrorConfig{Registry: r})
	if err != nil {
		t.Fatal(err)
	}
	patterns := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"*", "a", "a.*", "a.b", "a.b.*", "b.*"}), 0, 3, rapid.ID)
	tenants := rapid.SampledFrom([]string{"x", "y"})
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			id := fmt.Sprint("e", rapid.IntRange(0, 9).Draw(rt, "id"))
			e := endpoint(id, patterns.Draw(rt, "patterns")...)
			e.Tenant = tenants.Draw(rt, "tenant")
			if _, err := r.Get(t.Context(), id); err != nil {
				add(t, r, e)
				continue
			}
			var err error
			switch rapid.IntRange(0, 3).Draw(rt, "change") {
			case 0:
				err = r.Delete(t.Context(), id, 0)
			case 1:
				_, err = r.Pause(t.Context(), id, "moving")
			default:
				_, err = r.Edit(t.Context(), id, 0, func(old *webhook.Endpoint) error {
					old.Events = e.Events
					return nil
				})
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		if err := m.Look(t.Context()); err != nil {
			rt.Fatal(err)
		}
		entries, err := r.List(t.Context(), endpoints.Filter{}, "", 100)
		if err != nil || m.Len() != len(entries) {
			rt.Fatalf("%d endpoints of %d, %v", m.Len(), len(entries), err)
		}
		for _, entry := range entries {
			got, err := m.Get(t.Context(), entry.ID)
			if diff := cmp.Diff(entry.Endpoint, got); diff != "" || err != nil {
				rt.Fatalf("%v (-registry +mirror):\n%s", err, diff)
			}
		}
		for _, tenant := range []string{"x", "y", "z"} {
			for _, eventType := range []string{"a", "a.b", "a.b.c", "b", "b.a"} {
				var want []webhook.Endpoint
				for _, entry := range entries {
					if entry.Tenant == tenant && entry.Wants(eventType) {
						want = append(want, entry.Endpoint)
					}
				}
				got, err := m.Matching(tenant, eventType)
				if len(got) == 0 {
					got = nil
				}
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					rt.Fatalf("%s of %s: %v (-registry +mirror):\n%s", eventType, tenant, err, diff)
				}
			}
		}
	})
}
