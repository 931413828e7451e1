package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/caisson-go/caisson/webhook"
)

// Lines are emptied of what a tenant left in them that has the endpoint no more, and of nothing else.
func TestOwners(t *testing.T) {
	t.Parallel()
	var dropped []string
	fail := false
	o := owners{of: make(map[string]string), logger: slog.New(slog.DiscardHandler), drop: func(_ context.Context, tenant, endpoint string) (int, error) {
		dropped = append(dropped, tenant+"/"+endpoint)
		if fail {
			return 0, errors.New("away")
		}
		return 1, nil
	}}
	line := func(tenant string, ordered bool) webhook.Endpoint {
		return webhook.Endpoint{ID: "line", Tenant: tenant, Ordered: ordered}
	}
	for i, step := range []struct {
		endpoint webhook.Endpoint
		deleted  bool
		want     []string
	}{
		{webhook.Endpoint{ID: "free", Tenant: "ta"}, false, nil},
		{webhook.Endpoint{ID: "free"}, true, nil},
		{line("ta", true), false, nil},
		{line("ta", false), false, nil}, // its line goes on
		{line("tb", false), false, []string{"ta/line"}},
		{webhook.Endpoint{ID: "line"}, true, []string{"tb/line"}},
		{webhook.Endpoint{ID: "line"}, true, nil},
		{line("tc", true), false, nil},
		{line("td", true), false, []string{"tc/line"}},
	} {
		dropped, fail = nil, i == 4
		if o.changed(step.endpoint, step.deleted); !slices.Equal(dropped, step.want) {
			t.Errorf("step %d: dropped %v, want %v", i, dropped, step.want)
		}
	}
}
