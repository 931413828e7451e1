package endpointtest

import (
	"slices"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

func listTests() []testCase {
	return []testCase{
		{"List/pages by id", testPages},
		{"List/filters", testFilters},
		{"List/refuses a limit below one", testLimits},
	}
}

func (e *env) list(f endpoints.Filter, after string, limit int) []endpoints.Record {
	e.Helper()
	list, err := e.store.List(e.Context(), f, after, limit)
	if err != nil {
		e.Fatalf("list: %v", err)
	}
	return list
}

func testPages(e *env) {
	want := e.some(10)
	e.delete(want[3])
	want = slices.Delete(want, 3, 4)
	for _, limit := range []int{1, 3, 9, 10, 1000} {
		var got []endpoints.Record
		for after := ""; ; {
			page := e.list(endpoints.Filter{Tenant: e.tenant}, after, limit)
			if len(page) > limit {
				e.Fatalf("page of %d with a limit of %d", len(page), limit)
			}
			got = append(got, page...)
			if len(page) < limit {
				break
			}
			after = page[limit-1].ID
		}
		e.want("pages", got, want)
	}
	if rest := e.list(endpoints.Filter{Tenant: e.tenant}, want[4].ID+"\x00", 100); len(rest) != 4 {
		e.Errorf("%d records after one that is not there, want 4", len(rest))
	}
}

func testFilters(e *env) {
	var kept []endpoints.Record
	for i, state := range []webhook.State{webhook.StateActive, webhook.StatePaused, webhook.StateDisabled, webhook.StatePaused} {
		r := e.record()
		r.State, r.Key = state, []string{"new", "old", "new", "older"}[i]
		kept = append(kept, e.insert(r))
	}
	other := e.record()
	other.Tenant = e.tenant + "x"
	e.insert(other)
	for name, c := range map[string]struct {
		filter endpoints.Filter
		want   []int
	}{
		"tenant":         {endpoints.Filter{}, []int{0, 1, 2, 3}},
		"state":          {endpoints.Filter{State: webhook.StatePaused}, []int{1, 3}},
		"not key":        {endpoints.Filter{NotKey: "new"}, []int{1, 3}},
		"all must match": {endpoints.Filter{State: webhook.StatePaused, NotKey: "old"}, []int{3}},
		"none":           {endpoints.Filter{State: webhook.StateActive, NotKey: "new"}, nil},
	} {
		c.filter.Tenant = e.tenant
		var want []endpoints.Record
		for _, i := range c.want {
			want = append(want, kept[i])
		}
		e.want(name, e.list(c.filter, "", 100), want)
	}
	all := e.list(endpoints.Filter{}, kept[0].ID, 1)
	if len(all) != 1 || all[0].ID <= kept[0].ID {
		e.Errorf("without a filter: %+v", all)
	}
}

func testLimits(e *env) {
	for _, limit := range []int{0, -1} {
		if _, err := e.store.List(e.Context(), endpoints.Filter{}, "", limit); err == nil {
			e.Errorf("list takes a limit of %d", limit)
		}
		if _, err := e.store.Changes(e.Context(), 0, limit); err == nil {
			e.Errorf("changes takes a limit of %d", limit)
		}
	}
}
