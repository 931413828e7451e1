package config

import (
	"reflect"
	"testing"
)

// A default of another package is that of a key, and no tag says it once more.
func TestDefaultsFromCodeStandOnce(t *testing.T) {
	t.Parallel()
	fresh := build(reflect.TypeFor[Config]())
	for key := range fromCode() {
		at, l := resolveKey(fresh, nil, key)
		switch {
		case l == nil:
			t.Errorf("%s is no key", key)
		case l.def != "":
			t.Errorf("the tag of %s has a default too: %s", at, l.def)
		}
	}
}
