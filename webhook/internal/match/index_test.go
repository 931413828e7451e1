package match_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/webhook/internal/match"
)

// TestMatch compares with asking everybody.
func TestMatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", "ab"})
		eventType := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(word, 1, 3).Draw(t, "words"), ".") })
		pattern := rapid.Custom(func(t *rapid.T) string {
			switch rapid.IntRange(0, 4).Draw(t, "form") {
			case 0:
				return "*"
			case 1, 2:
				return eventType.Draw(t, "beginning") + ".*"
			}
			return eventType.Draw(t, "type")
		})
		type subscriber struct {
			tenant   string
			patterns []string
		}
		var index match.Index
		all := map[string]subscriber{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))
			if old, there := all[id]; there {
				index.Remove(id, old.tenant, old.patterns)
				delete(all, id)
			}
			if rapid.Bool().Draw(t, "add") {
				s := subscriber{rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tenant"), rapid.SliceOfN(pattern, 0, 3).Draw(t, "patterns")}
				index.Add(id, s.tenant, s.patterns)
				all[id] = s
			}
			tenant, name := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "of"), eventType.Draw(t, "event")
			var want []string
			for id, s := range all {
				if s.tenant == tenant && match.Type(s.patterns, name) {
					want = append(want, id)
				}
			}
			slices.Sort(want)
			if got := index.Match(tenant, name); !slices.Equal(got, want) {
				t.Fatalf("%s of %s: %v, want %v of %v", name, tenant, got, want, all)
			}
		}
	})
}

func TestOddTypesMatchAsTheyDoOneByOne(t *testing.T) {
	t.Parallel()
	patterns := [][]string{nil, {"*"}, {"a"}, {"a.*"}, {"a.b.*", "a.b.c"}}
	for _, eventType := range []string{"", ".", "a", "a.", "a..", ".a", "a.b", "a.b.", "a.b.c", "A.b"} {
		var index match.Index
		var want []string
		for i, p := range patterns {
			index.Add(fmt.Sprint(i), "t", p)
			if match.Type(p, eventType) {
				want = append(want, fmt.Sprint(i))
			}
		}
		if got := index.Match("t", eventType); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", eventType, got, want)
		}
	}
}

func TestAnIndexThatIsEmptyAgainHoldsNothing(t *testing.T) {
	t.Parallel()
	var index match.Index
	index.Remove("nobody", "t", nil)
	index.Add("a", "t", []string{"x", "x", "y.*"})
	index.Remove("a", "t", []string{"x", "x", "y.*"})
	if got := fmt.Sprint(index); got != fmt.Sprint(match.Index{}) && got != "{map[]}" {
		t.Errorf("what is left is %s", got)
	}
}
