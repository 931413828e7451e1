package match

import "slices"

// Index holds ids by tenant and pattern. Patterns are a type, a type's beginning with ".*", or "*". The zero value is empty. It is not safe for
// concurrent use; any number may read.
type Index struct {
	tenants map[string]map[string]map[string]struct{} // tenant, pattern, id
}

// all is the pattern of those who name none.
const all = "*"

// Add puts an id under a tenant and its patterns, all types if there are none.
func (x *Index) Add(id, tenant string, patterns []string) {
	if x.tenants == nil {
		x.tenants = make(map[string]map[string]map[string]struct{})
	}
	byPattern := x.tenants[tenant]
	if byPattern == nil {
		byPattern = make(map[string]map[string]struct{})
		x.tenants[tenant] = byPattern
	}
	for _, p := range orAll(patterns) {
		ids := byPattern[p]
		if ids == nil {
			ids = make(map[string]struct{})
			byPattern[p] = ids
		}
		ids[id] = struct{}{}
	}
}

// Remove takes back what Add did with the same arguments.
func (x *Index) Remove(id, tenant string, patterns []string) {
	byPattern := x.tenants[tenant]
	for _, p := range orAll(patterns) {
		delete(byPattern[p], id)
		if len(byPattern[p]) == 0 {
			delete(byPattern, p)
		}
	}
	if len(byPattern) == 0 {
		delete(x.tenants, tenant)
	}
}

func orAll(patterns []string) []string {
	if len(patterns) == 0 {
		return []string{all}
	}
	return patterns
}

// Match returns the ids of a tenant whose patterns select the type, sorted.
func (x *Index) Match(tenant, eventType string) []string {
	byPattern := x.tenants[tenant]
	if len(byPattern) == 0 {
		return nil
	}
	var ids []string
	take := func(pattern string) {
		for id := range byPattern[pattern] {
			ids = append(ids, id)
		}
	}
	take(all)
	take(eventType)
	for i := range len(eventType) - 1 { // a beginning selects what goes on after its dot
		if eventType[i] == '.' {
			take(eventType[:i+1] + "*")
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
